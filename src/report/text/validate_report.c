/* What `ipw estimate validate` says: predictions beside measurements, as text or JSON. */
#include "report/text/validate_report.h"

#include "catalog/hardware.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "estimate/validate.h"
#include "report/text/format.h"
#include "report/text/table.h"

/* ---- text ---- */

enum { ROWS_SHOWN = 60 };

static void add_value(struct table *table, double value, const char *unit)
{
    char number[FORMAT_MAX];
    table_add(table, format_si(number, value, unit));
}

/* "+12 %" of predicted against measured. */
static void add_error(struct table *table, double measured, double predicted)
{
    if (is_known(measured) && is_known(predicted) && measured > 0)
        table_addf(table, "%+.0f %%", 100 * (predicted / measured - 1));
    else
        table_add(table, "-");
}

static void rows_to_text(const struct validation *v, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"row", false},  {"bound by", false}, {"measured", true},  {"predicted", true},
        {"error", true}, {"measured", true},  {"predicted", true}, {"error", true},
    };
    struct table table;
    size_t shown = v->count < ROWS_SHOWN ? v->count : ROWS_SHOWN;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < shown; i++) {
        const struct validate_row *row = &v->rows[i];
        table_add(&table, row->label);
        table_add(&table, estimate_bound_name(row->predicted.regime));
        add_value(&table, row->measured_s, "s");
        add_value(&table, row->predicted.latency_s, "s");
        add_error(&table, row->measured_s, row->predicted.latency_s);
        add_value(&table, row->measured_j, "J");
        add_value(&table, row->predicted.joules, "J");
        add_error(&table, row->measured_j, row->predicted.joules);
    }
    table_write(&table, "   ", color, out);
    table_release(&table);
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
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (unsigned bound = 0; bound <= BOUND_COUNT; bound++) {
        struct validate_sums sums = validate_sum(v, (enum estimate_bound)bound);
        if (sums.rows == 0)
            continue;
        table_add(&table,
                  bound < BOUND_COUNT ? estimate_bound_name((enum estimate_bound)bound) : "all");
        error_cells(&table, &sums.latency);
        error_cells(&table, &sums.energy);
    }
    table_write(&table, "   ", color, out);
    table_release(&table);
}

void validate_text(const struct validate_report *report, bool color, struct text *out)
{
    const struct validation *v = report->validation;
    text_addf(out, " %s against %s\n\n", report->hardware->name, report->data);
    rows_to_text(v, color, out);
    text_add(out, "\n");
    regimes_to_text(v, color, out);
    text_add(out, "\n");
    if (v->short_rows)
        text_addf(out, "   energy of %zu rows not compared: under 1 ms, below sensor resolution\n",
                  v->short_rows);
    if (v->other_rows)
        text_addf(out, "   %zu rows excluded by --where\n", v->other_rows);
    if (v->is_estimated)
        text_add(out, "   the measured energy is ESTIMATED: by a model, not by a sensor\n");
    if (is_known(report->most))
        text_addf(out, "   limit %.4g %%: %s\n", 100 * report->most,
                  report->verdict == VALIDATE_PASS   ? "PASS"
                  : report->verdict == VALIDATE_FAIL ? "FAIL"
                                                     : "UNKNOWN, nothing compared");
}

/* ---- JSON ---- */

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
