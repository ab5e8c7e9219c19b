/* Chrome's trace format, which Perfetto and chrome://tracing open: queries on lanes, with their phases, and
 * sensor readings as counters of each device. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "report/export/export.h"
#include "rundir/samples.h"
#include "rundir/journal.h"
#include "rundir/traces.h"

enum { PID_QUERIES = 1, PID_DEVICES = 10 };

/* Tracks for overlapping spans. */
struct lanes {
    int64_t *ends; /* end of the last span on each */
    size_t count, capacity;
};

struct counter {
    char name[96], device[64];
    size_t pid;
    double before_s; /* time of its previous row */
};

struct tracing {
    struct export *export;
    struct error *why; /* of the samples */
    struct journal_starts starts;
    struct lanes lanes;
    size_t named;    /* number of lanes with a name */
    int64_t base_ns; /* origin of the trace's times; 0: not known yet */
    double first_s;  /* the earliest sample of the first start */
    int64_t zero_ns; /* of the start whose samples are being read */
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

/* Microseconds with three decimals, from integer nanoseconds, so that nesting is exact. */
static void put_time(struct json *json, const char *key, int64_t ns)
{
    char digits[40];
    uint64_t size = ns < 0 ? (uint64_t)-ns : (uint64_t)ns;
    chars_format(digits, "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", size / 1000,
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

/* ---- queries ---- */

/* The lane that became free last before the span begins, or a new one; spans are (nearly) in the order of their
 * ends. */
static size_t lanes_take(struct lanes *lanes, int64_t from, int64_t to)
{
    size_t best = lanes->count;
    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->ends[i] <= from && (best == lanes->count || lanes->ends[i] > lanes->ends[best]))
            best = i;
    if (best == lanes->count)
        *XADD(lanes->ends, lanes->count, lanes->capacity) = to;
    lanes->ends[best] = to;
    return best;
}

static void put_count(struct json *json, const char *key, int64_t value)
{
    if (value != INTEGER_UNKNOWN)
        json_integer(json, key, value);
}

static void span_begin(struct tracing *tracing, struct json *json, const char *name, size_t lane,
                       int64_t from, int64_t to)
{
    event_begin(tracing, json, name, "X", PID_QUERIES, lane + 1);
    put_time(json, "ts", from - tracing->base_ns);
    put_time(json, "dur", to - from);
    json_object(json, "args");
}

static void put_query(struct tracing *tracing, size_t lane, const struct moments *when,
                      const struct record *record)
{
    struct json json;
    span_begin(tracing, &json, record->key ? record->key : "query", lane, when->from_ns,
               when->to_ns);
    json_optional_string(&json, "status", record->status);
    json_optional_string(&json, "error", record->error);
    json_optional_string(&json, "subject", record->subject);
    json_optional_number(&json, "energy_j", record->energy.joules);
    json_optional_number(&json, "plus_minus_j", record->energy.plus_minus);
    json_optional_string(&json, "method", record->energy.method);
    json_optional_string(&json, "source", record->energy.source);
    json_optional_number(&json, "coverage", record->energy.coverage);
    json_optional_number(&json, "idle_j", record->energy.idle_joules);
    json_optional_number(&json, "concurrency", record->concurrency);
    put_count(&json, "input_tokens", record->input_tokens);
    put_count(&json, "output_tokens", record->output_tokens);
    if (record->correct >= 0)
        json_bool(&json, "correct", record->correct);
    json_optional_string(&json, "evaluation_status", record->grading);
    json_object_end(&json);
    json_object_end(&json);
}

static void put_phase(struct tracing *tracing, const char *name, size_t lane, int64_t from,
                      int64_t to, double joules, const char *tokens_key, int64_t tokens)
{
    struct json json;
    if (to <= from)
        return;
    span_begin(tracing, &json, name, lane, from, to);
    json_optional_number(&json, "energy_j", joules);
    put_count(&json, tokens_key, tokens);
    json_object_end(&json);
    json_object_end(&json);
}

/* ---- spans of an agent's query ---- */

static void put_span(struct tracing *tracing, size_t lane, int64_t zero,
                     const struct span_trace *span)
{
    struct json json;
    char name[128];
    if (str_equal(span->type, "turn"))
        chars_format(name, "turn %.0f", span->turn);
    else
        chars_format(name, "%s%s%s", span->type, span->name ? " " : "", text_or_empty(span->name));
    span_begin(tracing, &json, name, lane, zero + from_seconds(span->from_s),
               zero + from_seconds(span->to_s));
    json_optional_number(&json, "energy_j", span->joules);
    json_optional_number(&json, "plus_minus_j", span->plus_minus);
    json_optional_number(&json, "idle_j", span->idle_joules);
    json_optional_number(&json, "own_j", span->own_joules);
    json_optional_number(&json, "own_plus_minus_j", span->own_plus_minus);
    json_optional_number(&json, "gpu_j", span->gpu_joules);
    json_optional_number(&json, "cpu_j", span->cpu_joules);
    json_optional_string(&json, "method", span->method);
    json_optional_string(&json, "share", span->share);
    json_optional_number(&json, "input_tokens", span->input_tokens);
    json_optional_number(&json, "output_tokens", span->output_tokens);
    json_optional_string(&json, "error", span->error);
    json_object_end(&json);
    json_object_end(&json);
}

static void name_lanes(struct tracing *tracing, size_t lane)
{
    char name[64];
    for (; tracing->named <= lane; tracing->named++) {
        chars_format(name, "lane %zu", tracing->named + 1);
        name_track(tracing, "thread_name", PID_QUERIES, tracing->named + 1, name);
    }
}

/* Viewers nest spans on one lane: a span stays on its parent's lane unless it overlaps a sibling there. */
static void put_spans(struct tracing *tracing, size_t lane, int64_t zero,
                      const struct query_trace *trace)
{
    size_t *lanes = xcalloc(trace->span_count + 1, sizeof *lanes);
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span_trace *span = &trace->spans[i];
        size_t parent = i ? (size_t)span->parent : 0;
        bool overlaps = false;
        lanes[i] = i ? lanes[parent] : lane;
        for (size_t k = parent + 1; k < i && !overlaps; k++)
            overlaps = lanes[k] == lanes[i] && (size_t)trace->spans[k].parent == parent &&
                       trace->spans[k].to_s > span->from_s;
        if (i && overlaps)
            lanes[i] = lanes_take(&tracing->lanes, zero + from_seconds(span->from_s),
                                  zero + from_seconds(span->to_s));
        name_lanes(tracing, lanes[i]);
        if (i)
            put_span(tracing, lanes[i], zero, span);
    }
    free(lanes);
}

static enum err perfetto_record(struct export *export, const struct export_record *given,
                                struct error *why)
{
    struct tracing *tracing = export->state;
    const struct record *record = &given->fields;
    struct moments when;
    (void)why;
    if (!moments_of(record, &when)) {
        tracing->out_of_place++;
        return ERR_OK;
    }
    if (!tracing->base_ns)
        tracing->base_ns = when.from_ns;
    size_t lane = lanes_take(&tracing->lanes, when.from_ns, when.to_ns);
    name_lanes(tracing, lane);
    put_query(tracing, lane, &when, record);
    if (given->trace && given->trace->span_count) {
        put_spans(tracing, lane, when.from_ns, given->trace);
        return ERR_OK;
    }
    if (when.first_ns) {
        put_phase(tracing, "prefill", lane, when.from_ns, when.first_ns, record->prefill_joules,
                  "input_tokens", record->input_tokens);
        put_phase(tracing, "decode", lane, when.first_ns, when.to_ns, record->decode_joules,
                  "output_tokens", record->output_tokens);
    }
    return ERR_OK;
}

/* ---- counters ---- */

/* The samples of a start, from 1; missing samples are not an error. */
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
        if (str_equal(tracing->counters[i].device, device))
            return tracing->counters[i].pid;
    size_t pid = PID_DEVICES + tracing->devices++;
    name_track(tracing, "process_name", pid, 0, device);
    return pid;
}

static struct counter *counter_of(struct tracing *tracing, const struct sample *row)
{
    const char *unit = str_equal(row->quantity, "energy") ? "W" : row->unit;
    char name[sizeof tracing->counters->name], device[sizeof tracing->counters->device];
    chars_format(name, "%s%s%s", row->channel, unit[0] ? " " : "", unit);
    chars_copy(device, row->device);
    for (size_t i = 0; i < tracing->counter_count; i++)
        if (str_equal(tracing->counters[i].name, name) &&
            str_equal(tracing->counters[i].device, device))
            return &tracing->counters[i];
    size_t pid = pid_of(tracing, device);
    struct counter *counter =
        XADD(tracing->counters, tracing->counter_count, tracing->counter_capacity);
    *counter = (struct counter){.pid = pid, .before_s = UNKNOWN};
    chars_copy(counter->name, name);
    chars_copy(counter->device, device);
    return counter;
}

/* A counter's power applies since its previous row; the viewer draws a value from its time on. */
static enum err put_sample(void *context, const struct sample *row)
{
    struct tracing *tracing = context;
    struct counter *counter = counter_of(tracing, row);
    struct json json;
    double at = str_equal(row->quantity, "energy") ? counter->before_s : row->t_s;
    counter->before_s = row->t_s;
    if (!is_known(at) || !is_known(row->value))
        return ERR_OK;
    event_begin(tracing, &json, counter->name, "C", counter->pid, 0);
    put_time(&json, "ts", tracing->zero_ns + from_seconds(at) - tracing->base_ns);
    json_object(&json, "args");
    json_number(&json, "value", row->value);
    json_object_end(&json);
    json_object_end(&json);
    return export_flush(tracing->export, tracing->why);
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

/* ---- the exporter ---- */

static enum err find_first(void *context, const struct sample *row)
{
    struct tracing *tracing = context;
    if (row->t_s < tracing->first_s)
        tracing->first_s = row->t_s;
    return ERR_OK;
}

static enum err perfetto_begin(struct export *export, struct error *why)
{
    struct tracing *tracing = export->state;
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
        return err_set(why, ERR_NO_DATA, "the records of %s do not say when queries were sent",
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
    journal_starts_release(&tracing->starts);
    free(tracing->lanes.ends);
    free(tracing->counters);
}

const struct export_driver export_perfetto = {
    .name = "perfetto",
    .summary = "Chrome's trace format: queries with their phases, and sensors as counters",
    .state_size = sizeof(struct tracing),
    .begin = perfetto_begin,
    .record = perfetto_record,
    .end = perfetto_end,
    .release = perfetto_release,
};
