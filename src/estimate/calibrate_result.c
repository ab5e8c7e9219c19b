/* The result of `ipw estimate calibrate`: the fitted coefficients with their errors, the quality of the fit, overheads,
 * and the rows that it is based on. */
#include "core/result.h"
#include "core/units.h"
#include "estimate/calibrate.h"

static void put_figure(struct result *result, const char *name, const char *unit,
                       const struct calibrate_figure *figure)
{
    result_text(result, "name", name);
    result_text(result, "unit", unit);
    result_number(result, "value", figure->value, unit);
    result_uncertain(result, "value", figure->error);
    result_between(result, "value", figure->low, figure->high);
    result_number(result, "plus_minus", figure->error, unit);
    result_number(result, "low", figure->low, unit);
    result_number(result, "high", figure->high, unit);
    result_flag(result, "given", figure->is_given);
}

static void put_coefficients(struct result *result, const struct calibration *c)
{
    result_list(result, "coefficients");
    for (size_t i = 0; i < c->class_count; i++) {
        const struct calibrate_class *class = &c->classes[i];
        result_group(result, NULL);
        put_figure(result, class->name, "J/FLOP", &class->joules_per_flop);
        result_text(result, "precision", precision_name(class->precision));
        result_text(result, "units", class->unit ? calibrate_unit_name(class->unit) : NULL);
        result_count(result, "rows", class->rows);
        result_number(result, "attained", class->flops_per_s, "FLOP/s");
        result_end(result);
    }
    result_group(result, NULL);
    put_figure(result, "byte", "J/B", &c->joules_per_byte);
    result_number(result, "attained", c->bytes_per_s, "B/s");
    result_end(result);
    result_group(result, NULL);
    put_figure(result, "constant", "W", &c->constant_w);
    result_end(result);
    result_end(result);
}

static void put_caches(struct result *result, const struct calibration *c)
{
    static const struct result_member CACHE[] = {
        {"bytes", offsetof(struct calibrate_cache, held), "B"},
        {"bytes_per_s", offsetof(struct calibrate_cache, bytes_per_s), "B/s"},
        {0},
    };
    result_list(result, "caches");
    for (size_t i = 0; i < c->cache_count; i++) {
        result_group(result, NULL);
        result_members(result, CACHE, &c->caches[i]);
        result_end(result);
    }
    result_end(result);
}

static void put_points(struct result *result, const struct calibration *c)
{
    static const struct result_member MEASURED[] = {
        {"flops", offsetof(struct calibrate_row, flops), ""},
        {"bytes", offsetof(struct calibrate_row, bytes), "B"},
        {"latency_s", offsetof(struct calibrate_row, latency_s), "s"},
        {"energy_j", offsetof(struct calibrate_row, energy_j), "J"},
        {0},
    };
    static const struct result_member POWER[] = {
        {"measured_w", offsetof(struct calibrate_point, measured_w), "W"},
        {"fitted_w", offsetof(struct calibrate_point, fitted_w), "W"},
        {"held_out_w", offsetof(struct calibrate_point, held_out_w), "W"},
        {0},
    };
    result_list(result, "points");
    for (size_t i = 0; i < c->point_count; i++) {
        const struct calibrate_point *point = &c->points[i];
        result_group(result, NULL);
        result_text(result, "name", point->row->label);
        result_text(result, "precision", precision_name(point->row->precision));
        result_members(result, MEASURED, point->row);
        result_members(result, POWER, point);
        result_end(result);
    }
    result_end(result);
}

/* Fit quality, idle power and overheads. */
static void put_fit(struct result *result, const struct calibration *c)
{
    static const struct result_member FIT[] = {
        {"r2", offsetof(struct calibration, r2), ""},
        {"mape", offsetof(struct calibration, mape), "%"},
        {"mape_held_out", offsetof(struct calibration, mape_held_out), "%"},
        {"condition", offsetof(struct calibration, condition), ""},
        {"idle_w", offsetof(struct calibration, idle_w), "W"},
        {"launch_s", offsetof(struct calibration, launch_s), "s"},
        {"dispatch_s", offsetof(struct calibration, dispatch_s), "s"},
        {"graph_launch_s", offsetof(struct calibration, graph_launch_s), "s"},
        {"host_launch_s", offsetof(struct calibration, host_launch_s), "s"},
        {0},
    };
    result_text(result, "weights", c->is_relative ? "relative" : "equal");
    result_members(result, FIT, c);
}

static void put_rows(struct result *result, const struct calibration *c)
{
    result_group(result, "rows");
    result_count(result, "used", c->point_count);
    result_count(result, "too_short", c->short_rows);
    result_count(result, "without_energy", c->empty_rows);
    result_count(result, "idle", c->idle_rows);
    result_end(result);
}

static size_t count_operations(const struct calibrate_origin *origin)
{
    size_t operations = 0;
    for (size_t i = 0; i < origin->timing_count; i++)
        operations += origin->timings[i].count;
    return operations;
}

static void put_aside(struct result *result, const struct calibrate_outcome *outcome)
{
    result_aside(result, "view");
    result_text(result, "base_name", outcome->origin.base ? outcome->origin.base->name : NULL);
    result_text(result, "no_energy", outcome->no_energy);
    result_count(result, "launch_rows", outcome->calibration->launch_rows);
    result_list(result, "timings");
    for (size_t i = 0; i < outcome->origin.timing_count; i++) {
        const struct hardware_timings *timings = &outcome->origin.timings[i];
        result_group(result, NULL);
        result_text(result, "runtime", timings->runtime);
        result_count(result, "operations", timings->count);
        result_count(result, "threads", timings->threads);
        result_end(result);
    }
    result_end(result);
    result_end(result);
}

static const char *method_of(const struct calibration *c)
{
    if (c->has_no_energy)
        return NULL;
    return c->is_estimated ? "estimated" : "measured";
}

void calibration_to_result(const struct calibrate_outcome *outcome, struct result *result)
{
    const struct calibration *c = outcome->calibration;
    const struct calibrate_origin *origin = &outcome->origin;
    result_begin(result, "calibration");
    result_text(result, "hardware", *origin->hardware ? origin->hardware : NULL);
    result_text(result, "base", origin->base ? origin->base->id : NULL);
    result_text(result, "data", origin->data);
    result_text(result, "method", method_of(c));
    put_rows(result, c);
    put_coefficients(result, c);
    put_fit(result, c);
    put_caches(result, c);
    result_count(result, "operations", count_operations(origin));
    result_text(result, "hardware_file", outcome->file);
    put_points(result, c);
    put_aside(result, outcome);
    result_end(result);
}
