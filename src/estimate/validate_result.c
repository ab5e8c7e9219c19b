/* The result of `ipw estimate validate`: predictions against measurements, row by row, and their errors by bottleneck
 * and by group. */
#include <string.h>

#include "core/result.h"
#include "core/units.h"
#include "estimate/runtime.h"
#include "estimate/validate.h"

static double error_of(double measured, double predicted)
{
    return measured > 0 ? predicted / measured - 1 : UNKNOWN;
}

static void put_pair(struct result *result, const char *key, double measured, double predicted,
                     const char *unit)
{
    result_group(result, key);
    result_number(result, "measured", measured, unit);
    result_number(result, "predicted", predicted, unit);
    result_number(result, "error", error_of(measured, predicted), "%");
    result_end(result);
}

static void put_rows(struct result *result, const struct validation *v)
{
    result_list(result, "rows");
    for (size_t i = 0; i < v->count; i++) {
        const struct validate_row *row = &v->rows[i];
        result_group(result, NULL);
        result_text(result, "name", row->label);
        result_text(result, "bound", estimate_bound_name(row->predicted.regime));
        put_pair(result, "latency_s", row->measured_s, row->predicted.latency_s, "s");
        put_pair(result, "energy_j", row->measured_j, row->predicted.joules, "J");
        result_end(result);
    }
    result_end(result);
}

static void put_error(struct result *result, const char *key, const struct validate_error *error)
{
    static const struct result_member MEMBERS[] = {
        {"mape", offsetof(struct validate_error, mape), "%"},
        {"bias", offsetof(struct validate_error, bias), "%"},
        {"inside_1_sigma", offsetof(struct validate_error, inside[0]), "%"},
        {"inside_2_sigma", offsetof(struct validate_error, inside[1]), "%"},
        {0},
    };
    result_group(result, key);
    result_count(result, "rows", error->rows);
    result_members(result, MEMBERS, error);
    result_aside(result, "view");
    result_count(result, "ranged", error->ranged);
    result_end(result);
    result_end(result);
}

static void put_sums(struct result *result, const char *key, struct validate_sums sums)
{
    result_group(result, key);
    put_error(result, "latency", &sums.latency);
    put_error(result, "energy", &sums.energy);
    result_end(result);
}

static void put_regimes(struct result *result, const struct validation *v)
{
    result_group(result, "regimes");
    for (enum estimate_bound bound = 0; bound < BOUND_COUNT; bound++) {
        struct validate_sums sums = validate_sum(v, bound);
        if (sums.rows)
            put_sums(result, estimate_bound_name(bound), sums);
    }
    result_end(result);
}

/* The first row of each group represents it. */
static bool is_first_of_group(const struct validation *v, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (str_equal(v->rows[i].group, v->rows[index].group))
            return false;
    return true;
}

static void put_held_out(struct result *result, const struct validation *v)
{
    result_group(result, "held_out");
    result_text(result, "column", v->leave_out);
    put_sums(result, "all", validate_held_out(v, NULL));
    result_group(result, "groups");
    for (size_t i = 0; i < v->count; i++)
        if (is_first_of_group(v, i))
            put_sums(result, v->rows[i].group, validate_held_out(v, v->rows[i].group));
    result_end(result);
    result_end(result);
}

static void put_verdict(struct result *result, const struct validate_outcome *outcome)
{
    enum validate_verdict verdict = validate_verdict(outcome->validation, outcome->max);
    result_number(result, "max_mape", outcome->max, "%");
    if (verdict == VALIDATE_UNKNOWN)
        result_null(result, "pass");
    else
        result_flag(result, "pass", verdict == VALIDATE_PASS);
}

void validation_to_result(const struct validate_outcome *outcome, struct result *result)
{
    const struct validation *v = outcome->validation;
    struct validate_host host = validate_host(v);
    result_begin(result, "validation");
    result_text(result, "hardware", outcome->hardware->id);
    result_text(result, "data", outcome->data);
    result_text(result, "method", v->is_estimated ? "estimated" : "measured");
    result_count(result, "too_short_for_energy", v->short_rows);
    result_count(result, "left_out", v->other_rows);
    result_count(result, "host_assumed", host.rows);
    result_number(result, "host_launch_us", 1e6 * host.launch_s, "µs");
    put_sums(result, "all", validate_sum(v, BOUND_COUNT));
    put_regimes(result, v);
    if (v->leave_out)
        put_held_out(result, v);
    put_verdict(result, outcome);
    put_rows(result, v);
    result_aside(result, "view");
    result_text(result, "device", outcome->hardware->name);
    result_number(result, "host_assumed_us", 1e6 * RUNTIME_HOST_ASSUMED_S, "µs");
    result_end(result);
    result_end(result);
}
