/* Tables bind members to keys, so that writing and reading cannot diverge; the lists of layers_result.def generate both
 * the tables and the structs. */
#include "rundir/layers_result.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "port/file.h"
#include "port/json_read.h"
#include "core/json_field.h"
#include "core/result.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"

#define FILE_MAX ((size_t)256 << 20)

const char *const RESULT_PHASE[] = {"prefill", "decode"};

/* ---- the tables ---- */

#define ROW(of, type_, member)  {#member, FIELD_##type_, offsetof(struct of, member)},
#define COMPONENT(type, member) ROW(result_component, type, member)
#define LAYER(type, member)     ROW(result_layer, type, member)
#define SETTING(type, member)   ROW(result_setting, type, member)
#define WINDOW(type, member)    ROW(result_window, type, member)
#define IDLE(type, member)      ROW(result_idle, type, member)
#define RESULT(type, member)    ROW(layers_result, type, member)
#define NULL_TEST(type, member) ROW(result_null_test, type, member)
#define OWN(type, member)       ROW(result_own, type, member)

typedef const struct json_field fields[];

/* clang-format off */
static fields COMPONENT_FIELDS = {RESULT_COMPONENT(COMPONENT){0}};
static fields SHARE_FIELDS = {RESULT_SHARE(COMPONENT){0}};
static fields PART_FIELDS = {COMPONENT(TEXT, name) COMPONENT(NUMBER, time_s)
                             COMPONENT(NUMBER, energy_j) COMPONENT(NUMBER, share){0}};
static fields LAYER_FIELDS = {LAYER(INTEGRAL, index) RESULT_LAYER_SUM(LAYER){0}};
static fields OUTSIDE_FIELDS = {RESULT_LAYER_SUM(LAYER){0}};
static fields SETTING_FIELDS = {RESULT_SETTING(SETTING){0}};
static fields WINDOW_FIELDS = {RESULT_WINDOW(WINDOW){0}};
static fields IDLE_FIELDS = {RESULT_IDLE(IDLE){0}};
static fields MODEL_FIELDS = {RESULT_MODEL(RESULT){0}};
static fields WORKLOAD_FIELDS = {RESULT_WORKLOAD(RESULT){0}};
static fields CHECK_FIELDS = {RESULT_CHECKS(RESULT){0}};
static fields NULL_TEST_FIELDS = {RESULT_NULL_TEST(NULL_TEST){0}};
static fields SUM_FIELDS = {RESULT_SUMS(RESULT){0}};
static fields OWN_FIELDS = {RESULT_OWN(OWN){0}};
static fields HOST_FIELDS = {RESULT(TEXT, hardware_label) RESULT(TEXT, gpu){0}};
/* clang-format on */

/* The element type of a list; `parts` are the fields of the list "components" at the end of each row. */
struct row_type {
    const struct json_field *fields;
    size_t size;
    const struct json_field *parts; /* NULL: none */
    size_t components;              /* offset of that list in the row */
};

static const struct row_type COMPONENT_ROW = {.fields = COMPONENT_FIELDS,
                                              .size = sizeof(struct result_component)};
static const struct row_type LAYER_ROW = {LAYER_FIELDS, sizeof(struct result_layer), SHARE_FIELDS,
                                          offsetof(struct result_layer, components)};
static const struct row_type OUTSIDE_ROW = {OUTSIDE_FIELDS, sizeof(struct result_layer),
                                            SHARE_FIELDS,
                                            offsetof(struct result_layer, components)};
static const struct row_type SETTING_ROW = {SETTING_FIELDS, sizeof(struct result_setting),
                                            PART_FIELDS,
                                            offsetof(struct result_setting, components)};

static struct row_type components_of(const struct row_type *type)
{
    return (struct row_type){.fields = type->parts, .size = sizeof(struct result_component)};
}

static const struct row_type WINDOW_ROW = {.fields = WINDOW_FIELDS,
                                           .size = sizeof(struct result_window)};

void layers_result_init(struct layers_result *result)
{
    *result = (struct layers_result){0};
    json_fields_clear(MODEL_FIELDS, result);
    json_fields_clear(WORKLOAD_FIELDS, result);
    json_fields_clear(CHECK_FIELDS, result);
    json_fields_clear(NULL_TEST_FIELDS, &result->null_test);
    json_fields_clear(SUM_FIELDS, result);
    json_fields_clear(IDLE_FIELDS, &result->idle);
    summary_conditions_init(&result->conditions);
    json_fields_clear(IDLE_FIELDS, &result->awake);
    json_fields_clear(OUTSIDE_FIELDS, &result->outside);
    json_fields_clear(OWN_FIELDS, &result->own);
    record_energy_from_json(NULL, &result->energy);
}

static void release_model(struct layers_result *result)
{
    for (size_t i = 0; i < result->layers_measured; i++)
        free(result->layers[i].components.items);
    for (size_t i = 0; i < result->setting_count; i++)
        free(result->settings[i].components.items);
    free(result->outside.components.items);
    free(result->components.items);
    free(result->prompts);
    free(result->layers);
    free(result->settings);
    free(result->windows);
    text_release(&result->devices);
    text_release(&result->host);
    jv_free(result->tree);
    layers_result_init(result);
}

void layers_results_release(struct layers_results *results)
{
    for (size_t i = 0; i < results->count; i++)
        release_model(&results->models[i]);
    free(results->models);
    *results = (struct layers_results){0};
}

/* ---- figures ---- */

const char *layers_result_name(const struct layers_result *result)
{
    const char *slash = result->model ? strrchr(result->model, '/') : NULL;
    return slash ? slash + 1 : result->model ? result->model : "unnamed model";
}

bool layers_result_is_estimated(const struct layers_result *result)
{
    return result->method && strcmp(result->method, "estimated") == 0;
}

const struct result_setting *layers_result_setting(const struct layers_result *result,
                                                   const struct result_window *window)
{
    return window->setting >= 0 && window->setting < (double)result->setting_count
               ? &result->settings[(size_t)window->setting]
               : NULL;
}

double layers_result_per_token(const struct layers_result *result, const char *phase,
                               double *plus_minus)
{
    double joules = 0, error = 0, tokens = 0;
    for (size_t i = 0; i < result->setting_count; i++) {
        const struct result_setting *setting = &result->settings[i];
        if (strcmp(text_or_empty(setting->phase), phase) != 0 || !is_known(setting->energy_j))
            continue;
        joules += setting->energy_j;
        error += setting->plus_minus;
        tokens += setting->tokens;
    }
    *plus_minus = tokens > 0 ? error / tokens : UNKNOWN;
    return tokens > 0 ? joules / tokens : UNKNOWN;
}

/* ---- writing ---- */

static void put_object(struct json *json, const char *key, const struct json_field *field,
                       const void *object)
{
    json_object(json, key);
    json_fields_write(json, field, object);
    json_object_end(json);
}

static void put_rows(struct json *json, const char *key, const struct row_type *type,
                     const void *rows, size_t count);

static void put_row(struct json *json, const struct row_type *type, const void *object)
{
    json_fields_write(json, type->fields, object);
    if (type->parts) {
        struct row_type row = components_of(type);
        const struct result_components *parts =
            (const void *)((const char *)object + type->components);
        put_rows(json, "components", &row, parts->items, parts->count);
    }
}

static void put_rows(struct json *json, const char *key, const struct row_type *type,
                     const void *rows, size_t count)
{
    json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        put_row(json, type, (const char *)rows + i * type->size);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_workload(struct json *json, const struct layers_result *result)
{
    json_object(json, "workload");
    json_array(json, "prompt_tokens");
    for (size_t i = 0; i < result->prompt_count; i++)
        json_number(json, NULL, result->prompts[i]);
    json_array_end(json);
    json_fields_write(json, WORKLOAD_FIELDS, result);
    json_object_end(json);
}

static void put_idle(struct json *json, const char *key, const struct result_idle *idle)
{
    if (!(idle->seconds > 0)) {
        json_null(json, key);
        return;
    }
    put_object(json, key, IDLE_FIELDS, idle);
}

static void put_model(struct json *json, const struct layers_result *result, bool with_windows)
{
    json_fields_write(json, MODEL_FIELDS, result);
    put_workload(json, result);
    json_fields_write(json, CHECK_FIELDS, result);
    put_object(json, "null_test", NULL_TEST_FIELDS, &result->null_test);
    record_energy_to_json(json, "energy", &result->energy);
    json_fields_write(json, SUM_FIELDS, result);
    put_idle(json, "idle", &result->idle);
    put_idle(json, "awake", &result->awake);
    if (is_known(result->conditions.seconds)) /* missing in older files */
        summary_conditions_to_json(json, "conditions", &result->conditions);
    put_rows(json, "components", &COMPONENT_ROW, result->components.items,
             result->components.count);
    put_rows(json, "layers", &LAYER_ROW, result->layers, result->layers_measured);
    json_object(json, "outside");
    if (result->has_outside)
        put_row(json, &OUTSIDE_ROW, &result->outside);
    json_object_end(json);
    put_rows(json, "settings", &SETTING_ROW, result->settings, result->setting_count);
    if (with_windows)
        put_rows(json, "windows", &WINDOW_ROW, result->windows, result->window_count);
    json_raw_indented(json, "devices", result->devices.length ? text_get(&result->devices) : "[]");
}

void layers_result_to_json(const struct layers_result *result, struct json *json)
{
    put_model(json, result, false);
}

static void put_results(struct json *json, const struct layers_results *results, bool several)
{
    const struct layers_result *first = &results->models[0];
    if (several)
        json_array(json, "models");
    for (size_t i = 0; i < results->count; i++) {
        if (several)
            json_object(json, NULL);
        put_model(json, &results->models[i], true);
        if (several)
            json_object_end(json);
    }
    if (several)
        json_array_end(json);
    json_string(json, "started", first->started);
    put_object(json, "own", OWN_FIELDS, &first->own);
    json_raw_indented(json, "host", first->host.length ? text_get(&first->host) : "null");
    json_string(json, "version", first->version);
}

void layers_results_fill(const struct layers_results *results, bool several, struct result *out)
{
    struct json json;
    result_begin(out, "layers");
    result_writer(out, &json);
    put_results(&json, results, several);
    result_end(out);
    if (!several)
        result_table(out, "components", NULL);
    for (size_t i = 0; i < results->count; i++)
        if (results->models[i].overhead_pct > RESULT_OVERHEAD_PCT_MAX)
            result_warn(out, "%s: the instrumentation overhead is above %.0f %%",
                        layers_result_name(&results->models[i]), RESULT_OVERHEAD_PCT_MAX);
}

enum err layers_result_save(const char *directory, const struct layers_result *result,
                            struct error *why)
{
    struct layers_result one = *result;
    char path[FILE_PATH_MAX];
    struct text json = {0};
    struct json writer;
    json_init(&writer, &json, true);
    json_object(&writer, NULL);
    put_results(&writer, &(struct layers_results){&one, 1}, false);
    json_object_end(&writer);
    run_path_file(directory, RUN_FILE_LAYERS, path, sizeof path);
    enum err err = run_dir_put(directory, strrchr(path, '/') + 1, &json, why);
    text_release(&json);
    return err;
}

/* ---- reading ---- */

static enum err read_rows(const struct jv *list, const struct row_type *type, void *rows,
                          size_t *count);

static enum err read_row(const struct jv *tree, const struct row_type *type, void *object)
{
    json_fields_clear(type->fields, object);
    json_fields_read(tree, type->fields, object);
    if (!type->parts)
        return ERR_OK;
    struct row_type row = components_of(type);
    struct result_components *parts = (void *)((char *)object + type->components);
    return read_rows(jv_get(tree, "components"), &row, &parts->items, &parts->count);
}

/* `rows`: a pointer to the list. */
static enum err read_rows(const struct jv *list, const struct row_type *type, void *rows,
                          size_t *count)
{
    size_t max = jv_is_array(list) ? jv_count(list) : 0;
    char *items = max ? calloc(max, type->size) : NULL;
    enum err err = max && !items ? ERR_NO_MEMORY : ERR_OK;
    memcpy(rows, &items, sizeof items);
    for (const struct jv *one = max ? jv_first(list) : NULL; one && !err; one = jv_next(one))
        err = read_row(one, type, items + (*count)++ * type->size);
    return err;
}

static enum err read_prompts(const struct jv *list, struct layers_result *out)
{
    size_t max = jv_count(list);
    out->prompts = max ? calloc(max, sizeof *out->prompts) : NULL;
    if (max && !out->prompts)
        return ERR_NO_MEMORY;
    for (const struct jv *one = max ? jv_first(list) : NULL; one; one = jv_next(one))
        out->prompts[out->prompt_count++] = jv_number(one);
    return ERR_OK;
}

static enum err read_lists(const struct jv *tree, struct layers_result *out)
{
    const struct jv *outside = jv_get(tree, "outside");
    enum err err = read_prompts(jv_path(tree, "workload.prompt_tokens"), out);
    out->has_outside = jv_count(outside) > 0;
    if (!err)
        err = read_rows(jv_get(tree, "components"), &COMPONENT_ROW, &out->components.items,
                        &out->components.count);
    if (!err)
        err = read_rows(jv_get(tree, "layers"), &LAYER_ROW, &out->layers, &out->layers_measured);
    if (!err)
        err = read_row(outside, &OUTSIDE_ROW, &out->outside);
    if (!err)
        err =
            read_rows(jv_get(tree, "settings"), &SETTING_ROW, &out->settings, &out->setting_count);
    if (!err)
        err = read_rows(jv_get(tree, "windows"), &WINDOW_ROW, &out->windows, &out->window_count);
    return err;
}

/* `run`: the top-level object of the file, which is the model itself if there is only one. */
static enum err read_model(const struct jv *tree, const struct jv *run, struct layers_result *out)
{
    const struct jv *devices = jv_get(tree, "devices"), *host = jv_get(run, "host");
    layers_result_init(out);
    json_fields_read(tree, MODEL_FIELDS, out);
    json_fields_read(jv_get(tree, "workload"), WORKLOAD_FIELDS, out);
    json_fields_read(tree, CHECK_FIELDS, out);
    json_fields_read(jv_get(tree, "null_test"), NULL_TEST_FIELDS, &out->null_test);
    record_energy_from_json(jv_get(tree, "energy"), &out->energy);
    json_fields_read(tree, SUM_FIELDS, out);
    json_fields_read(jv_get(tree, "idle"), IDLE_FIELDS, &out->idle);
    summary_conditions_from_json(jv_get(tree, "conditions"), &out->conditions);
    json_fields_read(jv_get(tree, "awake"), IDLE_FIELDS, &out->awake);
    json_fields_read(jv_get(run, "own"), OWN_FIELDS, &out->own);
    json_fields_read(host, HOST_FIELDS, out);
    out->started = jv_text(jv_get(run, "started"));
    out->version = jv_text(jv_get(run, "version"));
    enum err err = read_lists(tree, out);
    if (!err && devices)
        err = jv_print(devices, &out->devices);
    if (!err && host)
        err = jv_print(host, &out->host);
    return err;
}

static bool is_model(const struct jv *tree)
{
    return jv_is_array(jv_get(tree, "settings")) ||
           (jv_is_array(jv_get(tree, "layers")) && jv_is_array(jv_get(tree, "components")));
}

static enum err add_model(struct layers_results *into, const struct jv *tree, const struct jv *run)
{
    struct layers_result *models = realloc(into->models, (into->count + 1) * sizeof *models);
    if (!models)
        return ERR_NO_MEMORY;
    into->models = models;
    return read_model(tree, run, &models[into->count++]);
}

/* Takes ownership of the tree. */
static enum err add_models(struct layers_results *into, const char *path, struct jv *tree,
                           struct error *why)
{
    size_t before = into->count;
    enum err err = is_model(tree) ? add_model(into, tree, tree) : ERR_OK;
    for (const struct jv *one = jv_first(jv_get(tree, "models")); one && !err; one = jv_next(one))
        if (is_model(one))
            err = add_model(into, one, tree);
    if (into->count > before)
        into->models[before].tree = tree;
    else
        jv_free(tree);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    if (into->count == before)
        return err_set(why, ERR_BAD_VALUE,
                       "%s is not a result of ipw layers -o: it has no layers and no settings",
                       path);
    return ERR_OK;
}

static enum err add_file(struct layers_results *into, const char *path, struct error *why)
{
    struct text bytes = {0};
    struct error where = {0};
    struct jv *tree = NULL;
    enum err err = run_read(path, FILE_MAX, &bytes, why);
    if (!err && (err = jv_parse(text_get(&bytes), bytes.length, &tree, &where)))
        err_set(why, err, "%s is neither a run directory nor a result of ipw layers -o: %.120s",
                path, where.text);
    text_release(&bytes);
    return err ? err : add_models(into, path, tree, why);
}

/* Escapes characters in the directory's name that are special in a glob pattern. */
static enum err pattern_of(const char *directory, struct text *out)
{
    for (const char *at = directory; *at; at++)
        text_addf(out, strchr("*?[\\", *at) ? "\\%c" : "%c", *at);
    text_add(out, "/layers*.json");
    return out->failed ? ERR_NO_MEMORY : ERR_OK;
}

static enum err add_directory(struct layers_results *into, const char *path, struct error *why)
{
    struct text pattern = {0};
    glob_t found = {0};
    enum err err = pattern_of(path, &pattern);
    int code = err ? GLOB_NOSPACE : glob(text_get(&pattern), 0, NULL, &found);
    text_release(&pattern);
    if (code == GLOB_NOSPACE)
        err = err_no_memory(why);
    for (size_t i = 0; !code && !err && i < found.gl_pathc; i++)
        if (run_has_regular(found.gl_pathv[i])) /* otherwise the reader of the run reports it */
            err = add_file(into, found.gl_pathv[i], why);
    globfree(&found);
    return err;
}

enum err layers_results_load(const char *path, struct layers_results *into, struct error *why)
{
    size_t before = into->count;
    enum err err = jv_available(why);
    if (!err)
        err = run_has_directory(path) ? add_directory(into, path, why) : add_file(into, path, why);
    while (err && into->count > before)
        release_model(&into->models[--into->count]);
    return err;
}
