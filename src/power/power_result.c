/* Fills the results of `ipw power`, in the order of its JSON.  A validation has a CSV row for every figure, which its
 * JSON has as groups beside others: the rows are set aside. */
#include "power/power_result.h"

#include "core/finding.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/efficiency.h"
#include "power/data_checks.h"
#include "power/freq_model.h"
#include "power/freq_validate.h"

/* ---- parts of several results ---- */

/* The interval is of FREQ_LEVEL, so it is not that of the figure's item, which is of 95 %. */
void power_result_value(struct result *result, const char *key, const struct freq_value *value,
                        const char *unit)
{
    result_group(result, key);
    result_number(result, "value", value->value, unit);
    result_number(result, "low", value->low, unit);
    result_number(result, "high", value->high, unit);
    result_end(result);
}

static const char *const UNITS[FREQ_FIGURES] = {"W", "s", "J"};

void power_result_figures(struct result *result, const struct freq_value *figures)
{
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        power_result_value(result, freq_figure_name((enum freq_figure)k), &figures[k], UNITS[k]);
}

static void put_prediction(struct result *result, const struct freq_prediction *prediction)
{
    result_number(result, "freq_mhz", prediction->freq_mhz, "MHz");
    power_result_figures(result, prediction->figures);
}

/* ---- fit ---- */

void power_result_fit(struct result *result, const struct power_fitted *fit)
{
    const struct freq_model_kind *kind = fit->model->kind;
    result_begin(result, "power fit");
    result_text(result, "model", kind->name);
    result_count(result, "rows", fit->data->points.count);
    result_count(result, "rows_used", freq_data_usable(fit->data));
    result_number(result, "interval_level", FREQ_LEVEL, "%");
    result_list(result, "curves");
    for (size_t i = 0; i < fit->count; i++) {
        const struct power_fit_row *row = &fit->rows[i];
        result_group(result, NULL);
        result_text(result, "gpu", str_or_null(row->gpu));
        result_text(result, "application", str_or_null(row->application));
        result_count(result, "clocks", row->clocks);
        result_group(result, "at_fmax");
        put_prediction(result, row->at_fmax);
        result_end(result);
        result_text(result, "invalid", row->no_optimum_reason);
        result_end(result);
    }
    result_end(result);
    findings_to_result(&fit->data->findings, "findings", result);
    result_text(result, "file", fit->file);
    result_aside(result, "view");
    result_text(result, "summary", kind->summary);
    result_end(result);
    result_end(result);
}

/* ---- predict ---- */

static const struct result_column PREDICTION_COLUMNS[] = {
    {"freq_mhz", "freq_mhz", 0},         {"power_w", "power_w.value", 0},
    {"power_w_low", "power_w.low", 0},   {"power_w_high", "power_w.high", 0},
    {"time_s", "time_s.value", 0},       {"time_s_low", "time_s.low", 0},
    {"time_s_high", "time_s.high", 0},   {"energy_j", "energy_j.value", 0},
    {"energy_j_low", "energy_j.low", 0}, {"energy_j_high", "energy_j.high", 0},
    {"extrapolated", "extrapolated", 1}, {0},
};

void power_result_predict(struct result *result, const struct power_predictions *predictions)
{
    const struct freq_target *target = predictions->target;
    result_begin(result, "power predict");
    result_text(result, "model", predictions->model->kind->name);
    result_text(result, "gpu", target->gpu);
    result_text(result, "application", target->application);
    result_count(result, "probes", target->probe_count);
    result_number(result, "interval_level", FREQ_LEVEL, "%");
    result_list(result, "predictions");
    for (size_t i = 0; i < predictions->count; i++) {
        const struct freq_prediction *row = &predictions->rows[i];
        double edp = energy_delay_product(row->figures[FREQ_ENERGY_J].value,
                                          row->figures[FREQ_TIME_S].value, 1);
        result_group(result, NULL);
        put_prediction(result, row);
        result_number(result, "edp_js", edp, "J·s");
        result_flag(result, "extrapolated", row->is_extrapolated);
        result_end(result);
    }
    result_end(result);
    result_end(result);
    result_table(result, "predictions", PREDICTION_COLUMNS);
}

/* ---- validate ---- */

static const struct result_column SCORE_COLUMNS[] = {
    {"model", "model", 0},
    {"left_out", "left_out", 0},
    {"leaks", "leaks", 1},
    {"probes", "probes", 0},
    {"figure", "figure", 0},
    {"rows", "rows", 0},
    {"mape", "mape", 0},
    {"mae", "mae", 0},
    {"rmse", "rmse", 0},
    {"r2", "r2", 0},
    {"within_5", "within_5", 0},
    {"within_10", "within_10", 0},
    {"within_15", "within_15", 0},
    {"total_error", "total_error", 0},
    {"coverage", "coverage", 0},
    {"edp_regret_mean", "edp_regret.mean", 0},
    {"edp_regret_max", "edp_regret.max", 0},
    {0},
};

static void put_score(struct result *result, const struct freq_score *score, const char *unit)
{
    static const struct result_member SHARES[] = {
        {"r2", offsetof(struct freq_score, r2), ""},
        {"mape", offsetof(struct freq_score, mape), "%"},
        {"within_5", offsetof(struct freq_score, within[0]), "%"},
        {"within_10", offsetof(struct freq_score, within[1]), "%"},
        {"within_15", offsetof(struct freq_score, within[2]), "%"},
        {"total_error", offsetof(struct freq_score, total), "%"},
        {"coverage", offsetof(struct freq_score, coverage), "%"},
        {0},
    };
    result_count(result, "rows", score->rows);
    result_number(result, "mae", score->mae, unit);
    result_number(result, "rmse", score->rmse, unit);
    result_members(result, SHARES, score);
}

static void put_protocol(struct result *result, const struct freq_validation *validation)
{
    result_text(result, "model", validation->kind->name);
    result_text(result, "left_out", freq_protocol_name(validation->protocol));
    result_flag(result, "leaks", freq_protocol_leaks(validation->protocol));
    result_count(result, "folds", validation->folds);
    result_count(result, "probes", validation->probes);
}

static void put_regret(struct result *result, const struct freq_validation *validation)
{
    result_group(result, "edp_regret");
    result_number(result, "mean", validation->regret_mean, "%");
    result_number(result, "max", validation->regret_max, "%");
    result_end(result);
}

static void put_curve_score(struct result *result, const struct freq_curve_score *score)
{
    result_group(result, NULL);
    result_text(result, "gpu", str_or_null(score->curve->gpu));
    result_text(result, "application", str_or_null(score->curve->application));
    result_group(result, "mape");
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        result_number(result, freq_figure_name((enum freq_figure)k), score->mape[k], "%");
    result_end(result);
    result_number(result, "picked_mhz", score->picked_mhz, "MHz");
    result_number(result, "edp_regret", score->regret, "%");
    result_end(result);
}

static void put_validation(struct result *result, const struct freq_validation *validation)
{
    result_group(result, NULL);
    put_protocol(result, validation);
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        result_group(result, freq_figure_name((enum freq_figure)k));
        put_score(result, &validation->figures[k], UNITS[k]);
        result_end(result);
    }
    put_regret(result, validation);
    result_list(result, "curves");
    for (size_t i = 0; i < validation->curve_count; i++)
        put_curve_score(result, &validation->curves[i]);
    result_end(result);
    result_end(result);
}

/* A row of the CSV. */
static void put_score_row(struct result *result, const struct freq_validation *validation,
                          enum freq_figure figure)
{
    result_group(result, NULL);
    put_protocol(result, validation);
    result_text(result, "figure", freq_figure_name(figure));
    put_score(result, &validation->figures[figure], UNITS[figure]);
    put_regret(result, validation);
    result_end(result);
}

void power_result_validate(struct result *result, const struct power_validations *validations)
{
    result_begin(result, "power validate");
    result_number(result, "interval_level", FREQ_LEVEL, "%");
    result_list(result, "validations");
    for (size_t i = 0; i < validations->count; i++)
        put_validation(result, &validations->items[i]);
    result_end(result);
    findings_to_result(&validations->data->findings, "findings", result);
    result_number(result, "max_mape", validations->max, "%");
    if (is_known(validations->max))
        result_flag(result, "pass", validations->pass);
    else
        result_null(result, "pass");
    result_aside(result, "csv");
    result_list(result, "scores");
    for (size_t i = 0; i < validations->count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            put_score_row(result, &validations->items[i], (enum freq_figure)k);
    result_end(result);
    result_end(result);
    result_end(result);
    result_table(result, "csv.scores", SCORE_COLUMNS);
}
