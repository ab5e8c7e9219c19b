/* Linear fits over the queries: the five of the Python IPW, under its keys, and some more. */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/correlation.h"
#include "stats/descriptive.h"
#include "stats/fit.h"
#include "rundir/record.h"

/* Smaller values count as missing, as in the Python IPW. */
#define POWER_MIN 1e-12

/* More queries take long and add no precision. */
enum { RANKED_MAX = 50000 };

static const struct pair_row {
    const char *key;
    enum run_number x, y;
    enum linear_logs logs;
    bool is_power;
} UPSTREAM[] =
    {
        {"input_tokens_vs_ttft", RUN_INPUT_TOKENS, RUN_TTFT, LINEAR_PLAIN, false},
        {"total_tokens_vs_energy", RUN_TOTAL_TOKENS, RUN_BASIS_JOULES, LINEAR_PLAIN, false},
        {"total_tokens_vs_latency", RUN_TOTAL_TOKENS, RUN_LATENCY, LINEAR_PLAIN, false},
        {"total_tokens_vs_power", RUN_TOTAL_TOKENS, RUN_BASIS_WATTS, LINEAR_PLAIN, true},
        {"total_tokens_vs_power_log", RUN_TOTAL_TOKENS, RUN_BASIS_WATTS, LINEAR_LOG_X, true},
},
  MORE[] = {
      /* The Python IPW's is that of the GPUs or the board; this one that of all counted devices. */
      {"total_tokens_vs_energy", RUN_TOTAL_TOKENS, RUN_JOULES, LINEAR_PLAIN, false},
      {"output_tokens_vs_energy", RUN_OUTPUT_TOKENS, RUN_JOULES, LINEAR_PLAIN, false},
      {"output_tokens_vs_latency", RUN_OUTPUT_TOKENS, RUN_LATENCY, LINEAR_PLAIN, false},
      {"input_tokens_vs_prefill_energy", RUN_INPUT_TOKENS, RUN_PREFILL_JOULES, LINEAR_PLAIN, false},
      {"output_tokens_vs_decode_energy", RUN_OUTPUT_TOKENS, RUN_DECODE_JOULES, LINEAR_PLAIN, false},
      {"total_tokens_vs_energy_log_log", RUN_TOTAL_TOKENS, RUN_JOULES, LINEAR_LOG_LOG, false},
};

struct points {
    double *x, *y;
    size_t count;
    struct online y_all; /* also where the logarithm of x or y is undefined */
    uint64_t zeros;
};

static void take_points(const struct run_table *table, const struct pair_row *row,
                        struct points *out)
{
    *out = (struct points){xmalloc((table->rows + 1) * sizeof *out->x),
                           xmalloc((table->rows + 1) * sizeof *out->y),
                           0,
                           {0},
                           0};
    for (size_t i = 0; i < table->rows; i++) {
        double y = run_number(table, row->y, i);
        if (!run_completed(table, i) || !is_known(y))
            continue;
        out->zeros += y == 0;
        if (row->is_power && fabs(y) < POWER_MIN)
            continue;
        double x = run_number(table, row->x, i);
        if (!is_known(x))
            continue;
        online_add(&out->y_all, y);
        out->x[out->count] = x;
        out->y[out->count++] = y;
    }
}

/* The domain of a fit's energy or power: "gpu", "soc" or "mixed", as in the Python IPW, or "machine"; NULL for other
 * figures. */
static const char *basis_of(const struct run_table *table, enum run_number y)
{
    switch (y) {
    case RUN_BASIS_JOULES:
    case RUN_BASIS_WATTS:
        return energy_basis(table);
    case RUN_JOULES:
    case RUN_WATTS:
    case RUN_PREFILL_JOULES:
    case RUN_DECODE_JOULES:
        return table->ours ? "machine" : energy_basis(table);
    default:
        return NULL;
    }
}

static void put_fit(struct result *result, const struct points *points,
                    const struct linear_fit *fit, const char *unit)
{
    result_count(result, "count", fit->count);
    result_number(result, "slope", fit->slope, unit);
    result_number(result, "intercept", fit->intercept, unit);
    result_number(result, "r2", fit->r2, "");
    result_number(result, "avg_y", online_mean(&points->y_all), unit);
    result_error(result, "slope", fit->slope_error);
    result_error(result, "intercept", fit->intercept_error);
    result_interval(result, "slope", fit->slope_low, fit->slope_high);
    result_interval(result, "intercept", fit->intercept_low, fit->intercept_high);
    result_number(result, "residual_std", fit->residual, unit);
    result_number(result, "p_value", fit->p_value, "");
}

/* Keeps every n-th of many points, at the front; returns their number.  The following statistics do not need all of
 * them. */
static size_t thin(struct points *points)
{
    size_t step = points->count / RANKED_MAX + 1, kept = 0;
    for (size_t i = 0; i < points->count; i += step) {
        points->x[kept] = points->x[i];
        points->y[kept++] = points->y[i];
    }
    return kept;
}

/* For pairs without logarithms: a robust line and rank correlations. */
static void put_robust(struct result *result, struct points *points, const char *unit)
{
    struct theil_sen line;
    struct correlation ranks = {0, UNKNOWN, UNKNOWN};
    theil_sen(points->x, points->y, points->count, &line);
    spearman(points->x, points->y, thin(points), &ranks);
    result_number(result, "theil_sen_slope", line.slope, unit);
    result_number(result, "theil_sen_intercept", line.intercept, unit);
    result_number(result, "spearman", ranks.value, "");
}

static void put_points(struct analysis *analysis, const struct pair_row *row, bool skip_unknown,
                       struct points *points)
{
    struct result *result = analysis->result;
    struct linear_fit fit;
    /* Per token, which has no unit; none for logarithms. */
    const char *unit = row->logs == LINEAR_PLAIN ? column_unit(row->y, RUN_NUMBERS) : "";
    if (points->zeros && row->logs == LINEAR_PLAIN)
        result_warn(analysis->result, "%s: %" PRIu64 " values of %s are 0", row->key, points->zeros,
                    record_column(COLUMN_NUMBER, row->y)->name);
    linear_fit_logs(points->x, points->y, points->count, row->logs, &fit);
    if (skip_unknown && !is_known(fit.slope))
        return;
    result_group(result, row->key);
    if (basis_of(analysis->table, row->y))
        result_text(result, "energy_basis", basis_of(analysis->table, row->y));
    put_fit(result, points, &fit, unit);
    if (row->logs == LINEAR_PLAIN)
        put_robust(result, points, unit);
    result_end(result);
}

static void put_pair(struct analysis *analysis, const struct pair_row *row, bool skip_unknown)
{
    struct points points;
    take_points(analysis->table, row, &points);
    put_points(analysis, row, skip_unknown, &points);
    free(points.x);
    free(points.y);
}

/* If neither GPUs nor a board were measured, the machine's joules are used instead, with a warning. */
static struct pair_row with_basis(struct pair_row row, bool by_machine)
{
    if (by_machine && row.y == RUN_BASIS_JOULES)
        row.y = RUN_JOULES;
    if (by_machine && row.y == RUN_BASIS_WATTS)
        row.y = RUN_WATTS;
    return row;
}

static void put_pairs(struct analysis *analysis, bool by_machine, bool skip_unknown)
{
    struct result *result = analysis->result;
    result_group(result, "regressions");
    for (size_t i = 0; i < COUNT_OF(UPSTREAM); i++) {
        struct pair_row row = with_basis(UPSTREAM[i], by_machine);
        put_pair(analysis, &row, skip_unknown);
    }
    result_end(result);
    result_group(result, "more");
    for (size_t i = 0; i < COUNT_OF(MORE); i++)
        if (analysis->table->numbers[MORE[i].y])
            put_pair(analysis, &MORE[i], skip_unknown);
    result_end(result);
}

static enum err regression_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct params_reader read = {analysis->params, why, require_requests(table, why)};
    bool skip_zeroes = params_bool(&read, "skip_zeroes", false);
    bool by_machine = uses_machine_energy(table);
    if (read.err)
        return read.err;
    if (run_completed_count(table) < 2)
        return err_set(why, ERR_NO_DATA, "a fit needs two completed %s; there is one",
                       units_of(table, true));
    result_group(analysis->result, "summary");
    result_count(analysis->result, "total_samples", run_completed_count(table));
    result_text(analysis->result, "model", table->model);
    result_text(analysis->result, "energy_basis", energy_basis(table));
    result_end(analysis->result);
    result_group(analysis->result, "data");
    put_pairs(analysis, by_machine, skip_zeroes);
    result_end(analysis->result);
    if (by_machine)
        result_warn(analysis->result,
                    "no GPU or board was measured: energy and power are the machine's");
    return ERR_OK;
}

static const struct param_spec PARAMS[] = {
    {"skip_zeroes", "YES_OR_NO", "omit fits that cannot be computed (default no)"},
    {0},
};

static const struct result_phrase FINDING[] = {
    {"", "data.more.output_tokens_vs_energy.slope", " per output token"},
    {" (r² ", "data.more.output_tokens_vs_energy.r2", ")"},
    {", ", "data.more.output_tokens_vs_latency.slope", " per output token"},
    {" (r² ", "data.more.output_tokens_vs_latency.r2", ")"},
    {", ", "data.regressions.input_tokens_vs_ttft.slope", " of TTFT per input token"},
    {" (r² ", "data.regressions.input_tokens_vs_ttft.r2", ")"},
    {0},
};

const struct analysis_driver analysis_regression = {
    .name = "regression",
    .summary =
        "linear fits of energy, power and latency against tokens; errors, intervals, Theil-Sen",
    .params = PARAMS,
    .needs = {RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS) |
                  RUN_WANT(RUN_TOTAL_TOKENS) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_LATENCY) |
                  RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_BASIS_WATTS) | RUN_WANT(RUN_JOULES) |
                  RUN_WANT(RUN_WATTS) | RUN_WANT(RUN_PREFILL_JOULES) | RUN_WANT(RUN_DECODE_JOULES),
              0},
    .finding = FINDING,
    .run = regression_run,
};
