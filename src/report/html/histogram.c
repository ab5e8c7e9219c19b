#include "report/html/histogram.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "analysis/columns.h"
#include "core/json.h"
#include "rundir/run_table.h"
#include "stats/quantile.h"

enum { BINS_LEAST = 8, BINS_MOST = 48 };

struct bins {
    double low, step;
    bool log, whole;
    size_t count;
    uint64_t counts[BINS_MOST + 1]; /* the last: beyond */
};

/* Values over several magnitudes are looked at by their logarithm; a few that lie far out do not press
 * the others into one bin. */
static struct bins choose_bins(double *values, size_t count)
{
    static const double PS[] = {0, 0.005, 0.25, 0.75, 0.995, 1};
    double q[6];
    struct bins bins = {0};
    select_quantiles(values, count, PS, 6, q);
    double high = q[5] > q[4] + 0.5 * (q[4] - q[1]) ? q[4] : q[5];
    bins.log = q[0] > 0 && high / q[0] > 50;
    bins.low = q[0];
    double range = bins.log ? log(high / q[0]) : high - q[0];
    double middle = bins.log ? log(q[3] / q[2]) : q[3] - q[2];
    /* Freedman and Diaconis. */
    double width = 2 * middle / cbrt((double)count);
    double wished = width > 0 ? ceil(range / width) : sqrt((double)count);
    bins.count = (size_t)fmin(fmax(wished, BINS_LEAST), BINS_MOST);
    bins.step = range / (double)bins.count;
    if (range <= 0) { /* all the same: one bar, with the value in its middle */
        bins.count = 1;
        bins.step = q[0] != 0 ? 0.1 * fabs(q[0]) : 1;
        bins.low = q[0] - bins.step / 2;
    }
    return bins;
}

/* Whole numbers of a small range have a bin each, with the number in its middle. */
static void fit_whole(struct bins *bins, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != floor(values[i]))
            return;
    double range = bins->step * (double)bins->count;
    if (bins->log || (range < 1 && bins->count > 1))
        return;
    double least = bins->count > 1 ? bins->low : values[0];
    range = bins->count > 1 ? range : 0;
    bins->whole = true;
    bins->step = bins->count > 1 ? ceil(bins->step) : 1;
    bins->count = (size_t)(range / bins->step) + 1;
    bins->low = least - 0.5;
}

static void count_values(struct bins *bins, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double place = bins->log ? log(values[i] / bins->low) : values[i] - bins->low;
        double bin = floor(place / bins->step + 1e-9);
        /* The largest value closes the last bin. */
        if (place <= bins->step * (double)bins->count * (1 + 1e-9))
            bin = fmin(bin, (double)bins->count - 1);
        bins->counts[(size_t)fmin(fmax(bin, 0), (double)bins->count)]++;
    }
}

static void put_histogram(struct json *json, const char *key, const char *label, const char *unit,
                          double *values, size_t count)
{
    struct bins bins = choose_bins(values, count);
    fit_whole(&bins, values, count);
    count_values(&bins, values, count);
    json_object(json, NULL);
    json_string(json, "key", key);
    json_string(json, "label", label);
    json_string(json, "unit", unit);
    json_number(json, "low", bins.low);
    json_number(json, "step", bins.step);
    json_bool(json, "log", bins.log);
    json_bool(json, "whole", bins.whole);
    json_array(json, "counts");
    for (size_t i = 0; i < bins.count + (bins.counts[bins.count] > 0); i++)
        json_integer(json, NULL, (int64_t)bins.counts[i]);
    json_array_end(json);
    json_bool(json, "beyond", bins.counts[bins.count] > 0);
    put_spread(json, "spread", values, count);
    json_object_end(json);
}

enum err histograms_put(struct json *json, const struct run_table *table, struct error *why)
{
    static const struct {
        const char *key, *label, *unit;
        enum run_number numerator, denominator; /* RUN_NUMBERS: none */
    } ROWS[] = {
        {"joules", "Energy per query", "J", RUN_JOULES, RUN_NUMBERS},
        {"joules_per_output_token", "Energy per output token", "J", RUN_JOULES, RUN_OUTPUT_TOKENS},
        {"latency_s", "Latency", "s", RUN_LATENCY, RUN_NUMBERS},
        {"time_to_first_token_s", "Time to first token", "s", RUN_TTFT, RUN_NUMBERS},
        {"output_tokens", "Output tokens", "", RUN_OUTPUT_TOKENS, RUN_NUMBERS},
        {"input_tokens", "Prompt tokens", "", RUN_INPUT_TOKENS, RUN_NUMBERS},
    };
    enum err err = ERR_OK;
    json_array(json, "distributions");
    for (size_t i = 0; !err && i < sizeof ROWS / sizeof *ROWS; i++) {
        double *values = NULL;
        size_t count = 0;
        err = ROWS[i].denominator == RUN_NUMBERS
                  ? known_values(table, ROWS[i].numerator, &values, &count)
                  : known_ratios(table, ROWS[i].numerator, ROWS[i].denominator, &values, &count);
        if (!err && count)
            put_histogram(json, ROWS[i].key, ROWS[i].label, ROWS[i].unit, values, count);
        free(values);
    }
    json_array_end(json);
    return err ? err_set(why, err, "%s", err_text(err)) : ERR_OK;
}
