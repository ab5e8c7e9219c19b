/* Chrome's trace format, which Perfetto and chrome://tracing open: queries on lanes, with their phases, and
 * what the sensors read as counters of each device. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/json.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"
#include "report/export/lanes.h"
#include "rundir/samples.h"
#include "rundir/journal.h"

enum { PID_QUERIES = 1, PID_DEVICES = 10 };

struct counter {
    char name[96], device[64];
    size_t pid;
    double before_s; /* when its row before was read */
};

struct tracing {
    struct export *export;
    struct error *why; /* of the samples */
    struct journal_starts starts;
    struct lanes lanes;
    size_t named;    /* lanes that have their name */
    int64_t base_ns; /* what the trace calls 0; 0: not known yet */
    double first_s;  /* the earliest sample of the first start */
    int64_t zero_ns; /* of the start whose samples are read */
    struct counter *counters;
    size_t counter_count, counter_capacity, devices, out_of_place;
    bool any;
};

/* ---- events ---- */

static void event_begin(struct tracing *tracing, struct json *json, const char *name,
                        const char *phase, size_t pid, size_t tid)
{
    text_add(&tracing->export->out, tracing->any ? ",\n" : "\n");
    tracing->any = true;
    json_init(json, &tracing->export->out, false);
    json_object(json, NULL);
    json_string(json, "name", name);
    json_string(json, "ph", phase);
    json_integer(json, "pid", (int64_t)pid);
    json_integer(json, "tid", (int64_t)tid);
}

/* Microseconds with their thousandths: digits of whole nanoseconds, so that what is nested stays so. */
static void put_time(struct json *json, const char *key, int64_t ns)
{
    char digits[40];
    uint64_t size = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
    str_format(digits, sizeof digits, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", size / 1000,
               (unsigned)(size % 1000));
    json_raw(json, key, digits);
}

static void name_track(struct tracing *tracing, const char *what, size_t pid, size_t tid,
                       const char *name)
{
    struct json json;
    event_begin(tracing, &json, what, "M", pid, tid);
    json_object(&json, "args");
    json_string(&json, "name", name);
    json_object_end(&json);
    json_object_end(&json);
}

static void put_raw(struct json *json, const char *key, const struct jv *value)
{
    struct text text = {0};
    if (!jv_is_null(value) && !jv_print(value, &text))
        json_raw(json, key, text_get(&text));
    text_release(&text);
}

/* ---- queries ---- */

static void put_span(struct tracing *tracing, const char *name, size_t lane, int64_t from,
                     int64_t to, const struct jv *record, const struct jv *metrics)
{
    static const char *const OF_QUERY[][2] = {{"status", "ipw.status"},
                                              {"error", "ipw.error"},
                                              {"subject", "subject"},
                                              {"energy_j", "ipw.energy.joules"},
                                              {"plus_minus_j", "ipw.energy.plus_minus"},
                                              {"method", "ipw.energy.method"},
                                              {"source", "ipw.energy.source"},
                                              {"coverage", "ipw.energy.coverage"},
                                              {"idle_j", "ipw.energy.idle_joules"},
                                              {"company", "ipw.company"}};
    static const char *const OF_PHASE[][4] = {
        {"prefill", "energy_j", "phase_metrics.prefill_energy_j", ""},
        {"prefill", "input_tokens", "token_metrics.input", ""},
        {"decode", "energy_j", "phase_metrics.decode_energy_j", ""},
        {"decode", "output_tokens", "token_metrics.output", ""}};
    struct json json;
    event_begin(tracing, &json, name, "X", PID_QUERIES, lane + 1);
    put_time(&json, "ts", from - tracing->base_ns);
    put_time(&json, "dur", to - from);
    json_object(&json, "args");
    bool phase = false;
    for (size_t i = 0; i < sizeof OF_PHASE / sizeof *OF_PHASE; i++)
        if (strcmp(OF_PHASE[i][0], name) == 0) {
            put_raw(&json, OF_PHASE[i][1], jv_path(metrics, OF_PHASE[i][2]));
            phase = true;
        }
    for (size_t i = 0; !phase && i < sizeof OF_QUERY / sizeof *OF_QUERY; i++)
        put_raw(&json, OF_QUERY[i][0], jv_path(record, OF_QUERY[i][1]));
    if (!phase) {
        put_raw(&json, "input_tokens", jv_path(metrics, "token_metrics.input"));
        put_raw(&json, "output_tokens", jv_path(metrics, "token_metrics.output"));
        put_raw(&json, "correct", jv_path(metrics, "evaluation.is_correct"));
    }
    json_object_end(&json);
    json_object_end(&json);
}

static enum err perfetto_record(struct export *export, const struct jv *record, struct error *why)
{
    struct tracing *tracing = export->state;
    const struct jv *metrics = jv_get(jv_get(record, "model_metrics"), export->run->model);
    const char *key = jv_text(jv_path(record, "ipw.key"));
    struct moments when;
    size_t lane;
    char name[64];
    if (!moments_of(export->run, record, &when)) {
        tracing->out_of_place++;
        return ERR_OK;
    }
    if (!tracing->base_ns)
        tracing->base_ns = when.from_ns;
    if (lanes_take(&tracing->lanes, when.from_ns, when.to_ns, &lane))
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    for (; tracing->named <= lane; tracing->named++) {
        str_format(name, sizeof name, "lane %zu", tracing->named + 1);
        name_track(tracing, "thread_name", PID_QUERIES, tracing->named + 1, name);
    }
    put_span(tracing, key ? key : "query", lane, when.from_ns, when.to_ns, record, metrics);
    if (when.first_ns > when.from_ns)
        put_span(tracing, "prefill", lane, when.from_ns, when.first_ns, record, metrics);
    if (when.first_ns && when.to_ns > when.first_ns)
        put_span(tracing, "decode", lane, when.first_ns, when.to_ns, record, metrics);
    return ERR_OK;
}

/* ---- counters ---- */

/* Of a start, from 1; nothing where it has none. */
static enum err each_sample(struct tracing *tracing, unsigned start, samples_take *take,
                            struct error *why)
{
    const struct samples_query query = {.kind = SAMPLES_ALL};
    struct samples_found found;
    enum err err =
        samples_read(tracing->export->run->directory, start, &query, take, tracing, &found, why);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

static size_t pid_of(struct tracing *tracing, const char *device)
{
    for (size_t i = 0; i < tracing->counter_count; i++)
        if (strcmp(tracing->counters[i].device, device) == 0)
            return tracing->counters[i].pid;
    size_t pid = PID_DEVICES + tracing->devices++;
    name_track(tracing, "process_name", pid, 0, device);
    return pid;
}

static struct counter *counter_of(struct tracing *tracing, const struct sample *row)
{
    const char *unit = strcmp(row->quantity, "energy") == 0 ? "W" : row->unit;
    char name[sizeof tracing->counters->name], device[sizeof tracing->counters->device];
    str_format(name, sizeof name, "%s%s%s", row->channel, unit[0] ? " " : "", unit);
    str_copy(device, sizeof device, row->device);
    for (size_t i = 0; i < tracing->counter_count; i++)
        if (strcmp(tracing->counters[i].name, name) == 0 &&
            strcmp(tracing->counters[i].device, device) == 0)
            return &tracing->counters[i];
    struct counter *counters = grow(tracing->counters, &tracing->counter_capacity,
                                    tracing->counter_count, sizeof *counters);
    if (!counters)
        return NULL;
    tracing->counters = counters;
    size_t pid = pid_of(tracing, device);
    struct counter *counter = &counters[tracing->counter_count++];
    *counter = (struct counter){.pid = pid, .before_s = UNKNOWN};
    str_copy(counter->name, sizeof counter->name, name);
    str_copy(counter->device, sizeof counter->device, device);
    return counter;
}

/* A counter's watts held since its row before; the viewer draws a value from its time on. */
static enum err put_sample(void *context, const struct sample *row)
{
    struct tracing *tracing = context;
    struct counter *counter = counter_of(tracing, row);
    struct json json;
    if (!counter)
        return ERR_NO_MEMORY;
    double at = strcmp(row->quantity, "energy") == 0 ? counter->before_s : row->t_s;
    counter->before_s = row->t_s;
    if (!is_known(at) || !is_known(row->value))
        return ERR_OK;
    event_begin(tracing, &json, counter->name, "C", counter->pid, 0);
    put_time(&json, "ts", tracing->zero_ns + from_seconds(at) - tracing->base_ns);
    json_object(&json, "args");
    json_number(&json, "value", row->value);
    json_object_end(&json);
    json_object_end(&json);
    return export_pass_on(tracing->export, tracing->why);
}

static enum err put_counters(struct tracing *tracing, struct error *why)
{
    enum err err = ERR_OK;
    tracing->why = why;
    for (size_t i = 0; !err && i < tracing->starts.count; i++) {
        tracing->zero_ns = tracing->starts.zero_ns[i];
        for (size_t c = 0; c < tracing->counter_count; c++)
            tracing->counters[c].before_s = UNKNOWN;
        if (tracing->zero_ns)
            err = each_sample(tracing, (unsigned)i + 1, put_sample, why);
    }
    return err;
}

/* ---- all of it ---- */

static enum err find_first(void *context, const struct sample *row)
{
    struct tracing *tracing = context;
    if (row->t_s < tracing->first_s)
        tracing->first_s = row->t_s;
    return ERR_OK;
}

static enum err perfetto_begin(struct export *export, struct error *why)
{
    struct tracing *tracing = calloc(1, sizeof *tracing);
    if (!tracing)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    export->state = tracing;
    tracing->export = export;
    enum err err = journal_starts_read(export->run->directory, &tracing->starts, why);
    if (!err)
        err = each_sample(tracing, 1, find_first, why);
    if (!err && tracing->starts.count && tracing->starts.zero_ns[0])
        tracing->base_ns = tracing->starts.zero_ns[0] + from_seconds(tracing->first_s);
    text_add(&export->out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    name_track(tracing, "process_name", PID_QUERIES, 0, "queries");
    return err;
}

static enum err perfetto_end(struct export *export, struct error *why)
{
    struct tracing *tracing = export->state;
    struct json json;
    if (!tracing->lanes.count)
        return err_set(why, ERR_NO_DATA, "the records of %s do not say when they were asked",
                       export->run->directory);
    enum err err = put_counters(tracing, why);
    if (err)
        return err;
    text_add(&export->out, "\n],\"otherData\":");
    json_init(&json, &export->out, false);
    json_object(&json, NULL);
    json_string(&json, "run", export->run->name);
    json_string(&json, "model", export->run->model);
    json_number(&json, "begin_unix_s", (double)tracing->base_ns * 1e-9);
    json_integer(&json, "queries_without_times", (int64_t)tracing->out_of_place);
    json_object_end(&json);
    text_add(&export->out, "}\n");
    return ERR_OK;
}

static void perfetto_release(struct export *export)
{
    struct tracing *tracing = export->state;
    if (!tracing)
        return;
    journal_starts_release(&tracing->starts);
    lanes_release(&tracing->lanes);
    free(tracing->counters);
    free(tracing);
}

const struct export_driver export_perfetto = {
    .name = "perfetto",
    .summary = "Chrome's trace format: queries with their phases, and sensors as counters",
    .begin = perfetto_begin,
    .record = perfetto_record,
    .end = perfetto_end,
    .release = perfetto_release,
};
