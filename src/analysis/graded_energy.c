#include "analysis/graded_energy.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/columns.h"
#include "core/json.h"
#include "core/units.h"
#include "stats/quantile.h"

/* What lies under it is no energy or power: the Python IPW's bound. */
#define POSITIVE_LEAST 1e-12

struct query {
    double joules, watts, seconds;
    bool right;
};

static bool is_positive(double value)
{
    return is_known(value) && value > POSITIVE_LEAST;
}

static void add_energy(struct graded_energy *graded, const struct query *query)
{
    if (is_positive(query->joules)) {
        graded->joules[graded->joules_count++] = query->joules;
        graded->energy_graded++;
        graded->energy_right += query->right;
        return;
    }
    if (!is_known(query->joules))
        return;
    graded->zero_joules++;
    if (!is_positive(query->watts) || !is_positive(query->seconds))
        return;
    double joules = query->watts * query->seconds;
    graded->joules[graded->joules_count++] = joules;
    graded->imputed_sum += joules;
    graded->imputed++;
}

static void add_power(struct graded_energy *graded, const struct query *query)
{
    bool derived = is_positive(query->joules) && is_positive(query->seconds);
    if (!derived && !is_positive(query->watts)) {
        graded->zero_watts += is_known(query->watts);
        return;
    }
    graded->watts[graded->watts_count++] = derived ? query->joules / query->seconds : query->watts;
    graded->derived += derived;
    graded->measured += !derived;
    graded->power_graded++;
    graded->power_right += query->right;
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / (double)count : UNKNOWN;
}

enum err graded_energy_of(const struct run_table *table, struct graded_energy *out)
{
    bool machine = is_by_machine(table);
    *out = (struct graded_energy){.joules = malloc((table->rows + 1) * sizeof *out->joules),
                                  .watts = malloc((table->rows + 1) * sizeof *out->watts)};
    if (!out->joules || !out->watts)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        int verdict = run_flag(table, RUN_CORRECT, i);
        if (!run_completed(table, i) || verdict < 0)
            continue;
        struct query query = {
            .joules = run_number(table, machine ? RUN_JOULES : RUN_BASIS_JOULES, i),
            .watts = run_number(table, machine ? RUN_WATTS : RUN_BASIS_WATTS, i),
            .seconds = run_number(table, RUN_LATENCY, i),
            .right = verdict == 1,
        };
        add_energy(out, &query);
        add_power(out, &query);
    }
    out->mean_joules = mean_of(out->joules, out->joules_count);
    out->mean_watts = mean_of(out->watts, out->watts_count);
    return ERR_OK;
}

void graded_energy_release(struct graded_energy *graded)
{
    free(graded->joules);
    free(graded->watts);
    *graded = (struct graded_energy){0};
}

static void put_extremes(struct json *json, double *values, size_t count, double mean)
{
    double min = UNKNOWN, max = UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        min = fmin(min, values[i]);
        max = fmax(max, values[i]);
    }
    json_integer(json, "count", (int64_t)count);
    json_number(json, "avg", mean);
    json_number(json, "median", select_median(values, count));
    json_number(json, "min", min);
    json_number(json, "max", max);
}

static void put_share(struct json *json, size_t right, size_t graded)
{
    json_number(json, "accuracy", graded ? (double)right / (double)graded : UNKNOWN);
}

void graded_energy_put(struct json *json, struct graded_energy *graded)
{
    json_object(json, "energy");
    put_extremes(json, graded->joules, graded->joules_count, graded->mean_joules);
    json_number(json, "total", graded->mean_joules * (double)graded->joules_count);
    put_share(json, graded->energy_right, graded->energy_graded);
    json_integer(json, "zero_values", (int64_t)graded->zero_joules);
    json_number(json, "imputed_from_power",
                graded->imputed ? graded->imputed_sum / (double)graded->imputed : UNKNOWN);
    json_integer(json, "imputed_count", (int64_t)graded->imputed);
    json_object_end(json);
    json_object(json, "power");
    put_extremes(json, graded->watts, graded->watts_count, graded->mean_watts);
    put_share(json, graded->power_right, graded->power_graded);
    json_integer(json, "zero_values", (int64_t)graded->zero_watts);
    json_integer(json, "derived_power_samples", (int64_t)graded->derived);
    json_integer(json, "power_metric_samples", (int64_t)graded->measured);
    json_object_end(json);
}
