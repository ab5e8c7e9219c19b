#include "core/json.h"
#include "core/text.h"
#include "estimate/calibrate.h"
#include "catalog/hardware.h"
#include "report/text/calibrate_report.h"

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
