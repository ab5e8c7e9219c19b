/* How energy and time grow with the lengths of prompt and answer, within one run.  Over several runs:
 * across.h. */
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/columns.h"
#include "core/json.h"
#include "core/units.h"
#include "stats/fit.h"

enum { QUERIES_LEAST = 4 };

struct lengths {
    double *input, *output, *y;
    size_t count;
};

static enum err take(const struct run_table *table, enum run_number y, struct lengths *out)
{
    *out = (struct lengths){malloc((table->rows + 1) * sizeof(double)),
                            malloc((table->rows + 1) * sizeof(double)),
                            malloc((table->rows + 1) * sizeof(double)), 0};
    if (!out->input || !out->output || !out->y)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        double value = run_number(table, y, i);
        if (!run_completed(table, i) || !is_known(value))
            continue;
        out->input[out->count] = run_number(table, RUN_INPUT_TOKENS, i);
        out->output[out->count] = run_number(table, RUN_OUTPUT_TOKENS, i);
        out->y[out->count++] = value;
    }
    return ERR_OK;
}

static void lengths_release(struct lengths *lengths)
{
    free(lengths->input);
    free(lengths->output);
    free(lengths->y);
}

static void put_plane(struct json *json, const char *key, const struct lengths *lengths)
{
    struct plane_fit fit;
    plane_fit(lengths->input, lengths->output, lengths->y, lengths->count, &fit);
    json_object(json, key);
    json_integer(json, "count", (int64_t)fit.count);
    json_number(json, "fixed", fit.intercept);
    json_number(json, "fixed_error", fit.intercept_error);
    json_number(json, "per_input_token", fit.a);
    json_number(json, "per_input_token_error", fit.a_error);
    json_number(json, "per_output_token", fit.b);
    json_number(json, "per_output_token_error", fit.b_error);
    json_number(json, "r2", fit.r2);
    json_object_end(json);
}

/* y ~ length^exponent */
static void put_power_law(struct json *json, const char *key, const double *x, const double *y,
                          size_t count)
{
    struct linear_fit fit;
    linear_fit_logs(x, y, count, LINEAR_LOG_LOG, &fit);
    json_object(json, key);
    json_integer(json, "count", (int64_t)fit.count);
    json_number(json, "exponent", fit.slope);
    json_number(json, "exponent_error", fit.slope_error);
    put_interval(json, "exponent_interval_95", fit.slope_low, fit.slope_high);
    json_number(json, "r2", fit.r2);
    json_object_end(json);
}

static enum err put_data(struct json *json, const struct run_table *table,
                         const struct lengths *energy)
{
    struct lengths time = {0};
    enum err err = take(table, RUN_LATENCY, &time);
    json_object(json, "data");
    json_object(json, "planes");
    put_plane(json, "joules", energy);
    if (!err)
        put_plane(json, "latency_s", &time);
    json_object_end(json);
    json_object(json, "power_laws");
    put_power_law(json, "joules_of_input_tokens", energy->input, energy->y, energy->count);
    put_power_law(json, "joules_of_output_tokens", energy->output, energy->y, energy->count);
    if (!err) {
        put_power_law(json, "latency_s_of_input_tokens", time.input, time.y, time.count);
        put_power_law(json, "latency_s_of_output_tokens", time.output, time.y, time.count);
    }
    json_object_end(json);
    json_object_end(json);
    lengths_release(&time);
    return err;
}

static enum err scaling_run(struct analysis *analysis, struct error *why)
{
    const struct run_table *table = analysis->table;
    struct json *json = analysis->json;
    struct lengths energy = {0};
    struct plane_fit fit;
    if (!table->numbers[RUN_INPUT_TOKENS] && !table->numbers[RUN_OUTPUT_TOKENS])
        return lacks(table, "token counts are", why);
    if (table->rows - table->failed < QUERIES_LEAST)
        return err_set(why, ERR_NO_DATA, "%zu completed queries; scaling needs %d",
                       table->rows - table->failed, QUERIES_LEAST);
    enum err err = take(table, RUN_JOULES, &energy);
    if (!err) {
        plane_fit(energy.input, energy.output, energy.y, energy.count, &fit);
        json_object(json, "summary");
        json_integer(json, "queries", (int64_t)energy.count);
        json_number(json, "fixed_joules", fit.intercept);
        json_number(json, "joules_per_more_input_token", fit.a);
        json_number(json, "joules_per_more_output_token", fit.b);
        json_number(json, "r2", fit.r2);
        json_object_end(json);
        err = put_data(json, table, &energy);
        if (!is_known(fit.a))
            analysis_warn(
                analysis,
                "prompt and answer lengths are collinear: the cost of an additional token "
                "is not identifiable");
    }
    lengths_release(&energy);
    return err;
}

const struct analysis_driver analysis_scaling = {
    .name = "scaling",
    .summary = "energy and time against prompt and answer length; over several runs, against "
               "concurrency, size, precision",
    .needs = {RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_INPUT_TOKENS) |
                  RUN_WANT(RUN_OUTPUT_TOKENS),
              0},
    .run = scaling_run,
};
