/* Queries that stand out, by name: distances from the median in units of the median distance, and
 * Tukey's fences. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/json.h"
#include "core/units.h"
#include "stats/quantile.h"

/* Iglewicz's and Hoaglin's bound for a robust z, and the factor that makes the median distance of a
 * normal distribution its standard deviation. */
#define Z_MOST     3.5
#define MAD_TO_STD 1.4826022185056018
#define FENCE      1.5

/* No sensor or clock here resolves less of a value: equal values that differ by rounding are no spread. */
#define SPREAD_LEAST 1e-3

enum { NAMED_MOST = 10, QUERIES_LEAST = 8 };

static const struct outlier_row {
    const char *key;
    enum run_number numerator, denominator; /* RUN_NUMBERS: the column itself */
} ROWS[] = {
    {"joules", RUN_JOULES, RUN_NUMBERS},
    {"joules_per_output_token", RUN_JOULES, RUN_OUTPUT_TOKENS},
    {"watts", RUN_WATTS, RUN_NUMBERS},
    {"latency_s", RUN_LATENCY, RUN_NUMBERS},
    {"latency_s_per_output_token", RUN_LATENCY, RUN_OUTPUT_TOKENS},
    {"time_to_first_token_s", RUN_TTFT, RUN_NUMBERS},
    {"output_tokens", RUN_OUTPUT_TOKENS, RUN_NUMBERS},
};

struct bounds {
    double median,
        spread; /* spread: the median distance, as a standard deviation, never below the resolution */
    double low, high; /* Tukey's fences */
};

static struct bounds bounds_of(double *values, size_t count)
{
    static const double QUARTERS[] = {0.25, 0.5, 0.75};
    struct bounds bounds;
    double found[3];
    select_quantiles(values, count, QUARTERS, 3, found);
    bounds.median = found[1];
    bounds.low = found[0] - FENCE * (found[2] - found[0]);
    bounds.high = found[2] + FENCE * (found[2] - found[0]);
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - bounds.median);
    bounds.spread = MAD_TO_STD * select_median(values, count);
    if (bounds.spread > 0) /* else most are equal, and there is no scale to measure the others by */
        bounds.spread = fmax(bounds.spread, SPREAD_LEAST * fabs(bounds.median));
    return bounds;
}

/* The farthest first, kept in order. */
struct named {
    size_t row;
    double value, z;
};

static void keep_farthest(struct named *kept, size_t *count, struct named one)
{
    size_t at = *count;
    while (at > 0 && fabs(kept[at - 1].z) < fabs(one.z))
        at--;
    if (at == NAMED_MOST)
        return;
    *count += *count < NAMED_MOST;
    for (size_t i = *count - 1; i > at; i--)
        kept[i] = kept[i - 1];
    kept[at] = one;
}

static void put_queries(struct json *json, const struct run_table *table, const struct named *kept,
                        size_t count)
{
    char key[RUN_KEY_MAX];
    json_array(json, "queries");
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        json_string(json, "key", run_key(table, kept[i].row, key));
        json_number(json, "value", kept[i].value);
        json_number(json, "z", kept[i].z);
        json_string(json, "subject", run_word(table, RUN_SUBJECT, kept[i].row));
        json_number(json, "input_tokens", run_number(table, RUN_INPUT_TOKENS, kept[i].row));
        json_number(json, "output_tokens", run_number(table, RUN_OUTPUT_TOKENS, kept[i].row));
        json_object_end(json);
    }
    json_array_end(json);
}

static enum err put_row(struct json *json, const struct run_table *table,
                        const struct outlier_row *row)
{
    double *values = malloc((table->rows + 1) * sizeof *values);
    struct named kept[NAMED_MOST];
    size_t count = 0, beyond_z = 0, beyond_fences = 0, kept_count = 0;
    if (!values)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        values[count] = row_value(table, row->numerator, row->denominator, i);
        count += is_known(values[count]);
    }
    if (count < QUERIES_LEAST) {
        free(values);
        return ERR_OK;
    }
    struct bounds bounds = bounds_of(values, count);
    free(values);
    for (size_t i = 0; i < table->rows; i++) {
        double value = row_value(table, row->numerator, row->denominator, i);
        if (!is_known(value))
            continue;
        double z = bounds.spread > 0 ? (value - bounds.median) / bounds.spread : 0;
        beyond_fences += value < bounds.low || value > bounds.high;
        if (fabs(z) > Z_MOST) {
            beyond_z++;
            keep_farthest(kept, &kept_count, (struct named){i, value, z});
        }
    }
    json_object(json, row->key);
    json_integer(json, "count", (int64_t)count);
    json_number(json, "median", bounds.median);
    json_number(json, "robust_std", bounds.spread);
    json_number(json, "fence_low", bounds.low);
    json_number(json, "fence_high", bounds.high);
    json_integer(json, "beyond_z", (int64_t)beyond_z);
    json_integer(json, "beyond_fences", (int64_t)beyond_fences);
    put_queries(json, table, kept, kept_count);
    json_object_end(json);
    return ERR_OK;
}

static enum err outliers_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct json *json = analysis->json;
    size_t completed = table->rows - table->failed;
    enum err err = ERR_OK;
    if (completed < QUERIES_LEAST)
        return err_set(why, ERR_NO_DATA, "%zu completed quer%s; outliers need %d", completed,
                       completed == 1 ? "y" : "ies", QUERIES_LEAST);
    json_object(json, "summary");
    json_integer(json, "queries", (int64_t)completed);
    json_number(json, "z_most", Z_MOST);
    json_number(json, "fence_factor", FENCE);
    json_object_end(json);
    json_object(json, "data");
    for (size_t i = 0; !err && i < sizeof ROWS / sizeof *ROWS; i++)
        if (table->numbers[ROWS[i].numerator])
            err = put_row(json, table, &ROWS[i]);
    json_object_end(json);
    return err;
}

const struct analysis_driver analysis_outliers = {
    .name = "outliers",
    .summary = "outliers by query: robust z-score and Tukey's fences",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_LATENCY) |
                  RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS) |
                  RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT),
              RUN_WANT(RUN_SUBJECT)},
    .run = outliers_run,
};
