/* The table of a summary's figures, generated from record.def, and summary.json. */
#include "rundir/summary.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/json.h"
#include "core/json_bind.h"
#include "core/result.h"
#include "core/secret.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/traces.h"

#define SUMMARY_FILE "summary.json"

/* A summary has a few kilobytes, plus the service's information about itself. */
#define SUMMARY_BYTES_MAX ((size_t)16 << 20)

/* ---- lists ---- */

static const struct json_field STATISTIC_FIELDS[] = {
    BIND_NUMBER(summary_statistic, avg, "avg"),
    BIND_NUMBER(summary_statistic, median, "median"),
    BIND_NUMBER(summary_statistic, min, "min"),
    BIND_NUMBER(summary_statistic, max, "max"),
    BIND_NUMBER(summary_statistic, std, "std"),
    BIND_NUMBER(summary_statistic, p95, "p95"),
    BIND_INTEGER(summary_statistic, count, "count"),
    {0},
};

static void write_statistics(struct json *json, const char *key, const struct json_field *field,
                             const void *object)
{
    const struct summary *summary = object;
    (void)field;
    json_object(json, key);
    for (size_t place = 0; place < RECORD_STATISTICS; place++) {
        enum record_statistic i = record_statistic_at(place);
        if (summary->statistics[i].count)
            json_fields_write_object(json, record_statistic(i)->statistic_key, STATISTIC_FIELDS,
                                     &summary->statistics[i]);
    }
    json_object_end(json);
}

static enum err read_statistics(const struct json_place *at, const struct json_field *field,
                                const struct jv *value, void *object)
{
    (void)at, (void)field;
    for (int i = 0; i < RECORD_STATISTICS; i++) {
        const char *key = record_statistic((enum record_statistic)i)->statistic_key;
        struct summary_statistic statistic;
        json_fields_clear(STATISTIC_FIELDS, &statistic);
        (void)json_fields_read(jv_get(value, key), STATISTIC_FIELDS, &statistic);
        if (statistic.count >= 1)
            ((struct summary *)object)->statistics[i] = statistic;
    }
    return ERR_OK;
}

static const struct json_custom STATISTICS = {.write = write_statistics, .read = read_statistics};

static const struct json_field IDLE_DEVICE_FIELDS[] = {
    BIND_TEXT(summary_idle_device, id, "id"),
    BIND_NUMBER(summary_idle_device, watts, "power_w"),
    BIND_NUMBER(summary_idle_device, plus_minus, "plus_minus"),
    {0},
};

static const struct json_field IDLE_FIELDS[] = {
    BIND_NUMBER(summary_idle, seconds, "seconds"),
    BIND_LIST(summary_idle, devices, count, IDLE_DEVICE_FIELDS, "devices"),
    {0},
};

static bool is_idle_known(const struct json_field *field, const void *object)
{
    return ((const struct summary_idle *)json_field_member(field, object))->known;
}

static void write_idle(struct json *json, const char *key, const struct json_field *field,
                       const void *object)
{
    json_fields_write_object(json, key, IDLE_FIELDS, json_field_member(field, object));
}

static enum err read_idle(const struct json_place *at, const struct json_field *field,
                          const struct jv *value, void *object)
{
    struct summary_idle *idle = &((struct summary *)object)->idle;
    (void)at, (void)field;
    idle->known = jv_is_object(value);
    json_fields_clear(IDLE_FIELDS, idle);
    return json_fields_read(value, IDLE_FIELDS, idle);
}

static const struct json_custom IDLE = {
    .write = write_idle, .read = read_idle, .is_known = is_idle_known};

static const struct json_field DEVICE_FIELDS[] = {
    BIND_TEXT(summary_device, id, "id"),
    BIND_FLAG(summary_device, in_total, "in_total"),
    BIND_OBJECT(summary_device, energy, RECORD_ENERGY_FIELDS, "energy"),
    BIND_NUMBER(summary_device, power_mean_w, "power_mean_w"),
    BIND_NUMBER(summary_device, power_max_w, "power_max_w"),
    BIND_NUMBER(summary_device, residual, "cross_check_residual"),
    {0},
};

/* ---- conditions ---- */

static bool has_activity(const struct json_field *field, const void *object)
{
    (void)field;
    return ((const struct summary_condition *)object)->activity_source[0];
}

static const struct json_custom IF_ACTIVE = {.is_known = has_activity};

#define BIND_ACTIVITY(activity_, path_) BIND_NUMBER(summary_condition, activity[activity_], path_)

static const struct json_field ACTIVITY_FIELDS[] = {
    BIND_CHARS(summary_condition, activity_source, "source", .flags = FIELD_ANY_TEXT),
    BIND_ACTIVITY(SUMMARY_SM_ACTIVE, "sm_active"),
    BIND_ACTIVITY(SUMMARY_SM_OCCUPANCY, "sm_occupancy"),
    BIND_ACTIVITY(SUMMARY_DRAM_ACTIVE, "dram_active"),
    BIND_ACTIVITY(SUMMARY_TENSOR_ACTIVE, "tensor_active"),
    BIND_ACTIVITY(SUMMARY_FP64_ACTIVE, "fp64_active"),
    BIND_ACTIVITY(SUMMARY_FP32_ACTIVE, "fp32_active"),
    BIND_ACTIVITY(SUMMARY_FP16_ACTIVE, "fp16_active"),
    BIND_ACTIVITY(SUMMARY_UTILIZATION, "utilization"),
    {0},
};

static const struct json_field CONDITION_FIELDS[] = {
    BIND_CHARS(summary_condition, id, "id", .flags = FIELD_ANY_TEXT),
    BIND_NUMBER(summary_condition, idle_w, "idle_w"),
    BIND_NUMBER(summary_condition, idle_after_w, "idle_after_w"),
    BIND_NUMBER(summary_condition, temperature_begin_c, "temperature_begin_c"),
    BIND_NUMBER(summary_condition, temperature_end_c, "temperature_end_c"),
    BIND_NUMBER(summary_condition, clock_mhz, "clock_mhz"),
    BIND_NUMBER(summary_condition, throttled_share, "throttled_share"),
    /* Its members are in the same struct. */
    {.path = "activity",
     .type = FIELD_OBJECT,
     .fields = ACTIVITY_FIELDS,
     .flags = FIELD_NULL,
     .custom = &IF_ACTIVE},
    {0},
};

static const struct json_field GPU_PROCESS_FIELDS[] = {
    BIND_CHARS(summary_gpu_process, device, "device", .flags = FIELD_ANY_TEXT),
    BIND_INTEGER(summary_gpu_process, pid, "pid", .flags = FIELD_DEFAULT),
    BIND_CHARS(summary_gpu_process, name, "name", .flags = FIELD_NULL | FIELD_ANY_TEXT),
    BIND_NUMBER(summary_gpu_process, memory_bytes, "memory_bytes"),
    BIND_NUMBER(summary_gpu_process, utilization_pct, "utilization_pct"),
    {0},
};

static void write_severity(struct json *json, const char *key, const struct json_field *field,
                           const void *object)
{
    (void)field;
    json_string(json, key, finding_severity_name(((const struct finding *)object)->severity));
}

static enum err read_severity(const struct json_place *at, const struct json_field *field,
                              const struct jv *value, void *object)
{
    (void)at, (void)field;
    ((struct finding *)object)->severity = finding_severity_named(text_or_empty(jv_text(value)));
    return ERR_OK;
}

static void clear_severity(const struct json_field *field, void *object)
{
    (void)field;
    ((struct finding *)object)->severity = finding_severity_named("");
}

static const struct json_custom SEVERITY = {
    .write = write_severity, .read = read_severity, .clear = clear_severity};

static const struct json_field FINDING_FIELDS[] = {
    BIND_CHARS(finding, code, "code", .flags = FIELD_ANY_TEXT),
    BIND_CUSTOM(finding, severity, SEVERITY, "severity"),
    BIND_CHARS(finding, text, "text", .flags = FIELD_ANY_TEXT),
    {0},
};

static const struct json_field QUALITY_FIELDS[] = {
    BIND_CHARS(summary_quality, name, "name", .flags = FIELD_ANY_TEXT),
    BIND_NUMBER(summary_quality, value, "value"),
    BIND_NUMBER(summary_quality, plus_minus, "plus_minus"),
    BIND_INTEGER(summary_quality, count, "count"),
    BIND_ENUM(summary_quality, better, better_name, BETTER_LOWER, 3, "better"),
    BIND_CHARS(summary_quality, reason, "reason", .flags = FIELD_OMIT | FIELD_ANY_TEXT),
    {0},
};

/* ---- the table ---- */

#define AT(member, type_, path_)                                                                   \
    .at = {.path = (path_), .type = FIELD_##type_, .offset = offsetof(struct summary, member)}

/* Rows of lists, by their name in record.def. */
#define LIST_INTERVAL(path_)                                                                       \
    {.path = (path_),                                                                              \
     .type = FIELD_VECTOR,                                                                         \
     .offset = offsetof(struct summary, accuracy_interval),                                        \
     .most = sizeof(struct summary_interval) / sizeof(double)}
#define LIST_GPU_PROCESSES(path_)                                                                  \
    BIND_ARRAY(summary, conditions.gpu_processes, conditions.gpu_process_count,                    \
               GPU_PROCESS_FIELDS, path_)
#define LIST_CONDITIONS(path_)                                                                     \
    BIND_ARRAY(summary, conditions.devices, conditions.device_count, CONDITION_FIELDS, path_)
#define LIST_FINDINGS(path_)                                                                       \
    BIND_ARRAY(summary, conditions.findings, conditions.finding_count, FINDING_FIELDS, path_)
#define LIST_QUALITIES(path_)                                                                      \
    BIND_ARRAY(summary, qualities, quality_count, QUALITY_FIELDS, path_, .flags = FIELD_OMIT)
#define LIST_STATISTICS(path_) BIND_CUSTOM(summary, statistics, STATISTICS, path_)
#define LIST_IDLE(path_)       BIND_CUSTOM(summary, idle, IDLE, path_, .flags = FIELD_NULL)
#define LIST_DEVICES(path_)    BIND_LIST(summary, devices, device_count, DEVICE_FIELDS, path_)

const struct summary_field SUMMARY_FIELDS[] = {
#define SUMMARY(member, type_, path_, ...)                                                         \
    {AT(member, type_, path_), .role = SUMMARY_IS_FIELD, VIEWS(__VA_ARGS__)},
#define SUMMARY_PART(member, type_, path_, ...)                                                    \
    {AT(member, type_, path_), .role = SUMMARY_IS_FIELD, VIEWS(__VA_ARGS__)},
#define SUMMARY_NULLABLE(path_) {.at = {.path = (path_)}, .role = SUMMARY_IS_NULLABLE},
#define SUMMARY_LIST(name, path_, ...)                                                             \
    {.at = LIST_##name(path_), .role = SUMMARY_IS_LIST, VIEWS(__VA_ARGS__)},
#define INDEX(name, heading) (.index_name = #name, )
#define GAUGE(name, help, label)                                                                   \
    (.gauge_name = (name), .gauge_help = (help), .gauge_label = (label), )
#define LABEL(label_, heading_, unit_, better_)                                                    \
    (.label = (label_), .heading = (heading_), .unit = (unit_), .better = (better_), )
#define REPORT (.report = true, )
#include "rundir/record.def"
    {.at = {.path = NULL}},
};

const char *const SUMMARY_HEADINGS[SUMMARY_INDEXES] = {
#define INDEX(name, heading) (heading, )
#include "rundir/record.def"
};

/* ---- order ---- */

static const char *const INDEX_NAMES[] = {
#define INDEX(name, heading) (#name, )
#include "rundir/record.def"
};
static const char *const FIRST_INDEXES[] = {
#define FROZEN_INDEXES(...) __VA_ARGS__
#include "rundir/record.def"
};
static const char *const FIRST_GAUGES[] = {
#define FROZEN_GAUGES(...) __VA_ARGS__
#include "rundir/record.def"
};

/* Rows by place, and places of columns; built once. */
static const struct summary_field *INDEXES[SUMMARY_INDEXES], *GAUGES[SUMMARY_GAUGES];
static size_t INDEX_PLACES[SUMMARY_INDEXES];

/* Several gauges of one name differ in a label. */
static void order_gauges(const struct summary_field *const *gauges)
{
    char texts[SUMMARY_GAUGES][128];
    const char *names[SUMMARY_GAUGES];
    size_t order[SUMMARY_GAUGES];
    for (size_t i = 0; i < SUMMARY_GAUGES; i++) {
        const char *label = gauges[i]->gauge_label;
        chars_format(texts[i], label[0] ? "%s{%s}" : "%s%s", gauges[i]->gauge_name, label);
        names[i] = texts[i];
    }
    record_order(names, SUMMARY_GAUGES, FIRST_GAUGES, COUNT_OF(FIRST_GAUGES), order);
    for (size_t i = 0; i < SUMMARY_GAUGES; i++)
        GAUGES[i] = gauges[order[i]];
}

static void find_views(void)
{
    const struct summary_field *indexes[SUMMARY_INDEXES], *gauges[SUMMARY_GAUGES];
    size_t index_count = 0, gauge_count = 0, order[SUMMARY_INDEXES];
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++) {
        if (field->index_name)
            indexes[index_count++] = field;
        if (field->gauge_name)
            gauges[gauge_count++] = field;
    }
    record_order(INDEX_NAMES, SUMMARY_INDEXES, FIRST_INDEXES, COUNT_OF(FIRST_INDEXES), order);
    for (size_t i = 0; i < SUMMARY_INDEXES; i++) {
        INDEXES[i] = indexes[order[i]];
        INDEX_PLACES[order[i]] = i;
    }
    order_gauges(gauges);
}

static void init_views(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_views);
}

const struct summary_field *summary_index(size_t place)
{
    init_views();
    return INDEXES[place];
}

size_t summary_index_place(enum summary_index index)
{
    init_views();
    return INDEX_PLACES[index];
}

const struct summary_field *summary_gauge(size_t place)
{
    init_views();
    return GAUGES[place];
}

static void put_label(struct json *json, const char *key, const char *label, const char *heading,
                      const char *unit)
{
    json_object(json, key);
    json_string(json, "label", label);
    json_string(json, "heading", heading);
    json_string(json, "unit", unit);
    json_object_end(json);
}

void summary_labels_to_json(struct json *json)
{
    json_object(json, "columns");
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++)
        if (field->column_kind == COLUMN_NUMBER)
            put_label(json, field->name, field->label, field->label,
                      field->unit[0] ? field->unit : "1");
    json_object_end(json);
    json_object(json, "figures");
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++)
        if (field->label)
            put_label(json,
                      field->index_name ? field->index_name : strrchr(field->at.path, '.') + 1,
                      field->label, field->heading, field->unit);
    json_object_end(json);
}

const char *summary_index_text(const struct summary_field *column, const struct summary *summary)
{
    if (!summary)
        return NULL;
    const char *text = json_field_text(&column->at, summary);
    bool is_dataset = column->at.offset == offsetof(struct summary, dataset_name);
    return text || !is_dataset ? text : summary->dataset;
}

void summary_init(struct summary *summary)
{
    memset(summary, 0, sizeof *summary);
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++)
        if (field->role == SUMMARY_IS_FIELD)
            json_field_clear(&field->at, summary);
    summary->accuracy_interval = (struct summary_interval){UNKNOWN, UNKNOWN};
}

void summary_release(struct summary *summary)
{
    free(summary->devices);
    free(summary->idle.devices);
    jv_free(summary->tree);
    summary_init(summary);
}

static bool is_below(const char *path, const char *object)
{
    size_t length = strlen(object);
    return strncmp(path, object, length) == 0 && path[length] == '.';
}

/* ---- writing ---- */

/* Number of rows of the object; *known if one of them is. */
static size_t rows_below(const struct summary_field *object, const struct summary *summary,
                         bool *known)
{
    size_t count = 0;
    *known = false;
    for (const struct summary_field *row = object + 1;
         row->at.path && is_below(row->at.path, object->at.path); row++, count++)
        *known = *known || json_field_is_known(&row->at, summary);
    return count;
}

void summary_to_json(const struct summary *summary, bool pretty, struct text *out)
{
    struct json json;
    struct json_field_writer writer = {.json = &json};
    json_init(&json, out, pretty);
    json_object(&json, NULL);
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++) {
        bool known;
        size_t rows = field->role == SUMMARY_IS_NULLABLE ? rows_below(field, summary, &known) : 0;
        if (!rows) {
            if (!json_field_is_omitted(&field->at, summary))
                json_field_write(&writer, &field->at, summary);
        } else if (!known) {
            json_null(&json, json_field_enter(&writer, field->at.path));
            field += rows;
        }
    }
    json_field_writer_end(&writer);
    if (summary->traces)
        traces_summary_to_json(summary->traces, &json);
    json_object_end(&json);
    text_add(out, pretty ? "\n" : "");
}

const struct summary_quality *summary_quality_find(const struct summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->quality_count; i++)
        if (str_equal(summary->qualities[i].name, name))
            return &summary->qualities[i];
    return NULL;
}

const struct summary_quality *summary_quality_first(const struct summary *summary)
{
    for (size_t i = 0; i < summary->quality_count; i++)
        if (is_known(summary->qualities[i].value))
            return &summary->qualities[i];
    return NULL;
}

void summary_put_report(const struct summary *summary, struct result *out)
{
    struct json json;
    struct json_field_writer writer = {.json = &json};
    result_writer(out, &json);
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++) {
        if (!field->report || json_field_is_omitted(&field->at, summary))
            continue;
        struct json_field row = field->at;
        row.path += strlen("ipw.");
        json_field_write(&writer, &row, summary);
        if (str_equal(row.path, "conservation_error")) /* placed first for scripts */
            json_bool(&json, json_field_enter(&writer, "interrupted"), summary->interrupted == 1);
    }
    json_field_writer_end(&writer);
    result_hide_secrets(out);
}

/* ---- conditions alone ---- */

/* The rows below "ipw.conditions", as rows of struct summary_conditions; built once. */
static struct json_field CONDITIONS[COUNT_OF(SUMMARY_FIELDS)];

static void find_conditions(void)
{
    static const char OBJECT[] = "ipw.conditions";
    struct json_field *row = CONDITIONS;
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++)
        if (is_below(field->at.path, OBJECT)) {
            *row = field->at;
            row->path += sizeof OBJECT;
            row->former += row->former ? sizeof OBJECT : 0;
            row->offset -= offsetof(struct summary, conditions);
            row->count -= row->size ? offsetof(struct summary, conditions) : 0;
            row++;
        }
}

static const struct json_field *condition_fields(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_conditions);
    return CONDITIONS;
}

void summary_conditions_init(struct summary_conditions *conditions)
{
    *conditions = (struct summary_conditions){0};
    json_fields_clear(condition_fields(), conditions);
}

void summary_conditions_find(struct summary_conditions *conditions, struct findings *found)
{
    findings_order(found->items, found->count);
    conditions->finding_count =
        found->count < SUMMARY_FINDINGS_MAX ? found->count : SUMMARY_FINDINGS_MAX;
    for (size_t i = 0; i < conditions->finding_count; i++)
        conditions->findings[i] = found->items[i];
}

void summary_conditions_to_json(struct json *json, const char *key,
                                const struct summary_conditions *conditions)
{
    json_fields_write_object(json, key, condition_fields(), conditions);
}

void summary_conditions_from_json(const struct jv *value, struct summary_conditions *out)
{
    summary_conditions_init(out);
    (void)json_fields_read(value, condition_fields(), out);
}

bool summary_is_complete(const char *directory)
{
    struct summary summary;
    bool complete = summary_load(directory, &summary, NULL) == ERR_OK && summary.interrupted == 0;
    summary_release(&summary);
    return complete;
}

/* ---- cost and emissions ---- */

double summary_device_seconds(const struct summary *summary)
{
    double gpus = 0;
    if (is_known(summary->device_seconds))
        return summary->device_seconds;
    for (size_t i = 0; i < summary->device_count; i++)
        gpus += str_starts(text_or_empty(summary->devices[i].id), "gpu");
    return summary->seconds * (gpus ? gpus : 1);
}

/* For a figure in joules per query or token; its relative ± is that of the run's energy. */
static struct charge charge_each(const struct summary *run, double joules, double count,
                                 double times)
{
    double error = ratio(run->energy.plus_minus, run->energy.joules);
    double device_s = ratio(summary_device_seconds(run), count);
    return tariff_charge(&run->tariff, times * joules, times * joules * error, times * device_s);
}

/* Unknown unless all tokens were counted: the cost per token would be too high. */
static double tokens_if_all(const struct summary *run, double tokens, enum record_statistic which)
{
    return run->statistics[which].count == run->completed ? tokens : UNKNOWN;
}

void summary_set_repeat(struct summary *summary, const struct run_repeat *repeat)
{
    if (repeat->group[0]) {
        summary->repeat_group = repeat->group;
        summary->repeat_number = repeat->number;
    }
    if (repeat->series[0]) {
        summary->series = repeat->series;
        summary->series_side = repeat->side == 'a' ? "a" : "b";
    }
    if (repeat->until_decided)
        summary->series_until_decided = repeat->until_decided;
}

void summary_charge(struct summary *run)
{
    enum { MILLION = 1000000 };
    double all = summary_device_seconds(run);
    run->electricity_cost = tariff_electricity(&run->tariff, run->energy.joules);
    run->charge = tariff_charge(&run->tariff, run->energy.joules, run->energy.plus_minus, all);
    run->per_query = charge_each(run, run->joules_per_query, integer_number(run->completed), 1);
    run->per_million_input =
        charge_each(run, run->joules_per_input_token,
                    tokens_if_all(run, run->input_tokens, STATISTIC_INPUT), MILLION);
    run->per_million_output =
        charge_each(run, run->joules_per_output_token,
                    tokens_if_all(run, run->output_tokens, STATISTIC_OUTPUT), MILLION);
}

static bool copy_if_equal(const struct summary *parts, size_t count, const struct json_field *field)
{
    const char *first = text_or_empty(json_field_text(field, &parts[0]));
    for (size_t i = 1; i < count; i++)
        if (!str_equal(first, text_or_empty(json_field_text(field, &parts[i]))))
            return false;
    return true;
}

void summary_common(const struct summary *parts, size_t count, struct summary *out)
{
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++)
        if (field->role == SUMMARY_IS_FIELD && !str_starts(field->at.path, "ipw.") &&
            (field->at.type != FIELD_TEXT || copy_if_equal(parts, count, &field->at)))
            json_field_copy(&field->at, &parts[0], out);
}

enum err summary_save(const char *directory, const struct summary *summary, struct error *why)
{
    struct text text = {0};
    summary_to_json(summary, true, &text);
    enum err err = run_dir_put(directory, SUMMARY_FILE, &text, why);
    text_release(&text);
    return err;
}

/* ---- reading ---- */

int64_t summary_written_at(const char *directory)
{
    struct stat status;
    char *path = run_path_file(directory, RUN_FILE_SUMMARY);
    bool found = run_stat(path, &status);
    free(path);
    if (!found)
        return INTEGER_UNKNOWN;
    return (int64_t)status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec;
}

static bool is_in_records(const char *path)
{
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++)
        if (field->role == ROLE_FIELD && str_equal(field->at.path, path))
            return true;
    return false;
}

struct jv *summary_constants(const struct summary *summary, const char *model)
{
    struct jv *tree = jv_new_object();
    for (const struct summary_field *field = SUMMARY_FIELDS; summary && field->at.path; field++)
        if (field->role == SUMMARY_IS_FIELD && json_field_is_known(&field->at, summary) &&
            is_in_records(field->at.path))
            json_field_put(&field->at, record_base(model), summary, tree);
    return tree;
}

/* Into a summary in which everything is unknown. */
static enum err read_tree(struct jv *tree, struct summary *out, struct error *why)
{
    out->tree = tree;
    if (!jv_is_object(tree)) {
        summary_release(out);
        return err_set(why, ERR_BAD_VALUE, "not a JSON object");
    }
    struct json_field_reader reader = {.root = tree};
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++)
        if (field->role != SUMMARY_IS_NULLABLE)
            (void)json_member_read(json_field_find(&reader, &field->at), &field->at, out);
    return ERR_OK;
}

enum err summary_from_json(struct jv *tree, struct summary *out, struct error *why)
{
    summary_init(out);
    return read_tree(tree, out, why);
}

enum err summary_load(const char *directory, struct summary *out, struct error *why)
{
    struct jv *tree = NULL;
    struct error reason = {0};
    char *path = run_path_file(directory, RUN_FILE_SUMMARY);
    summary_init(out);
    enum err err = run_has_file(path)
                       ? run_read_json(path, SUMMARY_BYTES_MAX, &tree, why)
                       : err_set(why, ERR_NOT_FOUND, "no %s in %s", SUMMARY_FILE, directory);
    if (!err && (err = read_tree(tree, out, &reason)))
        err_set(why, err, "%s: %s", path, reason.text);
    free(path);
    return err;
}

/* ---- the prediction ---- */

enum { ESTIMATE_BYTES_MAX = 64 << 20 };

#define ROW(type_, member, path_)                                                                  \
    {.path = path_, .type = FIELD_##type_, .offset = offsetof(struct run_estimate, member)},
static const struct json_field ESTIMATE_FIELDS[] = {RUN_ESTIMATE(ROW){0}};
#undef ROW

enum err run_estimate_load(const char *directory, struct run_estimate *out, struct error *why)
{
    char *path = run_path_file(directory, RUN_FILE_ESTIMATE);
    *out = (struct run_estimate){0};
    enum err err = run_read_json(path, ESTIMATE_BYTES_MAX, &out->tree, why);
    free(path);
    if (!err && !jv_is_object(jv_get(out->tree, "request")))
        err = err_set(why, ERR_BAD_VALUE, "estimate.json does not hold an estimate of a request");
    json_fields_clear(ESTIMATE_FIELDS, out);
    json_fields_read(out->tree, ESTIMATE_FIELDS, out);
    return err;
}

void run_estimate_release(struct run_estimate *estimate)
{
    jv_free(estimate->tree);
    *estimate = (struct run_estimate){0};
}
