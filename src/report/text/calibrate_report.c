/* Reports of `ipw estimate calibrate`, the fitted coefficients with their errors, and `ipw estimate validate`,
 * predictions against measurements; as text or JSON. */
#include "report/text/reports.h"

#include <string.h>

#include "catalog/hardware.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/calibrate.h"
#include "estimate/validate.h"
#include "report/text/format.h"

/* ---- calibration, as text ---- */

enum { CELL_MAX = 64 };

/* format_si has no prefix above giga. */
static void rate_text(char *to, double rate, const char *unit)
{
    double times = rate >= 1e12 ? 1e12 : 1e9;
    str_format(to, FORMAT_MAX, "%.4g %c%s", rate / times, times > 1e9 ? 'T' : 'G', unit);
}

static void add_figure(struct table *table, const char *name, const struct calibrate_figure *figure,
                       bool is_power, size_t rows, const char *attained)
{
    double times = is_power ? 1 : 1e12;
    const char *unit = is_power ? "W" : "pJ"; /* no prefix in format_si */
    char cell[FORMAT_MAX];
    table_add(table, name);
    if (is_known(figure->value))
        table_add(table, format_in(cell, times * figure->value,
                                   figure->is_given ? UNKNOWN : times * figure->error, unit));
    else
        table_add(table, "-");
    if (figure->is_given || !is_known(figure->value))
        table_add(table, "");
    else
        table_addf(table, "%.3g to %.3g", times * figure->low, times * figure->high);
    if (rows)
        table_addf(table, "%zu", rows);
    else
        table_add(table, "");
    table_add(table, attained);
    table_add(table, figure->is_given ? "given, not fitted" : "");
}

static void figures_to_text(const struct calibration *c, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"", false},    {"fitted", true},   {"95 % CI", true},
        {"rows", true}, {"attained", true}, {"", false},
    };
    struct table table = TABLE(COLUMNS);
    char name[CELL_MAX], attained[FORMAT_MAX];
    for (size_t i = 0; i < c->class_count; i++) {
        const struct calibrate_class *class = &c->classes[i];
        str_format(name, sizeof name, "per FLOP, %s", class->name);
        rate_text(attained, class->flops_per_s, "FLOP/s");
        add_figure(&table, name, &class->joules_per_flop, false, class->rows, attained);
    }
    rate_text(attained, c->bytes_per_s, "B/s");
    add_figure(&table, "per byte", &c->joules_per_byte, false, 0, attained);
    add_figure(&table, "constant", &c->constant_w, true, 0, "");
    table_print(&table, "   ", color, out);
}

static void times_to_text(const struct calibrate_report *report, struct text *out)
{
    const struct calibration *c = report->calibration;
    char rate[FORMAT_MAX];
    for (size_t i = 0; i < c->cache_count; i++) {
        rate_text(rate, c->caches[i].bytes_per_s, "B/s");
        text_addf(out, "   %s from %.3g MiB in cache\n", rate,
                  c->caches[i].held / (1024.0 * 1024.0));
    }
    for (size_t i = 0; i < TIMINGS_RUNTIMES; i++) {
        const struct hardware_timings *timings = &report->timings[i];
        if (!timings->count)
            continue;
        text_addf(out, "   %zu operations of %s timed on %u threads: estimate with --runtime %s\n",
                  timings->count, timings->runtime, timings->threads, timings->runtime);
    }
}

static void rows_to_text(const struct calibration *c, struct text *out)
{
    if (c->has_no_energy)
        return;
    text_addf(out, "   %zu rows", c->point_count);
    if (c->short_rows)
        text_addf(out, "; %zu skipped: too short for the sensor", c->short_rows);
    if (c->empty_rows)
        text_addf(out, "; %zu skipped: energy unknown", c->empty_rows);
    text_addf(out, "\n   R² %.2f; mean error of power and energy %.1f %%, leave-one-out %.1f %%\n",
              c->r2, 100 * c->mape, 100 * c->mape_held_out);
}

static void overheads_to_text(const struct calibration *c, struct text *out)
{
    char number[FORMAT_MAX];
    if (is_known(c->idle_w))
        text_addf(out, "   idle power %s (%zu rows, not part of the fit)\n",
                  format_si(number, c->idle_w, "W"), c->idle_rows);
    if (is_known(c->launch_s))
        text_addf(out, "   launch overhead %s per kernel (%zu rows)\n",
                  format_si(number, c->launch_s, "s"), c->launch_rows);
    if (is_known(c->dispatch_s))
        text_addf(out, "   dispatch interval %s\n", format_si(number, c->dispatch_s, "s"));
    if (is_known(c->graph_launch_s))
        text_addf(out, "   dispatch interval in a graph %s\n",
                  format_si(number, c->graph_launch_s, "s"));
    if (is_known(c->host_launch_s))
        text_addf(out, "   launch of an operator in eager mode %s (--runtime pytorch-eager)\n",
                  format_si(number, c->host_launch_s, "s"));
}

void calibrate_text(const struct calibrate_report *report, bool color, struct text *out)
{
    const struct calibration *c = report->calibration;
    text_addf(out, " %s of %s, %s %s\n\n", c->has_no_energy ? "times" : "energy model",
              *report->hardware ? report->hardware : "an unnamed device",
              c->has_no_energy ? "measured by" : "fitted to", report->data);
    if (c->has_no_energy)
        text_addf(out, "   energy: not measured: %s\n\n", report->no_energy);
    if (c->is_estimated)
        text_add(out, "   ESTIMATED: the energy comes from a model, and so does the fit\n\n");
    figures_to_text(c, color, out);
    text_add(out, "\n");
    rows_to_text(c, out);
    times_to_text(report, out);
    overheads_to_text(c, out);
    if (report->base)
        text_addf(out, "   other figures from %s (%s)\n", report->base->id, report->base->name);
    if (report->file)
        text_addf(out, "   written to %s; use it with --hardware-file %s\n", report->file,
                  report->file);
}

/* ---- calibration, as JSON ---- */

static void figure_to_json(struct json *json, const char *name, const char *unit,
                           const struct calibrate_figure *figure)
{
    json_string(json, "name", name);
    json_string(json, "unit", unit);
    json_number(json, "value", figure->value);
    json_number(json, "plus_minus", figure->error);
    json_number(json, "low", figure->low);
    json_number(json, "high", figure->high);
    json_bool(json, "given", figure->is_given);
}

static void coefficients_to_json(struct json *json, const struct calibration *c)
{
    json_array(json, "coefficients");
    for (size_t i = 0; i < c->class_count; i++) {
        const struct calibrate_class *class = &c->classes[i];
        json_object(json, NULL);
        figure_to_json(json, class->name, "J/FLOP", &class->joules_per_flop);
        json_string(json, "precision", precision_name(class->precision));
        json_string(json, "units", class->unit ? calibrate_unit_name(class->unit) : NULL);
        json_integer(json, "rows", (int64_t)class->rows);
        json_number(json, "attained", class->flops_per_s);
        json_object_end(json);
    }
    json_object(json, NULL);
    figure_to_json(json, "byte", "J/B", &c->joules_per_byte);
    json_number(json, "attained", c->bytes_per_s);
    json_object_end(json);
    json_object(json, NULL);
    figure_to_json(json, "constant", "W", &c->constant_w);
    json_object_end(json);
    json_array_end(json);
}

static void caches_to_json(struct json *json, const struct calibration *c)
{
    json_array(json, "caches");
    for (size_t i = 0; i < c->cache_count; i++) {
        json_object(json, NULL);
        json_number(json, "bytes", c->caches[i].held);
        json_number(json, "bytes_per_s", c->caches[i].bytes_per_s);
        json_object_end(json);
    }
    json_array_end(json);
}

static void points_to_json(struct json *json, const struct calibration *c)
{
    json_array(json, "points");
    for (size_t i = 0; i < c->point_count; i++) {
        const struct calibrate_point *point = &c->points[i];
        json_object(json, NULL);
        json_string(json, "name", point->row->label);
        json_string(json, "precision", precision_name(point->row->precision));
        json_number(json, "flops", point->row->flops);
        json_number(json, "bytes", point->row->bytes);
        json_number(json, "latency_s", point->row->latency_s);
        json_number(json, "energy_j", point->row->energy_j);
        json_number(json, "measured_w", point->measured_w);
        json_number(json, "fitted_w", point->fitted_w);
        json_number(json, "held_out_w", point->held_out_w);
        json_object_end(json);
    }
    json_array_end(json);
}

void calibrate_json(const struct calibrate_report *report, struct text *out)
{
    const struct calibration *c = report->calibration;
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "hardware", *report->hardware ? report->hardware : NULL);
    json_string(&json, "base", report->base ? report->base->id : NULL);
    json_string(&json, "data", report->data);
    json_string(&json, "method",
                c->has_no_energy  ? NULL
                : c->is_estimated ? "estimated"
                                  : "measured");
    json_object(&json, "rows");
    json_integer(&json, "used", (int64_t)c->point_count);
    json_integer(&json, "too_short", (int64_t)c->short_rows);
    json_integer(&json, "without_energy", (int64_t)c->empty_rows);
    json_integer(&json, "idle", (int64_t)c->idle_rows);
    json_object_end(&json);
    coefficients_to_json(&json, c);
    json_string(&json, "weights", c->is_relative ? "relative" : "equal");
    json_number(&json, "r2", c->r2);
    json_number(&json, "mape", c->mape);
    json_number(&json, "mape_held_out", c->mape_held_out);
    json_number(&json, "condition", c->condition);
    json_number(&json, "idle_w", c->idle_w);
    json_number(&json, "launch_s", c->launch_s);
    json_number(&json, "dispatch_s", c->dispatch_s);
    json_number(&json, "graph_launch_s", c->graph_launch_s);
    json_number(&json, "host_launch_s", c->host_launch_s);
    caches_to_json(&json, c);
    size_t operations = 0;
    for (size_t i = 0; i < TIMINGS_RUNTIMES; i++)
        operations += report->timings[i].count;
    json_integer(&json, "operations", (int64_t)operations);
    json_string(&json, "hardware_file", report->file);
    points_to_json(&json, c);
    json_object_end(&json);
    text_add(out, "\n");
}

/* ---- validation, as text ---- */

enum { ROWS_SHOWN = 60 };

static void add_value(struct table *table, double value, const char *unit)
{
    char number[FORMAT_MAX];
    table_add(table, format_si(number, value, unit));
}

static double error_of(double measured, double predicted)
{
    return measured > 0 ? predicted / measured - 1 : UNKNOWN;
}

/* Measured, predicted, and their difference: "+12 %". */
static void add_pair(struct table *table, double measured, double predicted, const char *unit)
{
    double error = error_of(measured, predicted);
    add_value(table, measured, unit);
    add_value(table, predicted, unit);
    table_add_known(table, error, "%+.0f %%", 100 * error);
}

static void measured_to_text(const struct validation *v, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"row", false},  {"bound by", false}, {"measured", true},  {"predicted", true},
        {"error", true}, {"measured", true},  {"predicted", true}, {"error", true},
    };
    struct table table = TABLE(COLUMNS);
    size_t shown = v->count < ROWS_SHOWN ? v->count : ROWS_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        const struct validate_row *row = &v->rows[i];
        table_add(&table, row->label);
        table_add(&table, estimate_bound_name(row->predicted.regime));
        add_pair(&table, row->measured_s, row->predicted.latency_s, "s");
        add_pair(&table, row->measured_j, row->predicted.joules, "J");
    }
    table_print(&table, "   ", color, out);
    if (shown < v->count)
        text_addf(out, "   and %zu more (--json has them)\n", v->count - shown);
}

static void error_cells(struct table *table, const struct validate_error *error)
{
    if (error->rows == 0) {
        table_add(table, "-");
        table_add(table, "-");
        table_add(table, "");
        return;
    }
    table_addf(table, "%.1f %%", 100 * error->mape);
    table_addf(table, "%+.1f %%", 100 * error->bias);
    table_addf(table, "%zu", error->rows);
}

static void regimes_to_text(const struct validation *v, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"bound by", false},   {"latency MAPE", true}, {"bias", true}, {"rows", true},
        {"energy MAPE", true}, {"bias", true},         {"rows", true},
    };
    struct table table = TABLE(COLUMNS);

    for (unsigned bound = 0; bound <= BOUND_COUNT; bound++) {
        struct validate_sums sums = validate_sum(v, (enum estimate_bound)bound);
        if (sums.rows == 0)
            continue;
        table_add(&table,
                  bound < BOUND_COUNT ? estimate_bound_name((enum estimate_bound)bound) : "all");
        error_cells(&table, &sums.latency);
        error_cells(&table, &sums.energy);
    }
    table_print(&table, "   ", color, out);
}

/* The first row of each group represents it. */
static bool is_first_of_group(const struct validation *v, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (!strcmp(v->rows[i].group, v->rows[index].group))
            return false;
    return true;
}

static void held_out_to_text(const struct validation *v, bool color, struct text *out)
{
    const struct table_column COLUMNS[] = {
        {v->leave_out, false}, {"latency MAPE", true}, {"bias", true}, {"rows", true},
        {"energy MAPE", true}, {"bias", true},         {"rows", true},
    };
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i <= v->count; i++) {
        if (i < v->count && !is_first_of_group(v, i))
            continue;
        struct validate_sums sums = validate_held_out(v, i < v->count ? v->rows[i].group : NULL);
        table_add(&table, i < v->count ? v->rows[i].group : "all");
        error_cells(&table, &sums.latency);
        error_cells(&table, &sums.energy);
    }
    text_addf(out, "   leave-one-group-out correction by %s:\n", v->leave_out);
    table_print(&table, "   ", color, out);
    struct validate_sums all = validate_held_out(v, NULL);
    text_addf(out,
              "   inside the 95 %% interval of the others: latency %.0f %%, energy %.0f %%\n\n",
              100 * all.latency.inside[1], 100 * all.energy.inside[1]);
}

/* Coverage of the intervals. */
static void inside_to_text(const char *name, const struct validate_error *error, struct text *out)
{
    if (error->ranged)
        text_addf(
            out,
            "   %s: %.0f %% of %zu rows within the ± of the estimate, %.0f %% within its 95 %% "
            "interval (twice that)\n",
            name, 100 * error->inside[0], error->ranged, 100 * error->inside[1]);
}

static void host_to_text(const struct validation *v, struct text *out)
{
    struct validate_host host = validate_host(v);
    if (host.rows == 0)
        return;
    text_addf(out, "   host launch time of %zu rows assumed: %.3g µs", host.rows,
              1e6 * RUNTIME_HOST_ASSUMED_S);
    if (is_known(host.launch_s))
        text_addf(out, "; by these rows it is %.2g µs: --host-launch-us %.2g", 1e6 * host.launch_s,
                  1e6 * host.launch_s);
    text_add(out, "\n");
}

void validate_text(const struct validate_report *report, bool color, struct text *out)
{
    const struct validation *v = report->validation;
    text_addf(out, " %s against %s\n\n", report->hardware->name, report->data);
    measured_to_text(v, color, out);
    text_add(out, "\n");
    regimes_to_text(v, color, out);
    text_add(out, "\n");
    if (v->leave_out)
        held_out_to_text(v, color, out);
    struct validate_sums sums = validate_sum(v, BOUND_COUNT);
    inside_to_text("latency", &sums.latency, out);
    inside_to_text("energy", &sums.energy, out);
    host_to_text(v, out);
    if (v->short_rows)
        text_addf(out, "   energy of %zu rows not compared: under 1 ms, below sensor resolution\n",
                  v->short_rows);
    if (v->other_rows)
        text_addf(out, "   %zu rows excluded by --where\n", v->other_rows);
    if (v->is_estimated)
        text_add(out,
                 "   the reference energy is ESTIMATED by a model, not measured by a sensor\n");
    if (is_known(report->max))
        text_addf(out, "   limit %.4g %%: %s\n", 100 * report->max,
                  report->verdict == VALIDATE_PASS   ? "PASS"
                  : report->verdict == VALIDATE_FAIL ? "FAIL"
                                                     : "UNKNOWN, nothing compared");
}

/* ---- validation, as JSON ---- */

static void pair_to_json(struct json *json, const char *key, double measured, double predicted)
{
    json_object(json, key);
    json_number(json, "measured", measured);
    json_number(json, "predicted", predicted);
    json_number(json, "error", error_of(measured, predicted));
    json_object_end(json);
}

static void measured_to_json(struct json *json, const struct validate_row *row)
{
    json_object(json, NULL);
    json_string(json, "name", row->label);
    json_string(json, "bound", estimate_bound_name(row->predicted.regime));
    pair_to_json(json, "latency_s", row->measured_s, row->predicted.latency_s);
    pair_to_json(json, "energy_j", row->measured_j, row->predicted.joules);
    json_object_end(json);
}

static void error_to_json(struct json *json, const char *key, const struct validate_error *error)
{
    json_object(json, key);
    json_integer(json, "rows", (int64_t)error->rows);
    json_number(json, "mape", error->mape);
    json_number(json, "bias", error->bias);
    json_number(json, "inside_1_sigma", error->inside[0]);
    json_number(json, "inside_2_sigma", error->inside[1]);
    json_object_end(json);
}

static void sums_to_json(struct json *json, const char *key, const struct validate_sums *sums)
{
    json_object(json, key);
    error_to_json(json, "latency", &sums->latency);
    error_to_json(json, "energy", &sums->energy);
    json_object_end(json);
}

static void held_out_to_json(struct json *json, const struct validation *v)
{
    struct validate_sums sums = validate_held_out(v, NULL);
    json_object(json, "held_out");
    json_string(json, "column", v->leave_out);
    sums_to_json(json, "all", &sums);
    json_object(json, "groups");
    for (size_t i = 0; i < v->count; i++)
        if (is_first_of_group(v, i)) {
            sums = validate_held_out(v, v->rows[i].group);
            sums_to_json(json, v->rows[i].group, &sums);
        }
    json_object_end(json);
    json_object_end(json);
}

void validate_json(const struct validate_report *report, struct text *out)
{
    const struct validation *v = report->validation;
    struct validate_host host = validate_host(v);
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "hardware", report->hardware->id);
    json_string(&json, "data", report->data);
    json_string(&json, "method", v->is_estimated ? "estimated" : "measured");
    json_integer(&json, "too_short_for_energy", (int64_t)v->short_rows);
    json_integer(&json, "left_out", (int64_t)v->other_rows);
    json_integer(&json, "host_assumed", (int64_t)host.rows);
    json_number(&json, "host_launch_us", 1e6 * host.launch_s);
    struct validate_sums sums = validate_sum(v, BOUND_COUNT);
    sums_to_json(&json, "all", &sums);
    json_object(&json, "regimes");
    for (unsigned bound = 0; bound < BOUND_COUNT; bound++) {
        sums = validate_sum(v, (enum estimate_bound)bound);
        if (sums.rows)
            sums_to_json(&json, estimate_bound_name((enum estimate_bound)bound), &sums);
    }
    json_object_end(&json);
    if (v->leave_out)
        held_out_to_json(&json, v);
    json_number(&json, "max_mape", report->max);
    if (report->verdict != VALIDATE_UNKNOWN)
        json_bool(&json, "pass", report->verdict == VALIDATE_PASS);
    else
        json_null(&json, "pass");
    json_array(&json, "rows");
    for (size_t i = 0; i < v->count; i++)
        measured_to_json(&json, &v->rows[i]);
    json_array_end(&json);
    json_object_end(&json);
    text_add(out, "\n");
}
