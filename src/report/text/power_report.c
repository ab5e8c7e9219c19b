/* Reports of `ipw power`, as text, JSON or CSV. */
#include "report/text/power_report.h"

#include <inttypes.h>
#include <math.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/efficiency.h"
#include "power/data_checks.h"
#include "power/freq_model.h"
#include "power/freq_validate.h"
#include "report/text/format.h"

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

/* Half of the interval as ±; it is symmetric except for a lower end of 0. */
static void add_value(struct table *table, const struct freq_value *value, const char *unit)
{
    char cell[FORMAT_MAX];
    double half = value->high - value->value;
    table_add(table, format_with_error(cell, value->value, half, unit));
}

void power_value_json(const struct freq_value *value, const char *key, struct json *json)
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
        power_value_json(&row->figures[k], freq_figure_name((enum freq_figure)k), json);
}

/* ---- fit ---- */

static bool has_interval(const struct power_fit_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            if (is_known(report->rows[i].at_fmax->figures[k].high))
                return true;
    return false;
}

void power_fit_text(const struct power_fit_report *report, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"GPU", false},          {"application", false}, {"clocks", true},         {"fmax", true},
        {"power at fmax", true}, {"time at fmax", true}, {"energy at fmax", true}, {"", false},
    };
    struct table table = TABLE(COLUMNS);
    const struct freq_data *data = report->data;
    text_addf(out, "Model %s (%s)\n", report->model->kind->name, report->model->kind->summary);
    text_addf(out, "Fitted to %zu of %zu rows, %zu curve%s; ", freq_data_usable(data),
              data->points.count, report->count, report->count == 1 ? "" : "s");
    if (has_interval(report))
        text_addf(out, "± is %.0f %%\n\n", 100 * FREQ_LEVEL);
    else
        text_add(out, "no interval: too few clocks or applications to estimate one\n\n");
    for (size_t i = 0; i < report->count; i++) {
        const struct power_fit_row *row = &report->rows[i];
        table_add(&table, row->gpu);
        table_add(&table, row->application);
        table_addf(&table, "%zu", row->clocks);
        table_addf(&table, "%g MHz", row->at_fmax->freq_mhz);
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            add_value(&table, &row->at_fmax->figures[k], UNITS[k]);
        table_add(&table, row->no_optimum_reason ? row->no_optimum_reason : "");
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
        json_string(&json, "void", row->no_optimum_reason);
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

/* ---- validate ---- */

static void add_percent(struct table *table, double share)
{
    table_add_known(table, share, "%.1f", 100 * share);
}

static void scores_to_table(const struct freq_validation *v, struct table *table)
{
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        const struct freq_score *s = &v->figures[k];
        if (s->rows == 0)
            continue;
        table_add(table, k ? "" : v->kind->name);
        table_add(table, k ? "" : freq_protocol_name(v->protocol));
        table_addf(table, "%s", k == FREQ_POWER_W ? "power" : k == FREQ_TIME_S ? "time" : "energy");
        table_addf(table, "%zu", s->rows);
        add_percent(table, s->mape);
        table_add_known(table, s->mae, "%.3g %s", s->mae, UNITS[k]);
        table_add_known(table, s->rmse, "%.3g %s", s->rmse, UNITS[k]);
        table_add_known(table, s->r2, "%.3f", s->r2);
        for (size_t i = 0; i < 3; i++)
            add_percent(table, s->within[i]);
        table_add_known(table, s->total, "%+.1f", 100 * s->total);
        add_percent(table, s->coverage);
        add_percent(table, k ? UNKNOWN : v->regret_mean);
        add_percent(table, k ? UNKNOWN : v->regret_max);
        table_addf(table, "%s", !k && freq_protocol_leaks(v->protocol) ? "leaks" : "");
    }
}

void power_validate_text(const struct power_validate_report *report, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"model", false},    {"left out", false}, {"", false},     {"rows", true},
        {"MAPE %", true},    {"MAE", true},       {"RMSE", true},  {"R²", true},
        {"≤5 %", true},      {"≤10 %", true},     {"≤15 %", true}, {"total %", true},
        {"covered %", true}, {"regret %", true},  {"max %", true}, {"", false},
    };
    struct table table = TABLE(COLUMNS);
    bool any_leak = false;
    for (size_t i = 0; i < report->count; i++) {
        scores_to_table(&report->validations[i], &table);
        any_leak |= freq_protocol_leaks(report->validations[i].protocol);
    }
    table_print(&table, "", color, out);
    text_addf(
        out,
        "\nMAPE is the mean over applications; covered: by %.0f %% intervals; regret: EDP at the "
        "chosen clock over\nthe lowest, by each application's own fit (mean and maximum).\n",
        100 * FREQ_LEVEL);
    if (any_leak)
        text_add(out, "data leakage: other clocks of the same application remain in the fit; for "
                      "new applications see \"application\".\n");
    power_findings_text(&report->data->findings, color, out);
    if (is_known(report->max))
        text_addf(out, "\n%s: power and time MAPE %s %.3g %%\n", report->pass ? "pass" : "FAIL",
                  report->pass ? "within" : "beyond", 100 * report->max);
}

static void score_to_json(const struct freq_score *s, const char *key, struct json *json)
{
    json_object(json, key);
    json_integer(json, "rows", (int64_t)s->rows);
    json_number(json, "mae", s->mae);
    json_number(json, "rmse", s->rmse);
    json_number(json, "r2", s->r2);
    json_number(json, "mape", s->mape);
    json_number(json, "within_5", s->within[0]);
    json_number(json, "within_10", s->within[1]);
    json_number(json, "within_15", s->within[2]);
    json_number(json, "total_error", s->total);
    json_number(json, "coverage", s->coverage);
    json_object_end(json);
}

static void curve_score_to_json(const struct freq_curve_score *score, struct json *json)
{
    json_object(json, NULL);
    json_string(json, "gpu", str_or_null(score->curve->gpu));
    json_string(json, "application", str_or_null(score->curve->application));
    json_object(json, "mape");
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        json_number(json, freq_figure_name((enum freq_figure)k), score->mape[k]);
    json_object_end(json);
    json_number(json, "picked_mhz", score->picked_mhz);
    json_number(json, "edp_regret", score->regret);
    json_object_end(json);
}

static void validation_to_json(const struct freq_validation *v, struct json *json)
{
    json_object(json, NULL);
    json_string(json, "model", v->kind->name);
    json_string(json, "left_out", freq_protocol_name(v->protocol));
    json_bool(json, "leaks", freq_protocol_leaks(v->protocol));
    json_integer(json, "folds", (int64_t)v->folds);
    json_integer(json, "probes", (int64_t)v->probes);
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        score_to_json(&v->figures[k], freq_figure_name((enum freq_figure)k), json);
    json_object(json, "edp_regret");
    json_number(json, "mean", v->regret_mean);
    json_number(json, "most", v->regret_max);
    json_object_end(json);
    json_array(json, "curves");
    for (size_t i = 0; i < v->curve_count; i++)
        curve_score_to_json(&v->curves[i], json);
    json_array_end(json);
    json_object_end(json);
}

void power_validate_json(const struct power_validate_report *report, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_number(&json, "interval_level", FREQ_LEVEL);
    json_array(&json, "validations");
    for (size_t i = 0; i < report->count; i++)
        validation_to_json(&report->validations[i], &json);
    json_array_end(&json);
    power_findings_json(&report->data->findings, "findings", &json);
    json_number(&json, "max_mape", report->max);
    if (is_known(report->max))
        json_bool(&json, "pass", report->pass);
    else
        json_null(&json, "pass");
    json_object_end(&json);
    text_add(out, "\n");
}

void power_validate_csv(const struct power_validate_report *report, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"model", false},
        {"left_out", false},
        {"leaks", true},
        {"probes", true},
        {"figure", false},
        {"rows", true},
        {"mape", true},
        {"mae", true},
        {"rmse", true},
        {"r2", true},
        {"within_5", true},
        {"within_10", true},
        {"within_15", true},
        {"total_error", true},
        {"coverage", true},
        {"edp_regret_mean", true},
        {"edp_regret_most", true},
    };
    struct table table = TABLE(COLUMNS);
    for (size_t i = 0; i < report->count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++) {
            const struct freq_validation *v = &report->validations[i];
            const struct freq_score *s = &v->figures[k];
            const double numbers[] = {s->mape,      s->mae,         s->rmse,      s->r2,
                                      s->within[0], s->within[1],   s->within[2], s->total,
                                      s->coverage,  v->regret_mean, v->regret_max};
            table_add(&table, v->kind->name);
            table_add(&table, freq_protocol_name(v->protocol));
            table_add(&table, freq_protocol_leaks(v->protocol) ? "1" : "0");
            table_addf(&table, "%zu", v->probes);
            table_add(&table, freq_figure_name((enum freq_figure)k));
            table_addf(&table, "%zu", s->rows);
            for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
                table_add_number(&table, numbers[j]);
        }
    table_write_csv(&table, out);
    table_release(&table);
}
