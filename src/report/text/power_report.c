/* What `ipw power` says, as text, JSON or CSV. */
#include "report/text/power_report.h"

#include <inttypes.h>
#include <math.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/edp.h"
#include "power/data_checks.h"
#include "power/freq_model.h"
#include "report/text/format.h"
#include "report/text/table.h"

/* ---- findings ---- */

static void finding_to_text(const struct data_finding *f, bool color, struct text *out)
{
    enum data_severity severity = data_check_severity(f->check);
    bool is_red = color && severity == DATA_VOID;
    text_addf(out, "  %s%s%s %s", is_red ? "\033[31m" : "", data_severity_name(severity),
              is_red ? "\033[0m" : "", data_check_name(f->check));
    if (f->gpu[0] || f->application[0])
        text_addf(out, " (%s%s%s)", f->gpu, f->gpu[0] && f->application[0] ? " " : "",
                  f->application);
    text_addf(out, ": %s: %s\n", f->text, data_check_done(f->check));
}

void power_findings_text(const struct data_findings *findings, bool color, struct text *out)
{
    if (findings->count)
        text_add(out, "\nData checks:\n");
    for (int severity = DATA_VOID; severity >= DATA_NOTE; severity--)
        for (size_t i = 0; i < findings->count; i++)
            if (data_check_severity(findings->items[i].check) == (enum data_severity)severity)
                finding_to_text(&findings->items[i], color, out);
}

void power_findings_json(const struct data_findings *findings, const char *key, struct json *json)
{
    json_array(json, key);
    for (size_t i = 0; i < findings->count; i++) {
        const struct data_finding *f = &findings->items[i];
        json_object(json, NULL);
        json_string(json, "check", data_check_name(f->check));
        json_string(json, "severity", data_severity_name(data_check_severity(f->check)));
        json_string(json, "gpu", str_or_null(f->gpu));
        json_string(json, "application", str_or_null(f->application));
        json_integer(json, "rows", (int64_t)f->rows);
        json_string(json, "found", f->text);
        json_string(json, "action", data_check_done(f->check));
        json_object_end(json);
    }
    json_array_end(json);
}

/* ---- values with their intervals ---- */

static const char *const UNITS[FREQ_FIGURES] = {"W", "s", "J"};

/* Half of the interval as ±, which is symmetric but for a low end of 0. */
static void add_value(struct table *table, const struct freq_value *value, const char *unit)
{
    char cell[FORMAT_MAX];
    double half = value->high - value->value;
    table_add(table, format_with_error(cell, value->value, half, unit));
}

static void value_to_json(const struct freq_value *value, const char *key, struct json *json)
{
    json_object(json, key);
    json_number(json, "value", value->value);
    json_number(json, "low", value->low);
    json_number(json, "high", value->high);
    json_object_end(json);
}

static void values_to_json(const struct freq_prediction *row, struct json *json)
{
    json_number(json, "freq_mhz", row->freq_mhz);
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        value_to_json(&row->figures[k], freq_figure_name((enum freq_figure)k), json);
}

/* ---- fit ---- */

void power_fit_text(const struct power_fit_report *report, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"GPU", false},          {"application", false}, {"clocks", true},         {"fmax", true},
        {"power at fmax", true}, {"time at fmax", true}, {"energy at fmax", true}, {"", false},
    };
    struct table table = TABLE(COLUMNS);
    const struct freq_data *data = report->data;
    text_addf(out, "Model %s (%s)\n", report->model->kind->name, report->model->kind->summary);
    text_addf(out, "Fitted to %zu of %zu rows, %zu curves; ± is %.0f %%\n\n",
              freq_data_usable(data), data->points.count, report->count, 100 * FREQ_LEVEL);
    for (size_t i = 0; i < report->count; i++) {
        const struct power_fit_row *row = &report->rows[i];
        table_add(&table, row->gpu);
        table_add(&table, row->application);
        table_addf(&table, "%zu", row->clocks);
        table_addf(&table, "%g MHz", row->at_fmax->freq_mhz);
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            add_value(&table, &row->at_fmax->figures[k], UNITS[k]);
        table_add(&table, row->void_because ? row->void_because : "");
    }
    table_print(&table, "", color, out);
    power_findings_text(&data->findings, color, out);
    if (report->file)
        text_addf(out, "\nwritten to %s\n", report->file);
}

void power_fit_json(const struct power_fit_report *report, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "model", report->model->kind->name);
    json_integer(&json, "rows", (int64_t)report->data->points.count);
    json_integer(&json, "rows_used", (int64_t)freq_data_usable(report->data));
    json_number(&json, "interval_level", FREQ_LEVEL);
    json_array(&json, "curves");
    for (size_t i = 0; i < report->count; i++) {
        const struct power_fit_row *row = &report->rows[i];
        json_object(&json, NULL);
        json_string(&json, "gpu", str_or_null(row->gpu));
        json_string(&json, "application", str_or_null(row->application));
        json_integer(&json, "clocks", (int64_t)row->clocks);
        json_object(&json, "at_fmax");
        values_to_json(row->at_fmax, &json);
        json_object_end(&json);
        json_string(&json, "void", row->void_because);
        json_object_end(&json);
    }
    json_array_end(&json);
    power_findings_json(&report->data->findings, "findings", &json);
    json_string(&json, "file", report->file);
    json_object_end(&json);
    text_add(out, "\n");
}

/* ---- predict ---- */

void power_predict_text(const struct power_predict_report *report, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"clock", true},  {"power", true}, {"time", true},
        {"energy", true}, {"EDP", true},   {"", false},
    };
    struct table table = TABLE(COLUMNS);
    char cell[FORMAT_MAX];
    text_addf(out, "Model %s; ± is %.0f %%\n\n", report->model->kind->name, 100 * FREQ_LEVEL);
    for (size_t i = 0; i < report->count; i++) {
        const struct freq_prediction *row = &report->rows[i];
        table_addf(&table, "%g MHz", row->freq_mhz);
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            add_value(&table, &row->figures[k], UNITS[k]);
        table_add(&table, format_si(cell,
                                    energy_delay_product(row->figures[FREQ_ENERGY_J].value,
                                                         row->figures[FREQ_TIME_S].value, 1),
                                    "J·s"));
        table_add(&table, row->is_extrapolated ? "extrapolated" : "");
    }
    table_print(&table, "", color, out);
}

void power_predict_json(const struct power_predict_report *report, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_string(&json, "model", report->model->kind->name);
    json_string(&json, "gpu", report->target->gpu);
    json_string(&json, "application", report->target->application);
    json_integer(&json, "probes", (int64_t)report->target->probe_count);
    json_number(&json, "interval_level", FREQ_LEVEL);
    json_array(&json, "predictions");
    for (size_t i = 0; i < report->count; i++) {
        const struct freq_prediction *row = &report->rows[i];
        json_object(&json, NULL);
        values_to_json(row, &json);
        json_number(&json, "edp_js",
                    energy_delay_product(row->figures[FREQ_ENERGY_J].value,
                                         row->figures[FREQ_TIME_S].value, 1));
        json_bool(&json, "extrapolated", row->is_extrapolated);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    text_add(out, "\n");
}

void power_predict_csv(const struct power_predict_report *report, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"freq_mhz", true},      {"power_w", true},      {"power_w_low", true},
        {"power_w_high", true},  {"time_s", true},       {"time_s_low", true},
        {"time_s_high", true},   {"energy_j", true},     {"energy_j_low", true},
        {"energy_j_high", true}, {"extrapolated", true},
    };
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i < report->count; i++) {
        const struct freq_prediction *row = &report->rows[i];
        table_add_number(&table, row->freq_mhz);
        for (size_t k = 0; k < FREQ_FIGURES; k++) {
            table_add_number(&table, row->figures[k].value);
            table_add_number(&table, row->figures[k].low);
            table_add_number(&table, row->figures[k].high);
        }
        table_add(&table, row->is_extrapolated ? "1" : "0");
    }
    table_write_csv(&table, out);
    table_release(&table);
}
