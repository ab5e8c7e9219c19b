/* Tables bind members to keys, so that writing and reading cannot diverge; the lists of layers_result.def generate both
 * the tables and the structs. */
#include "rundir/layers_result.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/memory.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "core/json_bind.h"
#include "core/result.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"

#define FILE_MAX ((size_t)256 << 20)

const char *const RESULT_PHASE[] = {"prefill", "decode"};

/* ---- the tables ---- */

#define ROW(of, type_, member_, path_)                                                             \
    {.path = path_, .type = FIELD_##type_, .offset = offsetof(struct of, member_)},
#define COMPONENT(type, member) ROW(result_component, type, member, #member)
#define LAYER(type, member)     ROW(result_layer, type, member, #member)
#define SETTING(type, member)   ROW(result_setting, type, member, #member)
#define WINDOW(type, member)    ROW(result_window, type, member, #member)
#define IDLE(type, member)      ROW(result_idle, type, member, #member)
#define NODE(type, member)      ROW(result_node, type, member, #member)
#define RESULT(type, member)    ROW(layers_result, type, member, #member)
#define WORKLOAD(type, member)  ROW(layers_result, type, member, "workload." #member)
#define NULL_TEST(type, member) ROW(layers_result, type, null_test.member, "null_test." #member)
/* Left out of the results of other models. */
#define OMITTED_ROW(type_, member_, path_)                                                         \
    {.path = path_,                                                                                \
     .type = FIELD_##type_,                                                                        \
     .flags = FIELD_OMIT,                                                                          \
     .offset = offsetof(struct layers_result, member_)},
#define ESTIMATE(type, member) OMITTED_ROW(type, estimate.member, "estimate." #member)
#define REST(type, member)     OMITTED_ROW(type, rest.member, "rest." #member)
#define OWN(type, member)      ROW(layers_result, type, own.member, "own." #member)
#define HOST(type, member)     ROW(layers_result, type, member, "host." #member)

typedef const struct json_field fields[];

/* clang-format off */
static fields COMPONENT_FIELDS = {RESULT_COMPONENT(COMPONENT){0}};
static fields SHARE_FIELDS = {RESULT_SHARE(COMPONENT){0}};
static fields PART_FIELDS = {COMPONENT(TEXT, name) COMPONENT(NUMBER, time_s)
                             COMPONENT(NUMBER, energy_j) COMPONENT(NUMBER, share){0}};
static fields OUTSIDE_FIELDS = {
    RESULT_LAYER_SUM(LAYER)
    BIND_LIST(result_layer, components.items, components.count, SHARE_FIELDS, "components"),
    {0}};
static fields LAYER_FIELDS = {
    LAYER(INTEGRAL, index)
    RESULT_LAYER_SUM(LAYER)
    BIND_LIST(result_layer, components.items, components.count, SHARE_FIELDS, "components"),
    {0}};
static fields SETTING_FIELDS = {
    RESULT_SETTING(SETTING)
    BIND_LIST(result_setting, components.items, components.count, PART_FIELDS, "components"),
    {0}};
static fields WINDOW_FIELDS = {RESULT_WINDOW(WINDOW){0}};
static fields IDLE_FIELDS = {RESULT_IDLE(IDLE){0}};
static fields NODE_FIELDS = {RESULT_NODE(NODE){0}};
/* clang-format on */

static bool is_measured(const struct json_field *field, const void *object)
{
    return ((const struct result_idle *)json_field_member(field, object))->seconds > 0;
}

static const struct json_custom IF_MEASURED = {.is_known = is_measured};

static void write_conditions(struct json *json, const char *key, const struct json_field *field,
                             const void *object)
{
    summary_conditions_to_json(json, key, json_field_member(field, object));
}

static enum err read_conditions(const struct json_place *at, const struct json_field *field,
                                const struct jv *value, void *object)
{
    (void)at, (void)field;
    summary_conditions_from_json(value, &((struct layers_result *)object)->conditions);
    return ERR_OK;
}

static void clear_conditions(const struct json_field *field, void *object)
{
    (void)field;
    summary_conditions_init(&((struct layers_result *)object)->conditions);
}

static bool has_conditions(const struct json_field *field, const void *object)
{
    (void)field;
    return is_known(((const struct layers_result *)object)->conditions.seconds);
}

static const struct json_custom CONDITIONS = {.write = write_conditions,
                                              .read = read_conditions,
                                              .is_known = has_conditions,
                                              .clear = clear_conditions};

/* {} if there is nothing outside the layers. */
static void write_outside(struct json *json, const char *key, const struct json_field *field,
                          const void *object)
{
    json_object(json, key);
    if (((const struct layers_result *)object)->has_outside)
        json_fields_write(json, field->fields, json_field_member(field, object));
    json_object_end(json);
}

static enum err read_outside(const struct json_place *at, const struct json_field *field,
                             const struct jv *value, void *object)
{
    struct layers_result *result = object;
    struct json_place place = json_place_in(at, field->path);
    result->has_outside = jv_count(value) > 0;
    return json_fields_read_at(&place, value, field->fields, &result->outside);
}

static void clear_outside(const struct json_field *field, void *object)
{
    struct layers_result *result = object;
    result->has_outside = false;
    json_fields_clear(field->fields, &result->outside);
}

static void release_outside(const struct json_field *field, void *object)
{
    json_fields_release(field->fields, &((struct layers_result *)object)->outside);
}

static const struct json_custom OUTSIDE = {.write = write_outside,
                                           .read = read_outside,
                                           .clear = clear_outside,
                                           .release = release_outside};

/* Compact JSON, as it is; `what` if there is none. */
static struct text *raw_of(const struct json_field *field, void *object)
{
    return (struct text *)(void *)((char *)object + field->offset);
}

static void write_raw(struct json *json, const char *key, const struct json_field *field,
                      const void *object)
{
    const struct text *raw = json_field_member(field, object);
    json_raw_indented(json, key, raw->length ? text_get(raw) : field->what);
}

static enum err read_raw(const struct json_place *at, const struct json_field *field,
                         const struct jv *value, void *object)
{
    (void)at;
    jv_print(value, raw_of(field, object));
    return ERR_OK;
}

static void clear_raw(const struct json_field *field, void *object)
{
    *raw_of(field, object) = (struct text){0};
}

static void release_raw(const struct json_field *field, void *object)
{
    text_release(raw_of(field, object));
}

static const struct json_custom RAW = {
    .write = write_raw, .read = read_raw, .clear = clear_raw, .release = release_raw};

/* clang-format off */
static fields MODEL_FIELDS = {
    RESULT_MODEL(RESULT)
    BIND_NUMBERS(layers_result, prompts, prompt_count, "workload.prompt_tokens"),
    RESULT_WORKLOAD(WORKLOAD)
    RESULT_CHECKS(RESULT)
    BIND_TEXT(layers_result, closure_unknown, "closure_unknown", .flags = FIELD_OMIT),
    RESULT_NULL_TEST(NULL_TEST)
    BIND_OBJECT(layers_result, energy, RECORD_ENERGY_FIELDS, "energy"),
    RESULT_SUMS(RESULT)
    BIND_OBJECT(layers_result, idle, IDLE_FIELDS, "idle", .flags = FIELD_NULL,
                .custom = &IF_MEASURED),
    BIND_OBJECT(layers_result, awake, IDLE_FIELDS, "awake", .flags = FIELD_NULL,
                .custom = &IF_MEASURED),
    BIND_CUSTOM(layers_result, conditions, CONDITIONS, "conditions", .flags = FIELD_OMIT),
    BIND_LIST(layers_result, components.items, components.count, COMPONENT_FIELDS, "components"),
    BIND_LIST(layers_result, layers, layers_measured, LAYER_FIELDS, "layers"),
    BIND_CUSTOM(layers_result, outside, OUTSIDE, "outside", .fields = OUTSIDE_FIELDS),
    BIND_LIST(layers_result, settings, setting_count, SETTING_FIELDS, "settings"),
    OMITTED_ROW(TEXT, inputs, "inputs")
    BIND_LIST(layers_result, nodes, node_count, NODE_FIELDS, "nodes", .flags = FIELD_OMIT),
    RESULT_REST(REST)
    RESULT_ESTIMATE(ESTIMATE)
    {0}};
/* Left out in a summary of the result. */
static fields WINDOWS_FIELDS = {
    BIND_LIST(layers_result, windows, window_count, WINDOW_FIELDS, "windows"), {0}};
static fields DEVICES_FIELDS = {
    BIND_CUSTOM(layers_result, devices, RAW, "devices", .what = "[]"), {0}};
/* Of the measurement. */
static fields RUN_FIELDS = {
    RESULT(TEXT, started)
    RESULT_OWN(OWN)
    BIND_CUSTOM(layers_result, host, RAW, "host", .what = "null"),
    RESULT(TEXT, version)
    {0}};
static fields HOST_FIELDS = {HOST(TEXT, hardware_label) HOST(TEXT, gpu){0}}; /* written as RAW */
/* clang-format on */

static const struct json_field *const TABLES[] = {MODEL_FIELDS, WINDOWS_FIELDS, DEVICES_FIELDS,
                                                  RUN_FIELDS, HOST_FIELDS};
enum { TABLE_COUNT = COUNT_OF(TABLES) };

void layers_result_init(struct layers_result *result)
{
    *result = (struct layers_result){0};
    for (size_t i = 0; i < TABLE_COUNT; i++)
        json_fields_clear(TABLES[i], result);
}

static void release_model(struct layers_result *result)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        json_fields_release(TABLES[i], result);
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
    return result->method && str_equal(result->method, "estimated");
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
        if (!str_equal(text_or_empty(setting->phase), phase) || !is_known(setting->energy_j))
            continue;
        joules += setting->energy_j;
        error += setting->plus_minus;
        tokens += setting->tokens;
    }
    *plus_minus = tokens > 0 ? error / tokens : UNKNOWN;
    return tokens > 0 ? joules / tokens : UNKNOWN;
}

/* ---- writing ---- */

static void put_model(struct json *json, const struct layers_result *result, bool with_windows)
{
    json_fields_write(json, MODEL_FIELDS, result);
    if (with_windows)
        json_fields_write(json, WINDOWS_FIELDS, result);
    json_fields_write(json, DEVICES_FIELDS, result);
}

void layers_result_to_json(const struct layers_result *result, struct json *json)
{
    put_model(json, result, false);
}

static void put_results(struct json *json, const struct layers_results *results, bool several)
{
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
    json_fields_write(json, RUN_FIELDS, &results->models[0]);
}

void layers_results_fill(const struct layers_results *results, bool several, struct result *out)
{
    struct json json;
    result_begin(out, "layers");
    result_writer(out, &json);
    put_results(&json, results, several);
    result_end(out);
    if (!several)
        result_table(out, results->models[0].node_count ? "nodes" : "components", NULL);
    for (size_t i = 0; i < results->count; i++)
        if (results->models[i].overhead_pct > RESULT_OVERHEAD_PCT_MAX && !results->models[i].inputs)
            result_warn(out, "%s: the instrumentation overhead is above %.0f %%",
                        layers_result_name(&results->models[i]), RESULT_OVERHEAD_PCT_MAX);
}

enum err layers_result_save(const char *directory, const struct layers_result *result,
                            struct error *why)
{
    struct layers_result one = *result;
    struct text json = {0};
    struct json writer;
    json_init(&writer, &json, true);
    json_object(&writer, NULL);
    put_results(&writer, &(struct layers_results){&one, 1}, false);
    json_object_end(&writer);
    char *path = run_path_file(directory, RUN_FILE_LAYERS);
    enum err err = run_dir_put(directory, str_last_part(path), &json, why);
    free(path);
    text_release(&json);
    return err;
}

/* ---- reading ---- */

/* `run`: the top-level object of the file, which is the model itself if there is only one. */
static void read_model(const struct jv *tree, const struct jv *run, struct layers_result *out)
{
    layers_result_init(out);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        bool is_of_run = TABLES[i] == RUN_FIELDS || TABLES[i] == HOST_FIELDS;
        json_fields_read(is_of_run ? run : tree, TABLES[i], out);
    }
    if (!is_known(out->idle_j)) { /* earlier versions have a verdict without idle */
        out->closure = UNKNOWN;
        out->closure_pass = -1;
    }
}

static bool is_model(const struct jv *tree)
{
    return jv_is_array(jv_get(tree, "settings")) ||
           (jv_is_array(jv_get(tree, "layers")) && jv_is_array(jv_get(tree, "components")));
}

static void add_model(struct layers_results *into, const struct jv *tree, const struct jv *run)
{
    into->models = xrealloc(into->models, (into->count + 1) * sizeof *into->models);
    read_model(tree, run, &into->models[into->count++]);
}

/* Takes ownership of the tree. */
static enum err add_models(struct layers_results *into, const char *path, struct jv *tree,
                           struct error *why)
{
    size_t before = into->count;
    if (is_model(tree))
        add_model(into, tree, tree);
    JV_EACH (one, jv_first(jv_get(tree, "models")))
        if (is_model(one))
            add_model(into, one, tree);
    if (into->count > before)
        into->models[before].tree = tree;
    else
        jv_free(tree);
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
static void pattern_of(const char *directory, struct text *out)
{
    for (const char *at = directory; *at; at++)
        text_addf(out, strchr("*?[\\", *at) ? "\\%c" : "%c", *at);
    text_add(out, "/layers*.json");
}

static enum err add_directory(struct layers_results *into, const char *path, struct error *why)
{
    struct text pattern = {0};
    glob_t found = {0};
    enum err err = ERR_OK;
    pattern_of(path, &pattern);
    int code = glob(text_get(&pattern), 0, NULL, &found);
    text_release(&pattern);
    if (code == GLOB_NOSPACE)
        memory_need(NULL);
    for (size_t i = 0; !code && !err && i < found.gl_pathc; i++)
        if (run_has_regular(found.gl_pathv[i])) /* otherwise the reader of the run reports it */
            err = add_file(into, found.gl_pathv[i], why);
    globfree(&found);
    return err;
}

enum err layers_results_load(const char *path, struct layers_results *into, struct error *why)
{
    size_t before = into->count;
    enum err err =
        run_has_directory(path) ? add_directory(into, path, why) : add_file(into, path, why);
    while (err && into->count > before)
        release_model(&into->models[--into->count]);
    return err;
}
