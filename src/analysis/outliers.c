/* Outlier queries, by name: robust z-scores (median absolute deviation) and Tukey's fences. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"

/* Iglewicz and Hoaglin's threshold for a robust z-score, and the factor from the median absolute deviation to the
 * standard deviation of a normal distribution. */
#define Z_MAX      3.5
#define MAD_TO_STD 1.4826022185056018
#define FENCE      1.5

/* Relative resolution: smaller differences are rounding, not spread. */
#define SPREAD_MIN 1e-3

enum { NAMED_MAX = 10, QUERIES_MIN = 8 };

static const struct ratio_row ROWS[] = {
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
        spread; /* spread: the median absolute deviation, as a standard deviation, at least the resolution */
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
    if (bounds.spread > 0) /* otherwise most values are equal, and there is no scale */
        bounds.spread = fmax(bounds.spread, SPREAD_MIN * fabs(bounds.median));
    return bounds;
}

/* The most extreme first. */
struct named {
    size_t row;
    double value, z;
};

static void keep_farthest(struct named *kept, size_t *count, struct named one)
{
    size_t at = *count;
    while (at > 0 && fabs(kept[at - 1].z) < fabs(one.z))
        at--;
    if (at == NAMED_MAX)
        return;
    *count += *count < NAMED_MAX;
    for (size_t i = *count - 1; i > at; i--)
        kept[i] = kept[i - 1];
    kept[at] = one;
}

static void put_queries(struct result *result, const struct run_table *table,
                        const struct named *kept, size_t count, const char *unit)
{
    char key[RUN_KEY_MAX];
    result_list(result, "queries");
    for (size_t i = 0; i < count; i++) {
        result_group(result, NULL);
        result_text(result, "key", run_key(table, kept[i].row, key));
        result_number(result, "value", kept[i].value, unit);
        result_number(result, "z", kept[i].z, "");
        result_text(result, "subject", run_word(table, RUN_SUBJECT, kept[i].row));
        result_number(result, "input_tokens", run_number(table, RUN_INPUT_TOKENS, kept[i].row), "");
        result_number(result, "output_tokens", run_number(table, RUN_OUTPUT_TOKENS, kept[i].row),
                      "");
        result_end(result);
    }
    result_end(result);
}

static void put_row(struct result *result, const struct run_table *table,
                    const struct ratio_row *row)
{
    double *values = xmalloc((table->rows + 1) * sizeof *values);
    const char *unit = column_unit(row->numerator, row->denominator);
    struct named kept[NAMED_MAX];
    size_t count = 0, beyond_z = 0, beyond_fences = 0, kept_count = 0;
    for (size_t i = 0; i < table->rows; i++) {
        values[count] = row_value(table, row->numerator, row->denominator, i);
        count += is_known(values[count]);
    }
    if (count < QUERIES_MIN) {
        free(values);
        return;
    }
    struct bounds bounds = bounds_of(values, count);
    free(values);
    for (size_t i = 0; i < table->rows; i++) {
        double value = row_value(table, row->numerator, row->denominator, i);
        if (!is_known(value))
            continue;
        double z = bounds.spread > 0 ? (value - bounds.median) / bounds.spread : 0;
        beyond_fences += value < bounds.low || value > bounds.high;
        if (fabs(z) > Z_MAX) {
            beyond_z++;
            keep_farthest(kept, &kept_count, (struct named){i, value, z});
        }
    }
    result_group(result, row->key);
    result_count(result, "count", count);
    result_number(result, "median", bounds.median, unit);
    result_number(result, "robust_std", bounds.spread, unit);
    result_number(result, "fence_low", bounds.low, unit);
    result_number(result, "fence_high", bounds.high, unit);
    result_count(result, "beyond_z", beyond_z);
    result_count(result, "beyond_fences", beyond_fences);
    put_queries(result, table, kept, kept_count, unit);
    result_end(result);
}

static enum err outliers_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct result *result = analysis->result;
    size_t completed = run_completed_count(table);
    if (completed < QUERIES_MIN)
        return err_set(why, ERR_NO_DATA, "%zu completed %s; outliers need %d", completed,
                       units_of(table, completed != 1), QUERIES_MIN);
    result_group(result, "summary");
    result_count(result, "queries", completed);
    result_number(result, "z_most", Z_MAX, "");
    result_number(result, "fence_factor", FENCE, "");
    result_end(result);
    result_group(result, "data");
    for (size_t i = 0; i < COUNT_OF(ROWS); i++)
        if (table->numbers[ROWS[i].numerator])
            put_row(result, table, &ROWS[i]);
    result_end(result);
    return ERR_OK;
}

/* The number, and the most extreme. */
#define OUTLIERS(words, key)                                                                       \
    {", " words ": ", "data." key ".beyond_z", ""}, {" (", "data." key ".queries.0.key", ""},      \
        {" z = ", "data." key ".queries.0.z", ")"}

static const struct result_phrase FINDING[] = {
    OUTLIERS("energy", "joules"),
    OUTLIERS("energy per output token", "joules_per_output_token"),
    OUTLIERS("power", "watts"),
    OUTLIERS("latency", "latency_s"),
    OUTLIERS("latency per output token", "latency_s_per_output_token"),
    OUTLIERS("TTFT", "time_to_first_token_s"),
    OUTLIERS("output tokens", "output_tokens"),
    {0},
};

const struct analysis_driver analysis_outliers = {
    .name = "outliers",
    .summary = "outliers by query: robust z-score and Tukey's fences",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_LATENCY) |
                  RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS) |
                  RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT),
              RUN_WANT(RUN_SUBJECT)},
    .finding = FINDING,
    .run = outliers_run,
};
