/* The table of a summary's figures, generated from record.def, and summary.json. */
#include "rundir/summary.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/traces.h"

#define SUMMARY_FILE "summary.json"

/* A summary has a few kilobytes, plus the service's information about itself. */
#define SUMMARY_BYTES_MAX ((size_t)16 << 20)

/* ---- the table ---- */

#define AT(member, type_, path_)                                                                   \
    .at = {.path = (path_), .type = FIELD_##type_, .offset = offsetof(struct summary, member)}

const struct summary_field SUMMARY_FIELDS[] = {
#define SUMMARY(member, type_, path_, views)                                                       \
    {AT(member, type_, path_), .role = SUMMARY_IS_FIELD, views},
#define SUMMARY_PART(member, type_, path_, views)                                                  \
    {AT(member, type_, path_), .role = SUMMARY_IS_FIELD, views},
#define SUMMARY_NULLABLE(path_) {.at = {.path = (path_)}, .role = SUMMARY_IS_NULLABLE},
#define SUMMARY_LIST(member, path_, views)                                                         \
    {AT(member, JSON, path_), .role = SUMMARY_IS_LIST, views},
#define INDEX(n, name, heading) .index = (n), .index_name = #name,
#define GAUGE(n, name, help, label)                                                                \
    .gauge = (n), .gauge_name = (name), .gauge_help = (help), .gauge_label = (label),
#define LABEL(label_, heading_, unit_, better_)                                                    \
    .label = (label_), .heading = (heading_), .unit = (unit_), .better = (better_),
#define REPORT .report = true,
#include "rundir/record.def"
    {.at = {.path = NULL}},
};

const char *const SUMMARY_HEADINGS[SUMMARY_INDEXES] = {
#define SUMMARY(member, type, path, views)      views
#define SUMMARY_PART(member, type, path, views) views
#define INDEX(n, name, heading)                 [(n) - 1] = (heading),
#include "rundir/record.def"
};

static const struct summary_field *INDEXES[SUMMARY_INDEXES], *GAUGES[SUMMARY_GAUGES];

static void find_views(void)
{
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++) {
        if (field->index)
            INDEXES[field->index - 1] = field;
        if (field->gauge)
            GAUGES[field->gauge - 1] = field;
    }
}

static void init_views(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_views);
}

const struct summary_field *summary_index(size_t n)
{
    init_views();
    return INDEXES[n];
}

const struct summary_field *summary_gauge(size_t n)
{
    init_views();
    return GAUGES[n];
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
            put_label(json, field->index ? field->index_name : strrchr(field->at.path, '.') + 1,
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

/* ---- lists ---- */

static void put_statistics(struct json *json, const char *key, const struct summary *summary)
{
    json_object(json, key);
    for (int i = 0; i < RECORD_STATISTICS; i++) {
        const struct summary_statistic *row = &summary->statistics[i];
        if (row->count == 0)
            continue;
        json_object(json, record_statistic((enum record_statistic)i)->statistic_key);
        json_number(json, "avg", row->avg);
        json_number(json, "median", row->median);
        json_number(json, "min", row->min);
        json_number(json, "max", row->max);
        json_number(json, "std", row->std);
        json_number(json, "p95", row->p95);
        json_integer(json, "count", row->count);
        json_object_end(json);
    }
    json_object_end(json);
}

static void put_interval(struct json *json, const char *key, const struct summary *summary)
{
    json_array(json, key);
    json_number(json, NULL, summary->accuracy_interval.low);
    json_number(json, NULL, summary->accuracy_interval.high);
    json_array_end(json);
}

static void put_idle(struct json *json, const char *key, const struct summary *summary)
{
    const struct summary_idle *idle = &summary->idle;
    if (!idle->known) {
        json_null(json, key);
        return;
    }
    json_object(json, key);
    json_number(json, "seconds", idle->seconds);
    json_array(json, "devices");
    for (size_t i = 0; i < idle->count; i++) {
        json_object(json, NULL);
        json_string(json, "id", idle->devices[i].id);
        json_number(json, "power_w", idle->devices[i].watts);
        json_number(json, "plus_minus", idle->devices[i].plus_minus);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void put_devices(struct json *json, const char *key, const struct summary *summary)
{
    json_array(json, key);
    for (size_t i = 0; i < summary->device_count; i++) {
        const struct summary_device *device = &summary->devices[i];
        json_object(json, NULL);
        json_string(json, "id", device->id);
        json_bool(json, "in_total", device->in_total);
        record_energy_to_json(json, "energy", &device->energy);
        json_number(json, "power_mean_w", device->power_mean_w);
        json_number(json, "power_max_w", device->power_max_w);
        json_number(json, "cross_check_residual", device->residual);
        json_object_end(json);
    }
    json_array_end(json);
}

static void read_statistics(const struct jv *value, struct summary *out)
{
    for (int i = 0; i < RECORD_STATISTICS; i++) {
        const struct jv *row =
            jv_get(value, record_statistic((enum record_statistic)i)->statistic_key);
        int64_t count = 0;
        if (!row || !jv_integer(jv_get(row, "count"), &count) || count < 1)
            continue;
        out->statistics[i] = (struct summary_statistic){
            jv_number(jv_get(row, "avg")),
            jv_number(jv_get(row, "median")),
            jv_number(jv_get(row, "min")),
            jv_number(jv_get(row, "max")),
            jv_number(jv_get(row, "std")),
            jv_number(jv_get(row, "p95")),
            count,
        };
    }
}

static void read_interval(const struct jv *value, struct summary *out)
{
    const struct jv *low = jv_first(value);
    out->accuracy_interval =
        (struct summary_interval){jv_number(low), low ? jv_number(jv_next(low)) : UNKNOWN};
}

/* If out of memory, the list is omitted; other figures are still reported. */
static void read_idle(const struct jv *value, struct summary *out)
{
    const struct jv *devices = jv_get(value, "devices");
    struct summary_idle *idle = &out->idle;
    idle->known = jv_is_object(value);
    idle->seconds = jv_number(jv_get(value, "seconds"));
    idle->devices = calloc(jv_count(devices) + 1, sizeof *idle->devices);
    for (const struct jv *device = idle->devices ? jv_first(devices) : NULL; device;
         device = jv_next(device))
        idle->devices[idle->count++] = (struct summary_idle_device){
            jv_text(jv_get(device, "id")), jv_number(jv_get(device, "power_w")),
            jv_number(jv_get(device, "plus_minus"))};
}

static void read_devices(const struct jv *value, struct summary *out)
{
    out->devices = calloc(jv_count(value) + 1, sizeof *out->devices);
    for (const struct jv *item = out->devices ? jv_first(value) : NULL; item;
         item = jv_next(item)) {
        struct summary_device *device = &out->devices[out->device_count++];
        device->id = jv_text(jv_get(item, "id"));
        device->in_total = jv_bool(jv_get(item, "in_total"), false);
        record_energy_from_json(jv_get(item, "energy"), &device->energy);
        device->power_mean_w = jv_number(jv_get(item, "power_mean_w"));
        device->power_max_w = jv_number(jv_get(item, "power_max_w"));
        device->residual = jv_number(jv_get(item, "cross_check_residual"));
    }
}

/* ---- conditions ---- */

static const char *severity_name(enum finding_severity severity)
{
    static const char *const NAMES[] = {"note", "warning", "breaks"};
    return NAMES[severity];
}

static const char *const ACTIVITIES[SUMMARY_ACTIVITIES] = {
    "sm_active",   "sm_occupancy", "dram_active", "tensor_active",
    "fp64_active", "fp32_active",  "fp16_active", "utilization"};

static void put_activity(struct json *json, const struct summary_condition *device)
{
    if (!device->activity_source[0]) {
        json_null(json, "activity");
        return;
    }
    json_object(json, "activity");
    json_string(json, "source", device->activity_source);
    for (size_t i = 0; i < SUMMARY_ACTIVITIES; i++)
        json_number(json, ACTIVITIES[i], device->activity[i]);
    json_object_end(json);
}

static void read_activity(const struct jv *value, struct summary_condition *out)
{
    str_copy(out->activity_source, sizeof out->activity_source,
             text_or_empty(jv_text(jv_get(value, "source"))));
    for (size_t i = 0; i < SUMMARY_ACTIVITIES; i++)
        out->activity[i] = jv_number(jv_get(value, ACTIVITIES[i]));
}

static void put_condition_devices(struct json *json, const char *key, const struct summary *summary)
{
    const struct summary_conditions *conditions = &summary->conditions;
    json_array(json, key);
    for (size_t i = 0; i < conditions->device_count; i++) {
        const struct summary_condition *device = &conditions->devices[i];
        json_object(json, NULL);
        json_string(json, "id", device->id);
        json_number(json, "idle_w", device->idle_w);
        json_number(json, "idle_after_w", device->idle_after_w);
        json_number(json, "temperature_begin_c", device->temperature_begin_c);
        json_number(json, "temperature_end_c", device->temperature_end_c);
        json_number(json, "clock_mhz", device->clock_mhz);
        json_number(json, "throttled_share", device->throttled_share);
        put_activity(json, device);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_gpu_processes(struct json *json, const char *key, const struct summary *summary)
{
    const struct summary_conditions *conditions = &summary->conditions;
    json_array(json, key);
    for (size_t i = 0; i < conditions->gpu_process_count; i++) {
        const struct summary_gpu_process *process = &conditions->gpu_processes[i];
        json_object(json, NULL);
        json_string(json, "device", process->device);
        json_integer(json, "pid", process->pid);
        json_string(json, "name", process->name[0] ? process->name : NULL);
        json_number(json, "memory_bytes", process->memory_bytes);
        json_number(json, "utilization_pct", process->utilization_pct);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_findings(struct json *json, const char *key, const struct summary *summary)
{
    const struct summary_conditions *conditions = &summary->conditions;
    json_array(json, key);
    for (size_t i = 0; i < conditions->finding_count; i++) {
        const struct summary_finding *finding = &conditions->findings[i];
        json_object(json, NULL);
        json_string(json, "code", finding->code);
        json_string(json, "severity", severity_name(finding->severity));
        json_string(json, "text", finding->text);
        json_object_end(json);
    }
    json_array_end(json);
}

static void read_condition_devices(const struct jv *value, struct summary *out)
{
    struct summary_conditions *conditions = &out->conditions;
    for (const struct jv *item = jv_first(value);
         item && conditions->device_count < SUMMARY_CONDITIONS_MAX; item = jv_next(item)) {
        struct summary_condition *device = &conditions->devices[conditions->device_count++];
        str_copy(device->id, sizeof device->id, text_or_empty(jv_text(jv_get(item, "id"))));
        device->idle_w = jv_number(jv_get(item, "idle_w"));
        device->idle_after_w = jv_number(jv_get(item, "idle_after_w"));
        device->temperature_begin_c = jv_number(jv_get(item, "temperature_begin_c"));
        device->temperature_end_c = jv_number(jv_get(item, "temperature_end_c"));
        device->clock_mhz = jv_number(jv_get(item, "clock_mhz"));
        device->throttled_share = jv_number(jv_get(item, "throttled_share"));
        read_activity(jv_get(item, "activity"), device);
    }
}

static void read_gpu_processes(const struct jv *value, struct summary *out)
{
    struct summary_conditions *conditions = &out->conditions;
    for (const struct jv *item = jv_first(value);
         item && conditions->gpu_process_count < SUMMARY_GPU_PROCESSES_MAX; item = jv_next(item)) {
        struct summary_gpu_process *process =
            &conditions->gpu_processes[conditions->gpu_process_count++];
        str_copy(process->device, sizeof process->device,
                 text_or_empty(jv_text(jv_get(item, "device"))));
        str_copy(process->name, sizeof process->name, text_or_empty(jv_text(jv_get(item, "name"))));
        jv_integer(jv_get(item, "pid"), &process->pid);
        process->memory_bytes = jv_number(jv_get(item, "memory_bytes"));
        process->utilization_pct = jv_number(jv_get(item, "utilization_pct"));
    }
}

/* An unknown severity was written by a later version: it may matter. */
static enum finding_severity severity_named(const char *name)
{
    for (int i = FINDING_NOTE; name && i <= FINDING_BREAKS; i++)
        if (strcmp(severity_name((enum finding_severity)i), name) == 0)
            return (enum finding_severity)i;
    return FINDING_WARNING;
}

static void read_findings(const struct jv *value, struct summary *out)
{
    struct summary_conditions *conditions = &out->conditions;
    for (const struct jv *item = jv_first(value);
         item && conditions->finding_count < SUMMARY_FINDINGS_MAX; item = jv_next(item)) {
        struct summary_finding *finding = &conditions->findings[conditions->finding_count++];
        finding->severity = severity_named(jv_text(jv_get(item, "severity")));
        str_copy(finding->code, sizeof finding->code, text_or_empty(jv_text(jv_get(item, "code"))));
        str_copy(finding->text, sizeof finding->text, text_or_empty(jv_text(jv_get(item, "text"))));
    }
}

static const struct summary_list {
    const char *path;
    void (*put)(struct json *json, const char *key, const struct summary *summary);
    void (*read)(const struct jv *value, struct summary *out);
} LISTS[] = {
    {"ipw.accuracy_interval_95", put_interval, read_interval},
    {"ipw.conditions.gpu_processes", put_gpu_processes, read_gpu_processes},
    {"ipw.conditions.devices", put_condition_devices, read_condition_devices},
    {"ipw.conditions.findings", put_findings, read_findings},
    {"ipw.statistics", put_statistics, read_statistics},
    {"ipw.idle", put_idle, read_idle},
    {"ipw.devices", put_devices, read_devices},
};

static const struct summary_list *list_at(const char *path)
{
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++)
        if (strcmp(LISTS[i].path, path) == 0)
            return &LISTS[i];
    return NULL;
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

static void put_field(struct json_field_writer *writer, const struct summary_field *field,
                      const struct summary *summary)
{
    const struct summary_list *list = list_at(field->at.path);
    if (list)
        list->put(writer->json, json_field_enter(writer, field->at.path), summary);
    else
        json_field_write(writer, &field->at, summary);
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
            put_field(&writer, field, summary);
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

void summary_put_report(const struct summary *summary, struct result *out)
{
    struct json json;
    struct json_field_writer writer = {.json = &json};
    result_writer(out, &json);
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++) {
        if (!field->report)
            continue;
        struct summary_field row = *field;
        row.at.path += strlen("ipw.");
        if (field->role == SUMMARY_IS_LIST)
            list_at(field->at.path)->put(&json, json_field_enter(&writer, row.at.path), summary);
        else
            json_field_write(&writer, &row.at, summary);
        if (strcmp(row.at.path, "conservation_error") == 0) /* placed first for scripts */
            json_bool(&json, json_field_enter(&writer, "interrupted"), summary->interrupted == 1);
    }
    json_field_writer_end(&writer);
    result_hide_secrets(out);
}

/* ---- conditions alone ---- */

#define CONDITIONS "ipw.conditions"

void summary_conditions_init(struct summary_conditions *conditions)
{
    struct summary summary;
    summary_init(&summary);
    *conditions = summary.conditions;
}

void summary_conditions_to_json(struct json *json, const char *key,
                                const struct summary_conditions *conditions)
{
    struct summary summary;
    struct json_field_writer writer = {.json = json};
    summary_init(&summary);
    summary.conditions = *conditions;
    json_object(json, key);
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++) {
        struct summary_field row = *field;
        if (!is_below(row.at.path, CONDITIONS))
            continue;
        row.at.path += strlen(CONDITIONS ".");
        if (row.role == SUMMARY_IS_LIST)
            list_at(field->at.path)->put(json, row.at.path, &summary);
        else
            json_field_write(&writer, &row.at, &summary);
    }
    json_field_writer_end(&writer);
    json_object_end(json);
}

void summary_conditions_from_json(const struct jv *value, struct summary_conditions *out)
{
    struct summary summary;
    struct json_field_reader reader = {.root = value};
    summary_init(&summary);
    for (const struct summary_field *field = SUMMARY_FIELDS; value && field->at.path; field++) {
        struct summary_field row = *field;
        if (!is_below(row.at.path, CONDITIONS))
            continue;
        row.at.path += strlen(CONDITIONS ".");
        if (row.role == SUMMARY_IS_LIST)
            list_at(field->at.path)->read(json_field_find(&reader, row.at.path), &summary);
        else
            json_field_read(&reader, &row.at, &summary);
    }
    *out = summary.conditions;
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
        if (strcmp(first, text_or_empty(json_field_text(field, &parts[i]))) != 0)
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

static bool is_in_records(const char *path)
{
    for (const struct record_field *field = RECORD_FIELDS; field->at.path; field++)
        if (field->role == ROLE_FIELD && strcmp(field->at.path, path) == 0)
            return true;
    return false;
}

enum err summary_constants(const struct summary *summary, const char *model, struct jv **out)
{
    *out = jv_new_object();
    enum err err = *out ? ERR_OK : ERR_NO_MEMORY;
    for (const struct summary_field *field = SUMMARY_FIELDS; summary && !err && field->at.path;
         field++)
        if (field->role == SUMMARY_IS_FIELD && json_field_is_known(&field->at, summary) &&
            is_in_records(field->at.path))
            err = json_field_put(&field->at, record_base(model), summary, *out);
    return err;
}

enum err summary_from_json(struct jv *tree, struct summary *out, struct error *why)
{
    summary_init(out);
    out->tree = tree;
    if (!jv_is_object(tree)) {
        summary_release(out);
        return err_set(why, ERR_BAD_VALUE, "not a JSON object");
    }
    struct json_field_reader reader = {.root = tree};
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++)
        if (field->role == SUMMARY_IS_LIST)
            list_at(field->at.path)->read(json_field_find(&reader, field->at.path), out);
        else if (field->role == SUMMARY_IS_FIELD)
            json_field_read(&reader, &field->at, out);
    return ERR_OK;
}

enum err summary_load(const char *directory, struct summary *out, struct error *why)
{
    char path[FILE_PATH_MAX];
    struct jv *tree;
    summary_init(out);
    if (!str_format(path, sizeof path, "%s/%s", directory, SUMMARY_FILE))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    if (!run_has_file(path))
        return err_set(why, ERR_NOT_FOUND, "no %s in %s", SUMMARY_FILE, directory);
    struct error reason = {0};
    enum err err = run_read_json(path, SUMMARY_BYTES_MAX, &tree, why);
    if (!err && (err = summary_from_json(tree, out, &reason)))
        err_set(why, err, "%.160s: %.200s", path, reason.text);
    return err;
}

/* ---- the prediction ---- */

enum { ESTIMATE_BYTES_MAX = 64 << 20 };

#define ROW(type, member, path) {path, FIELD_##type, offsetof(struct run_estimate, member)},
static const struct json_field ESTIMATE_FIELDS[] = {RUN_ESTIMATE(ROW){0}};
#undef ROW

enum err run_estimate_load(const char *directory, struct run_estimate *out, struct error *why)
{
    char path[FILE_PATH_MAX];
    *out = (struct run_estimate){0};
    if (!run_path_file(directory, RUN_FILE_ESTIMATE, path, sizeof path))
        return err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    enum err err = run_read_json(path, ESTIMATE_BYTES_MAX, &out->tree, why);
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
