#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "catalog/hardware.h"
#include "estimate/validate.h"
#include "report/text/validate_report.h"

static double off(double measured, double predicted)
{
    return measured > 0 ? predicted / measured - 1 : UNKNOWN;
}

static void row_to_json(struct json *json, const struct validate_row *row)
{
    json_object(json, NULL);
    json_string(json, "name", row->label);
    json_string(json, "bound", estimate_bound_name(row->predicted.regime));
    json_object(json, "latency_s");
    json_number(json, "measured", row->measured_s);
    json_number(json, "predicted", row->predicted.latency_s);
    json_number(json, "error", off(row->measured_s, row->predicted.latency_s));
    json_object_end(json);
    json_object(json, "energy_j");
    json_number(json, "measured", row->measured_j);
    json_number(json, "predicted", row->predicted.joules);
    json_number(json, "error", off(row->measured_j, row->predicted.joules));
    json_object_end(json);
    json_object_end(json);
}

static void error_to_json(struct json *json, const char *key, const struct validate_error *error)
{
    json_object(json, key);
    json_integer(json, "rows", (int64_t)error->rows);
    json_number(json, "mape", error->mape);
    json_number(json, "bias", error->bias);
    json_object_end(json);
}

static void sums_to_json(struct json *json, const char *key, const struct validate_sums *sums)
{
    json_object(json, key);
    error_to_json(json, "latency", &sums->latency);
    error_to_json(json, "energy", &sums->energy);
    json_object_end(json);
}

void validate_json(const struct validate_report *report, struct text *out)
{
    const struct validation *v = report->validation;
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "hardware", report->hardware->id);
    json_string(&json, "data", report->data);
    json_string(&json, "method", v->is_estimated ? "estimated" : "measured");
    json_integer(&json, "too_short_for_energy", (int64_t)v->short_rows);
    json_integer(&json, "left_out", (int64_t)v->other_rows);
    struct validate_sums sums = validate_sum(v, BOUND_COUNT);
    sums_to_json(&json, "all", &sums);
    json_object(&json, "regimes");
    for (unsigned bound = 0; bound < BOUND_COUNT; bound++) {
        sums = validate_sum(v, (enum estimate_bound)bound);
        if (sums.rows)
            sums_to_json(&json, estimate_bound_name((enum estimate_bound)bound), &sums);
    }
    json_object_end(&json);
    json_number(&json, "max_mape", report->most);
    if (report->verdict != VALIDATE_UNKNOWN)
        json_bool(&json, "pass", report->verdict == VALIDATE_PASS);
    else
        json_null(&json, "pass");
    json_array(&json, "rows");
    for (size_t i = 0; i < v->count; i++)
        row_to_json(&json, &v->rows[i]);
    json_array_end(&json);
    json_object_end(&json);
    text_add(out, "\n");
}
