/* OpenTelemetry in OTLP JSON: traces, one batch per line, a span for each query with the names of the GenAI conventions
 * and child spans for prefill and decode; and metrics, histograms over the queries. */
#include <inttypes.h>
#include <string.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/json_bind.h"
#include "core/text.h"
#include "core/units.h"
#include "report/export/export.h"
#include "rundir/summary.h"
#include "rundir/traces.h"
#include "wire/otlp.h"

/* ---- attributes, numbers and the resource ---- */

/* Attributes of a record, which may lack them. */
static void put_integer(struct json *json, const char *key, int64_t value)
{
    if (value != INTEGER_UNKNOWN)
        otlp_integer(json, key, value);
}

static void put_truth(struct json *json, const char *key, int8_t value)
{
    if (value >= 0)
        otlp_bool(json, key, value);
}

/* "resource" and "scope" at the start of every batch; leaves the array and first object of `of_scopes` open. */
static void open_batch(struct json *json, const struct export_run *run, const char *of_resources,
                       const char *of_scopes)
{
    const struct summary *summary = run->summary;
    otlp_open(json, of_resources, run->name, summary ? summary->host_name : NULL);
    otlp_text(json, "host.cpu.model.name", summary ? summary->cpu_brand : NULL);
    otlp_text(json, "os.description", summary ? summary->os_name : NULL);
    otlp_text(json, "ipw.hardware", summary ? summary->hardware_label : NULL);
    otlp_text(json, "ipw.dataset", summary ? summary->dataset_name : NULL);
    otlp_scope(json, of_scopes);
}

/* ---- traces ---- */

enum { BATCH = 256 }; /* queries per line */
enum { KIND_INTERNAL = 1, KIND_CLIENT = 3, STATUS_OK = 1, STATUS_ERROR = 2 };

struct spans {
    struct json json;
    size_t in_batch, all;
    uint64_t number; /* of the query, if it has no key */
};

/* The same run gives the same ids, so that sending it twice does not duplicate the trace. */
static uint64_t id_of(const struct export_run *run, const char *key, int64_t at, uint64_t part)
{
    const char *const texts[] = {run->name, run->model, key};
    uint64_t hash = HASH_START ^ (uint64_t)at;
    for (size_t t = 0; t < COUNT_OF(texts); t++)
        hash = hash_bytes(hash, texts[t], strlen(texts[t]) + 1); /* NUL as a separator */
    hash = hash_mix(hash + part * UINT64_C(0x9E3779B97F4A7C15));
    return hash ? hash : 1; /* 0 is not a valid id */
}

struct query {
    const struct export_run *run;
    const struct record *record;
    const struct query_trace *agent; /* NULL for a query that is one request */
    struct moments when;
    char trace[33], span[17];
};

static void span_begin(struct json *json, const struct query *query, const char *span,
                       const char *parent, const char *name, int kind, int64_t from, int64_t to)
{
    json_object(json, NULL);
    json_string(json, "traceId", query->trace);
    json_string(json, "spanId", span);
    json_optional_string(json, "parentSpanId", parent);
    json_string(json, "name", name);
    json_integer(json, "kind", kind);
    otlp_digits(json, "startTimeUnixNano", from);
    otlp_digits(json, "endTimeUnixNano", to);
    json_array(json, "attributes");
}

static void put_reasons(struct json *json, const char *reason)
{
    if (!reason)
        return;
    otlp_open_value(json, "gen_ai.response.finish_reasons");
    json_object(json, "arrayValue");
    json_array(json, "values");
    json_object(json, NULL);
    json_string(json, "stringValue", reason);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
    otlp_close_value(json);
}

static void put_energy(struct json *json, const struct record_energy *energy)
{
    otlp_number(json, "ipw.energy.joules", energy->joules);
    otlp_number(json, "ipw.energy.plus_minus_joules", energy->plus_minus);
    otlp_text(json, "ipw.energy.method", energy->method);
    otlp_text(json, "ipw.energy.source", energy->source);
    otlp_number(json, "ipw.energy.coverage", energy->coverage);
    otlp_number(json, "ipw.energy.idle_joules", energy->idle_joules);
    otlp_number(json, "ipw.energy.active_joules", energy->active_joules);
}

static void put_query(struct json *json, const struct query *query)
{
    const struct record *record = query->record;
    bool failed = record->status && str_equal(record->status, "failed");
    struct text name = {0};
    const char *operation = query->agent ? "invoke_agent" : "chat";
    text_addf(&name, "%s %s", operation, query->run->model);
    span_begin(json, query, query->span, NULL, text_get(&name), KIND_CLIENT, query->when.from_ns,
               query->when.to_ns);
    text_release(&name);
    otlp_text(json, "gen_ai.operation.name", operation);
    otlp_text(json, "gen_ai.provider.name",
              query->run->summary ? query->run->summary->config_client : NULL);
    otlp_text(json, "gen_ai.request.model", query->run->model);
    put_reasons(json, record->finish_reason);
    put_integer(json, "gen_ai.usage.input_tokens", record->input_tokens);
    put_integer(json, "gen_ai.usage.output_tokens", record->output_tokens);
    put_integer(json, "http.response.status_code", record->http_status);
    otlp_text(json, "error.type", failed ? "request_failed" : NULL);
    otlp_text(json, "ipw.key", record->key);
    otlp_text(json, "ipw.subject", record->subject);
    put_truth(json, "ipw.correct", record->correct);
    otlp_text(json, "ipw.evaluation_status", record->grading);
    otlp_number(json, "ipw.time_to_first_token_s", record->ttft_s);
    otlp_number(json, "ipw.concurrency", record->concurrency);
    put_energy(json, &record->energy);
    json_array_end(json);
    json_object(json, "status");
    json_integer(json, "code", failed ? STATUS_ERROR : STATUS_OK);
    if (failed && record->error)
        json_string(json, "message", record->error);
    json_object_end(json);
    json_object_end(json);
}

static void put_phase(struct json *json, const struct query *query, const char *name,
                      const char *span, int64_t from, int64_t to, double joules, double plus_minus)
{
    span_begin(json, query, span, query->span, name, KIND_INTERNAL, from, to);
    otlp_number(json, "ipw.energy.joules", joules);
    otlp_number(json, "ipw.energy.plus_minus_joules", plus_minus);
    json_array_end(json);
    json_object_end(json);
}

/* The operation name of the conventions; NULL: none. */
static const char *operation_of(const struct span_trace *span)
{
    static const char *const NAMES[][2] = {{"agent", "invoke_agent"},
                                           {"lm_inference", "chat"},
                                           {"submodel_call", "chat"},
                                           {"tool_call", "execute_tool"}};
    const char *const *found = STR_FIND(span->type, NAMES);
    return found ? found[1] : NULL;
}

static void put_agent_span(struct json *json, const struct query *query, const char *id,
                           const char *parent, const struct span_trace *span)
{
    const char *operation = operation_of(span);
    bool is_tool = str_equal(span->type, "tool_call");
    char name[160];
    chars_format(name, "%s%s%s", operation ? operation : span->type, span->name ? " " : "",
                 text_or_empty(span->name));
    span_begin(json, query, id, parent, name, KIND_INTERNAL,
               query->when.from_ns + from_seconds(span->from_s),
               query->when.from_ns + from_seconds(span->to_s));
    otlp_text(json, "gen_ai.operation.name", operation);
    otlp_text(json, is_tool ? "gen_ai.tool.name" : "gen_ai.request.model",
              is_tool || (operation && str_equal(operation, "chat")) ? span->name : NULL);
    put_integer(json, "gen_ai.usage.input_tokens",
                is_known(span->input_tokens) ? (int64_t)span->input_tokens : INTEGER_UNKNOWN);
    put_integer(json, "gen_ai.usage.output_tokens",
                is_known(span->output_tokens) ? (int64_t)span->output_tokens : INTEGER_UNKNOWN);
    otlp_number(json, "ipw.turn", span->turn);
    otlp_number(json, "ipw.energy.joules", span->joules);
    otlp_number(json, "ipw.energy.plus_minus_joules", span->plus_minus);
    otlp_number(json, "ipw.energy.own_joules", span->own_joules);
    otlp_number(json, "ipw.energy.own_plus_minus_joules", span->own_plus_minus);
    otlp_text(json, "ipw.energy.method", span->method);
    json_array_end(json);
    json_object(json, "status");
    json_integer(json, "code", span->error ? STATUS_ERROR : STATUS_OK);
    json_optional_string(json, "message", span->error);
    json_object_end(json);
    json_object_end(json);
}

/* The query's span is the first; ids of the others are derived from its id and their number. */
static void put_agent_spans(struct json *json, const struct query *query, const char *key)
{
    const struct query_trace *trace = query->agent;
    int64_t at = query->when.from_ns;
    for (size_t i = 1; i < trace->span_count; i++) {
        const struct span_trace *span = &trace->spans[i];
        char id[17], parent[17];
        chars_format(id, "%016" PRIx64, id_of(query->run, key, at, 2 + i));
        chars_format(parent, "%016" PRIx64, id_of(query->run, key, at, 2 + (uint64_t)span->parent));
        put_agent_span(json, query, id, parent, span);
    }
}

static void end_batch(struct export *export, struct spans *spans)
{
    if (!spans->in_batch)
        return;
    json_array_end(&spans->json);
    otlp_close(&spans->json);
    text_add(&export->out, "\n");
    spans->in_batch = 0;
}

static enum err spans_record(struct export *export, const struct export_record *given,
                             struct error *why)
{
    (void)why;
    struct spans *spans = export->state;
    const struct record *record = &given->fields;
    bool is_agent = given->trace && given->trace->span_count;
    struct query query = {
        .run = export->run, .record = record, .agent = is_agent ? given->trace : NULL};
    char number[32], phases[2][17];
    chars_format(number, "%" PRIu64, spans->number++);
    const char *key = record->key ? record->key : number;
    if (!moments_of(record, &query.when))
        return ERR_OK;
    int64_t at = query.when.from_ns, first = query.when.first_ns;
    chars_format(query.trace, "%016" PRIx64 "%016" PRIx64, id_of(export->run, key, at, 0),
                 id_of(export->run, key, at, 1));
    chars_format(query.span, "%016" PRIx64, id_of(export->run, key, at, 2));
    for (size_t i = 0; i < 2; i++)
        str_format(phases[i], sizeof *phases, "%016" PRIx64, id_of(export->run, key, at, 3 + i));
    if (!spans->in_batch) {
        json_init(&spans->json, &export->out, false);
        open_batch(&spans->json, export->run, "resourceSpans", "scopeSpans");
        json_array(&spans->json, "spans");
    }
    put_query(&spans->json, &query);
    if (is_agent) {
        put_agent_spans(&spans->json, &query, key);
    } else if (first) {
        put_phase(&spans->json, &query, "prefill", phases[0], at, first, record->prefill_joules,
                  record->prefill_plus_minus);
        put_phase(&spans->json, &query, "decode", phases[1], first, query.when.to_ns,
                  record->decode_joules, record->decode_plus_minus);
    }
    spans->all++;
    if (++spans->in_batch == BATCH)
        end_batch(export, spans);
    return ERR_OK;
}

static enum err spans_end(struct export *export, struct error *why)
{
    struct spans *spans = export->state;
    end_batch(export, spans);
    if (!spans->all)
        return err_set(why, ERR_NO_DATA, "the records of %s do not say when queries were sent",
                       export->run->directory);
    return ERR_OK;
}

const struct export_driver export_otlp_json = {
    .name = "otlp-json",
    .summary =
        "OpenTelemetry traces, one batch per line: queries, by the GenAI semantic conventions",
    .is_otlp = true,
    .signal = OTLP_TRACES,
    .state_size = sizeof(struct spans),
    .record = spans_record,
    .end = spans_end,
};

/* ---- metrics ---- */

enum { BOUNDS = 14, HISTOGRAMS = 5 };

/* Bucket bounds as recommended by the conventions; energies use those of durations, from a millijoule to 100 kJ. */
static const struct histogram_info {
    const char *name, *unit, *description, *token_type;
    double first, factor; /* bounds */
    struct json_field at; /* in a struct record */
} INFO[HISTOGRAMS] = {
    {"gen_ai.client.operation.duration", "s", "Latency of queries.", NULL, 0.01, 2,
     BIND_NUMBER(record, latency_s, NULL)},
    {"gen_ai.client.token.usage", "{token}", "Tokens per query.", "input", 1, 4,
     BIND_INTEGER(record, input_tokens, NULL)},
    {"gen_ai.client.token.usage", "{token}", "Tokens per query.", "output", 1, 4,
     BIND_INTEGER(record, output_tokens, NULL)},
    {"ipw.client.time_to_first_token", "s", "Time to first token.", NULL, 0.001, 2.5,
     BIND_NUMBER(record, ttft_s, NULL)},
    {"ipw.client.operation.energy", "J", "A query's share of the energy of all counted devices.",
     NULL, 0.001, 4, BIND_NUMBER(record, energy.joules, NULL)},
};

struct histogram {
    uint64_t buckets[BOUNDS + 1], count;
    double sum, min, max;
};

struct metrics {
    struct histogram histograms[HISTOGRAMS];
    int64_t from_ns, to_ns;
};

static void count(struct histogram *histogram, const struct histogram_info *info, double value)
{
    size_t bucket = 0;
    double bound = info->first;
    while (bucket < BOUNDS && value > bound) {
        bound *= info->factor;
        bucket++;
    }
    histogram->buckets[bucket]++;
    histogram->min = histogram->count ? fmin(histogram->min, value) : value;
    histogram->max = histogram->count ? fmax(histogram->max, value) : value;
    histogram->sum += value;
    histogram->count++;
}

static enum err metrics_record(struct export *export, const struct export_record *record,
                               struct error *why)
{
    (void)why;
    struct metrics *metrics = export->state;
    struct moments when;
    for (size_t i = 0; i < HISTOGRAMS; i++) {
        double value = json_field_number(&INFO[i].at, &record->fields);
        if (is_known(value))
            count(&metrics->histograms[i], &INFO[i], value);
    }
    if (moments_of(&record->fields, &when)) {
        if (!metrics->from_ns || when.from_ns < metrics->from_ns)
            metrics->from_ns = when.from_ns;
        if (when.to_ns > metrics->to_ns)
            metrics->to_ns = when.to_ns;
    }
    return ERR_OK;
}

static void put_point(struct json *json, const struct export *export, size_t i)
{
    const struct metrics *metrics = export->state;
    const struct histogram *histogram = &metrics->histograms[i];
    double bound = INFO[i].first;
    json_object(json, NULL);
    json_array(json, "attributes");
    otlp_text(json, "gen_ai.operation.name", "chat");
    otlp_text(json, "gen_ai.request.model", export->run->model);
    otlp_text(json, "gen_ai.provider.name",
              export->run->summary ? export->run->summary->config_client : NULL);
    otlp_text(json, "gen_ai.token.type", INFO[i].token_type);
    json_array_end(json);
    otlp_digits(json, "startTimeUnixNano", metrics->from_ns);
    otlp_digits(json, "timeUnixNano", metrics->to_ns);
    otlp_digits(json, "count", (int64_t)histogram->count);
    json_number(json, "sum", histogram->sum);
    json_array(json, "bucketCounts");
    for (size_t b = 0; b <= BOUNDS; b++)
        otlp_digits(json, NULL, (int64_t)histogram->buckets[b]);
    json_array_end(json);
    json_array(json, "explicitBounds");
    for (size_t b = 0; b < BOUNDS; b++) {
        json_number(json, NULL, bound);
        bound *= INFO[i].factor;
    }
    json_array_end(json);
    json_number(json, "min", histogram->min);
    json_number(json, "max", histogram->max);
    json_object_end(json);
}

/* Consecutive entries with the same name are points of one metric. */
static void put_histograms(struct json *json, const struct export *export)
{
    const struct metrics *metrics = export->state;
    const char *open = NULL;
    for (size_t i = 0; i < HISTOGRAMS; i++) {
        if (!metrics->histograms[i].count)
            continue;
        if (open != INFO[i].name && open)
            otlp_close_metric(json);
        if (open != INFO[i].name)
            otlp_open_metric(json, INFO[i].name, INFO[i].description, INFO[i].unit, "histogram");
        open = INFO[i].name;
        put_point(json, export, i);
    }
    if (open)
        otlp_close_metric(json);
}

static enum err metrics_end(struct export *export, struct error *why)
{
    const struct metrics *metrics = export->state;
    struct json json;
    if (!metrics->to_ns)
        return err_set(why, ERR_NO_DATA, "the records of %s do not say when queries were sent",
                       export->run->directory);
    json_init(&json, &export->out, false);
    open_batch(&json, export->run, "resourceMetrics", "scopeMetrics");
    json_array(&json, "metrics");
    put_histograms(&json, export);
    json_array_end(&json);
    otlp_close(&json);
    text_add(&export->out, "\n");
    return ERR_OK;
}

const struct export_driver export_otlp_metrics = {
    .name = "otlp-metrics",
    .summary =
        "OpenTelemetry metrics: histograms over the queries, by the GenAI semantic conventions",
    .is_otlp = true,
    .signal = OTLP_METRICS,
    .state_size = sizeof(struct metrics),
    .record = metrics_record,
    .end = metrics_end,
};
