/* What `ipw estimate calibrate` says: the fitted coefficients with their errors, as text or JSON. */
#include "report/text/calibrate_report.h"

#include <math.h>

#include "catalog/hardware.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/calibrate.h"
#include "report/text/format.h"
#include "report/text/table.h"

/* ---- text ---- */

enum { CELL_MAX = 64 };

static const struct table_column COLUMNS[] = {
    {"", false},    {"fitted", true},   {"95 % CI", true},
    {"rows", true}, {"attained", true}, {"", false},
};

/* As many decimals as the uncertainty has meaning: "78.6 ± 6.9", "0.775 ± 0.041". */
static void value_cell(struct table *table, double value, double error, const char *unit)
{
    int decimals = error >= 10 || !(error > 0) ? 0 : error >= 1 ? 1 : error >= 0.1 ? 2 : 3;
    table_addf(table, "%.*f ± %.*f %s", decimals, value, decimals, error, unit);
}

/* format_si has no prefix beyond giga, which is small for these. */
static void rate_text(char *to, double rate, const char *unit)
{
    double times = rate >= 1e12 ? 1e12 : 1e9;
    str_format(to, FORMAT_MAX, "%.4g %c%s", rate / times, times > 1e9 ? 'T' : 'G', unit);
}

static void add_figure(struct table *table, const char *name, const struct calibrate_figure *figure,
                       bool is_power, size_t rows, const char *attained)
{
    double times = is_power ? 1 : 1e12;
    const char *unit = is_power ? "W" : "pJ";
    table_add(table, name);
    if (figure->is_given) {
        table_addf(table, "%.4g %s", times * figure->value, unit);
        table_add(table, "");
    } else {
        value_cell(table, times * figure->value, times * figure->error, unit);
        table_addf(table, "%.3g to %.3g", times * figure->low, times * figure->high);
    }
    if (rows)
        table_addf(table, "%zu", rows);
    else
        table_add(table, "");
    table_add(table, attained);
    table_add(table, figure->is_given ? "given, not fitted" : "");
}

static void figures_to_text(const struct calibration *c, bool color, struct text *out)
{
    struct table table;
    char name[CELL_MAX], attained[FORMAT_MAX];
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < c->class_count; i++) {
        const struct calibrate_class *class = &c->classes[i];
        str_format(name, sizeof name, "per FLOP, %s", class->name);
        rate_text(attained, class->flops_per_s, "FLOP/s");
        add_figure(&table, name, &class->joules_per_flop, false, class->rows, attained);
    }
    rate_text(attained, c->bytes_per_s, "B/s");
    add_figure(&table, "per byte", &c->joules_per_byte, false, 0, attained);
    add_figure(&table, "constant", &c->constant_w, true, 0, "");
    table_write(&table, "   ", color, out);
    table_release(&table);
}

static void rows_to_text(const struct calibration *c, struct text *out)
{
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
}

void calibrate_text(const struct calibrate_report *report, bool color, struct text *out)
{
    const struct calibration *c = report->calibration;
    text_addf(out, " energy model of %s, fitted to %s\n\n",
              *report->hardware ? report->hardware : "an unnamed device", report->data);
    if (c->is_estimated)
        text_add(out, "   ESTIMATED: the energy is a model's, and so is the fit\n\n");
    figures_to_text(c, color, out);
    text_add(out, "\n");
    rows_to_text(c, out);
    overheads_to_text(c, out);
    if (report->base)
        text_addf(out, "   other figures from %s (%s)\n", report->base->id, report->base->name);
    if (report->file)
        text_addf(out, "   written to %s; use it with --hardware-file %s\n", report->file,
                  report->file);
}

/* ---- JSON ---- */

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
    json_string(&json, "method", c->is_estimated ? "estimated" : "measured");
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
    json_string(&json, "hardware_file", report->file);
    points_to_json(&json, c);
    json_object_end(&json);
    text_add(out, "\n");
}
