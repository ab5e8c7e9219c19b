/* How energy and time grow with prompt and answer length, within one run.  For several runs: across.h. */
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/fit.h"

enum { QUERIES_MIN = 4 };

struct lengths {
    double *input, *output, *y;
    size_t count;
};

static void take(const struct run_table *table, enum run_number y, struct lengths *out)
{
    *out = (struct lengths){xmalloc((table->rows + 1) * sizeof(double)),
                            xmalloc((table->rows + 1) * sizeof(double)),
                            xmalloc((table->rows + 1) * sizeof(double)), 0};
    for (size_t i = 0; i < table->rows; i++) {
        double value = run_number(table, y, i);
        if (!run_completed(table, i) || !is_known(value))
            continue;
        out->input[out->count] = run_number(table, RUN_INPUT_TOKENS, i);
        out->output[out->count] = run_number(table, RUN_OUTPUT_TOKENS, i);
        out->y[out->count++] = value;
    }
}

static void lengths_release(struct lengths *lengths)
{
    free(lengths->input);
    free(lengths->output);
    free(lengths->y);
}

static void put_plane(struct result *result, const char *key, const struct lengths *lengths,
                      const char *unit)
{
    struct plane_fit fit;
    plane_fit(lengths->input, lengths->output, lengths->y, lengths->count, &fit);
    result_group(result, key);
    result_count(result, "count", fit.count);
    result_figure(result, "fixed", fit.intercept, fit.intercept_error, unit);
    result_figure(result, "per_input_token", fit.a, fit.a_error, unit);
    result_figure(result, "per_output_token", fit.b, fit.b_error, unit);
    result_number(result, "r2", fit.r2, "");
    result_end(result);
}

/* y ~ length^exponent */
static void put_power_law(struct result *result, const char *key, const double *x, const double *y,
                          size_t count)
{
    struct linear_fit fit;
    linear_fit_logs(x, y, count, LINEAR_LOG_LOG, &fit);
    result_group(result, key);
    result_count(result, "count", fit.count);
    result_figure(result, "exponent", fit.slope, fit.slope_error, "");
    result_interval(result, "exponent", fit.slope_low, fit.slope_high);
    result_number(result, "r2", fit.r2, "");
    result_end(result);
}

static void put_data(struct result *result, const struct run_table *table,
                     const struct lengths *energy)
{
    struct lengths time = {0};
    take(table, RUN_LATENCY, &time);
    result_group(result, "data");
    result_group(result, "planes");
    put_plane(result, "joules", energy, "J");
    put_plane(result, "latency_s", &time, "s");
    result_end(result);
    result_group(result, "power_laws");
    put_power_law(result, "joules_of_input_tokens", energy->input, energy->y, energy->count);
    put_power_law(result, "joules_of_output_tokens", energy->output, energy->y, energy->count);
    put_power_law(result, "latency_s_of_input_tokens", time.input, time.y, time.count);
    put_power_law(result, "latency_s_of_output_tokens", time.output, time.y, time.count);
    result_end(result);
    result_end(result);
    lengths_release(&time);
}

static enum err scaling_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct result *result = analysis->result;
    struct lengths energy = {0};
    struct plane_fit fit;
    enum err err = require_requests(table, why);
    if (err)
        return err;
    if (!table->numbers[RUN_INPUT_TOKENS] && !table->numbers[RUN_OUTPUT_TOKENS])
        return no_data_error(table, "token counts are", why);
    if (run_completed_count(table) < QUERIES_MIN)
        return err_set(why, ERR_NO_DATA, "%zu completed %s; scaling needs %d",
                       run_completed_count(table), units_of(table, true), QUERIES_MIN);
    take(table, RUN_JOULES, &energy);
    plane_fit(energy.input, energy.output, energy.y, energy.count, &fit);
    result_group(result, "summary");
    result_count(result, "queries", energy.count);
    result_number(result, "fixed_joules", fit.intercept, "J");
    result_number(result, "joules_per_more_input_token", fit.a, "J");
    result_number(result, "joules_per_more_output_token", fit.b, "J");
    result_number(result, "r2", fit.r2, "");
    result_end(result);
    put_data(result, table, &energy);
    if (!is_known(fit.a))
        result_warn(analysis->result,
                    "prompt and answer lengths are collinear: the cost of an additional token "
                    "is not identifiable");
    lengths_release(&energy);
    return ERR_OK;
}

static const struct result_phrase FINDING[] = {
    {"fixed ", "data.planes.joules.fixed", ""},
    {", ", "data.planes.joules.per_input_token", " per input token"},
    {", ", "data.planes.joules.per_output_token", " per output token"},
    {", energy ~ output tokens^", "data.power_laws.joules_of_output_tokens.exponent", ""},
    {0},
};

const struct analysis_driver analysis_scaling = {
    .name = "scaling",
    .summary = "energy and time against prompt and answer length; over several runs, against "
               "concurrency, size, precision",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_INPUT_TOKENS) |
                  RUN_WANT(RUN_OUTPUT_TOKENS),
              0},
    .finding = FINDING,
    .run = scaling_run,
};
