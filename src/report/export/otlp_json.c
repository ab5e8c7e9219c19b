/* OpenTelemetry traces in OTLP's JSON, one batch a line, each line what a collector takes: a span for each
 * query with the names of the GenAI conventions, below it its prefill and decode. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"
#include "report/export/moment.h"
#include "report/export/otlp.h"
#include "rundir/summary.h"

enum { BATCH = 256 }; /* queries a line */
enum { KIND_INTERNAL = 1, KIND_CLIENT = 3, STATUS_OK = 1, STATUS_ERROR = 2 };

struct spans {
    struct json json;
    size_t in_batch, all;
    uint64_t number; /* of the query, for those without a key */
};

/* The same run gives the same ids, so that sending it twice makes no second trace. */
static uint64_t id_of(const struct export_run *run, const char *key, int64_t at, uint64_t part)
{
    const char *const texts[] = {run->name, run->model, key};
    uint64_t hash = HASH_START ^ (uint64_t)at;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        hash = hash_bytes(hash, texts[t], strlen(texts[t]) + 1); /* the NUL separates them */
    hash = hash_mix(hash + part * UINT64_C(0x9E3779B97F4A7C15));
    return hash ? hash : 1; /* 0 is no id */
}

struct query {
    const struct export_run *run;
    const struct jv *record, *metrics;
    struct moments when;
    char trace[33], span[17];
};

static void span_begin(struct json *json, const struct query *query, const char *span,
                       const char *parent, const char *name, int kind, int64_t from, int64_t to)
{
    json_object(json, NULL);
    json_string(json, "traceId", query->trace);
    json_string(json, "spanId", span);
    if (parent)
        json_string(json, "parentSpanId", parent);
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
    json_object(json, NULL);
    json_string(json, "key", "gen_ai.response.finish_reasons");
    json_object(json, "value");
    json_object(json, "arrayValue");
    json_array(json, "values");
    json_object(json, NULL);
    json_string(json, "stringValue", reason);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
    json_object_end(json);
    json_object_end(json);
}

static void put_energy(struct json *json, const struct jv *energy)
{
    otlp_number(json, "ipw.energy.joules", jv_number(jv_get(energy, "joules")));
    otlp_number(json, "ipw.energy.plus_minus_joules", jv_number(jv_get(energy, "plus_minus")));
    otlp_text(json, "ipw.energy.method", jv_text(jv_get(energy, "method")));
    otlp_text(json, "ipw.energy.source", jv_text(jv_get(energy, "source")));
    otlp_number(json, "ipw.energy.coverage", jv_number(jv_get(energy, "coverage")));
    otlp_number(json, "ipw.energy.idle_joules", jv_number(jv_get(energy, "idle_joules")));
    otlp_number(json, "ipw.energy.active_joules", jv_number(jv_get(energy, "active_joules")));
}

static void put_query(struct json *json, const struct query *query)
{
    const struct jv *own = jv_get(query->record, "ipw");
    const char *status = jv_text(jv_get(own, "status")), *error = jv_text(jv_get(own, "error"));
    bool failed = status && strcmp(status, "failed") == 0;
    struct text name = {0};
    text_addf(&name, "chat %s", query->run->model);
    span_begin(json, query, query->span, NULL, text_get(&name), KIND_CLIENT, query->when.from_ns,
               query->when.to_ns);
    text_release(&name);
    otlp_text(json, "gen_ai.operation.name", "chat");
    otlp_text(json, "gen_ai.provider.name",
              query->run->summary ? query->run->summary->config_client : NULL);
    otlp_text(json, "gen_ai.request.model", query->run->model);
    put_reasons(json, jv_text(jv_get(own, "finish_reason")));
    otlp_integer(json, "gen_ai.usage.input_tokens", jv_path(query->metrics, "token_metrics.input"));
    otlp_integer(json, "gen_ai.usage.output_tokens",
                 jv_path(query->metrics, "token_metrics.output"));
    otlp_integer(json, "http.response.status_code", jv_get(own, "http_status"));
    otlp_text(json, "error.type", failed ? "request_failed" : NULL);
    otlp_text(json, "ipw.key", jv_text(jv_get(own, "key")));
    otlp_text(json, "ipw.subject", jv_text(jv_get(query->record, "subject")));
    otlp_truth(json, "ipw.correct", jv_path(query->metrics, "evaluation.is_correct"));
    otlp_number(json, "ipw.time_to_first_token_s",
                jv_number(jv_path(query->metrics, "latency_metrics.time_to_first_token_seconds")));
    otlp_number(json, "ipw.company", jv_number(jv_get(own, "company")));
    put_energy(json, jv_get(own, "energy"));
    json_array_end(json);
    json_object(json, "status");
    json_integer(json, "code", failed ? STATUS_ERROR : STATUS_OK);
    if (failed && error)
        json_string(json, "message", error);
    json_object_end(json);
    json_object_end(json);
}

static void put_phase(struct json *json, const struct query *query, const char *name,
                      const char *span, int64_t from, int64_t to)
{
    bool decode = strcmp(name, "decode") == 0;
    span_begin(json, query, span, query->span, name, KIND_INTERNAL, from, to);
    otlp_number(json, "ipw.energy.joules",
                jv_number(jv_path(query->metrics, decode ? "phase_metrics.decode_energy_j"
                                                         : "phase_metrics.prefill_energy_j")));
    otlp_number(json, "ipw.energy.plus_minus_joules",
                jv_number(jv_path(query->record,
                                  decode ? "ipw.decode_plus_minus" : "ipw.prefill_plus_minus")));
    json_array_end(json);
    json_object_end(json);
}

static enum err spans_begin(struct export *export, struct error *why)
{
    export->state = calloc(1, sizeof(struct spans));
    return export->state ? ERR_OK : err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
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

static enum err spans_record(struct export *export, const struct jv *record, struct error *why)
{
    (void)why;
    struct spans *spans = export->state;
    struct query query = {.run = export->run, .record = record};
    char key[32], prefill[17], decode[17];
    const char *told = jv_text(jv_path(record, "ipw.key"));
    query.metrics = jv_get(jv_get(record, "model_metrics"), export->run->model);
    str_format(key, sizeof key, "%" PRIu64, spans->number++);
    told = told ? told : key;
    if (!moments_of(export->run, record, &query.when))
        return ERR_OK;
    int64_t at = query.when.from_ns;
    str_format(query.trace, sizeof query.trace, "%016" PRIx64 "%016" PRIx64,
               id_of(export->run, told, at, 0), id_of(export->run, told, at, 1));
    str_format(query.span, sizeof query.span, "%016" PRIx64, id_of(export->run, told, at, 2));
    str_format(prefill, sizeof prefill, "%016" PRIx64, id_of(export->run, told, at, 3));
    str_format(decode, sizeof decode, "%016" PRIx64, id_of(export->run, told, at, 4));
    if (!spans->in_batch) {
        json_init(&spans->json, &export->out, false);
        otlp_open(&spans->json, export->run, "resourceSpans", "scopeSpans");
        json_array(&spans->json, "spans");
    }
    put_query(&spans->json, &query);
    if (query.when.first_ns) {
        put_phase(&spans->json, &query, "prefill", prefill, at, query.when.first_ns);
        put_phase(&spans->json, &query, "decode", decode, query.when.first_ns, query.when.to_ns);
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
        return err_set(why, ERR_NO_DATA, "the records of %s do not say when they were asked",
                       export->run->directory);
    return ERR_OK;
}

static void spans_release(struct export *export)
{
    free(export->state);
}

const struct export_driver export_otlp_json = {
    .name = "otlp-json",
    .summary = "OpenTelemetry traces, a batch a line: queries by the GenAI conventions",
    .begin = spans_begin,
    .record = spans_record,
    .end = spans_end,
    .release = spans_release,
};
