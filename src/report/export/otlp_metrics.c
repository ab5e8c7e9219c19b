/* OpenTelemetry metrics in OTLP's JSON, on one line: histograms over the queries, by the GenAI conventions
 * where they have a name. */
#include <stdlib.h>

#include "core/json.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"
#include "report/export/moment.h"
#include "report/export/otlp.h"
#include "rundir/summary.h"

enum { BOUNDS = 14, HISTOGRAMS = 5, TEMPORALITY_CUMULATIVE = 2 };

/* The bounds are those that the conventions ask for; energies take the durations', from a millijoule to a
 * hundred kilojoules. */
static const struct histogram_info {
    const char *name, *unit, *description, *token_type;
    double first, factor; /* bounds */
    const char *place;    /* "/": from the top of the record */
} INFO[HISTOGRAMS] = {
    {"gen_ai.client.operation.duration", "s", "Latency of a query.", NULL, 0.01, 2,
     "latency_metrics.total_query_seconds"},
    {"gen_ai.client.token.usage", "{token}", "Tokens of a query.", "input", 1, 4,
     "token_metrics.input"},
    {"gen_ai.client.token.usage", "{token}", "Tokens of a query.", "output", 1, 4,
     "token_metrics.output"},
    {"ipw.client.time_to_first_token", "s", "Time to the first token of a query.", NULL, 0.001, 2.5,
     "latency_metrics.time_to_first_token_seconds"},
    {"ipw.client.operation.energy", "J", "A query's share of the energy of all counted devices.",
     NULL, 0.001, 4, "/ipw.energy.joules"},
};

struct histogram {
    uint64_t buckets[BOUNDS + 1], count;
    double sum, least, most;
};

struct metrics {
    struct histogram histograms[HISTOGRAMS];
    int64_t from_ns, to_ns;
};

static enum err metrics_begin(struct export *export, struct error *why)
{
    export->state = calloc(1, sizeof(struct metrics));
    return export->state ? ERR_OK : err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

static void count(struct histogram *histogram, const struct histogram_info *info, double value)
{
    size_t bucket = 0;
    double bound = info->first;
    while (bucket < BOUNDS && value > bound) {
        bound *= info->factor;
        bucket++;
    }
    histogram->buckets[bucket]++;
    histogram->least = histogram->count ? fmin(histogram->least, value) : value;
    histogram->most = histogram->count ? fmax(histogram->most, value) : value;
    histogram->sum += value;
    histogram->count++;
}

static enum err metrics_record(struct export *export, const struct jv *record, struct error *why)
{
    (void)why;
    struct metrics *metrics = export->state;
    const struct jv *of_model = jv_get(jv_get(record, "model_metrics"), export->run->model);
    struct moments when;
    for (size_t i = 0; i < HISTOGRAMS; i++) {
        const char *place = INFO[i].place;
        double value =
            jv_number(place[0] == '/' ? jv_path(record, place + 1) : jv_path(of_model, place));
        if (is_known(value))
            count(&metrics->histograms[i], &INFO[i], value);
    }
    if (moments_of(export->run, record, &when)) {
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
    json_number(json, "min", histogram->least);
    json_number(json, "max", histogram->most);
    json_object_end(json);
}

/* Neighbours of the same name are points of one metric. */
static void put_histograms(struct json *json, const struct export *export)
{
    const struct metrics *metrics = export->state;
    const char *open = NULL;
    for (size_t i = 0; i < HISTOGRAMS; i++) {
        if (!metrics->histograms[i].count)
            continue;
        if (open != INFO[i].name && open) {
            json_array_end(json);
            json_object_end(json);
            json_object_end(json);
        }
        if (open != INFO[i].name) {
            json_object(json, NULL);
            json_string(json, "name", INFO[i].name);
            json_string(json, "description", INFO[i].description);
            json_string(json, "unit", INFO[i].unit);
            json_object(json, "histogram");
            json_integer(json, "aggregationTemporality", TEMPORALITY_CUMULATIVE);
            json_array(json, "dataPoints");
        }
        open = INFO[i].name;
        put_point(json, export, i);
    }
    if (!open)
        return;
    json_array_end(json);
    json_object_end(json);
    json_object_end(json);
}

static enum err metrics_end(struct export *export, struct error *why)
{
    const struct metrics *metrics = export->state;
    struct json json;
    if (!metrics->to_ns)
        return err_set(why, ERR_NO_DATA, "the records of %s do not say when they were asked",
                       export->run->directory);
    json_init(&json, &export->out, false);
    otlp_open(&json, export->run, "resourceMetrics", "scopeMetrics");
    json_array(&json, "metrics");
    put_histograms(&json, export);
    json_array_end(&json);
    otlp_close(&json);
    text_add(&export->out, "\n");
    return ERR_OK;
}

static void metrics_release(struct export *export)
{
    free(export->state);
}

const struct export_driver export_otlp_metrics = {
    .name = "otlp-metrics",
    .summary = "OpenTelemetry metrics: histograms over the queries by the GenAI conventions",
    .begin = metrics_begin,
    .record = metrics_record,
    .end = metrics_end,
    .release = metrics_release,
};
