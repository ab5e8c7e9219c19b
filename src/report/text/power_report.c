/* Views of the results of `ipw power`: a table of figures with their ±, below a line about the model. */
#include "report/text/power_report.h"

#include <string.h>

#include "core/result.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"

/* The figures of a prediction by their keys. */
static const struct figure {
    const char *key, *title, *unit;
} FIGURES[] = {{"power_w", "power", "W"}, {"time_s", "time", "s"}, {"energy_j", "energy", "J"}};

enum { FIGURE_COUNT = sizeof FIGURES / sizeof *FIGURES };

/* ---- text and Markdown ---- */

void power_view_print(void (*show)(struct power_view *view), const struct result *result,
                      bool is_markdown, bool color, struct text *out)
{
    struct power_view view = {
        .result = result, .out = out, .is_markdown = is_markdown, .color = color && !is_markdown};
    if (is_markdown)
        text_addf(out, "# %s\n", result->name);
    show(&view);
    text_release(&view.words);
}

/* Blocks of Markdown are separated by empty lines, items of a list are not. */
static void start_block(struct power_view *view, bool is_item)
{
    if (view->is_markdown && !(is_item && view->is_in_list))
        text_add(view->out, "\n");
    view->is_in_list = is_item;
}

static void add_words(struct power_view *view)
{
    for (size_t i = 0; view->is_markdown && i < view->words.length; i++)
        if (view->words.bytes[i] == '\n')
            view->words.bytes[i] = ' ';
    if (view->is_markdown)
        markdown_add(view->out, text_get(&view->words));
    else
        text_add(view->out, text_get(&view->words));
    text_add(view->out, "\n");
    text_clear(&view->words);
}

void power_view_line(struct power_view *view)
{
    start_block(view, false);
    add_words(view);
}

void power_view_item(struct power_view *view)
{
    start_block(view, true);
    text_add(view->out, view->is_markdown ? "- " : "  ");
    add_words(view);
}

void power_view_gap(struct power_view *view)
{
    if (!view->is_markdown)
        text_add(view->out, "\n");
}

void power_view_heading(struct power_view *view, const char *title)
{
    start_block(view, false);
    text_addf(view->out, view->is_markdown ? "## %s\n" : "\n%s:\n", title);
}

void power_view_table(struct power_view *view, struct table *table)
{
    start_block(view, false);
    if (!view->is_markdown) {
        table_print(table, "", view->color, view->out);
        return;
    }
    table_write_markdown(table, view->out);
    table_release(table);
}

/* ---- findings ---- */

void power_view_findings(struct power_view *view)
{
    const struct result_item *findings = result_find(view->result, "findings");
    if (result_first(view->result, findings))
        power_view_heading(view, "Data checks");
    RESULT_EACH (finding, view->result, findings) {
        finding_words(view->result, finding, true, view->color, &view->words);
        power_view_item(view);
    }
}

/* ---- values with their intervals ---- */

/* Half of the interval as ±; it is symmetric except for a lower end of 0. */
static void add_value(struct table *table, const struct result *result,
                      const struct result_item *row, const struct figure *figure)
{
    const struct result_item *group = result_get(result, row, figure->key);
    double value = result_number_at(result, group, "value");
    double high = result_number_at(result, group, "high");
    char cell[FORMAT_MAX];
    table_add(table, format_with_error(cell, value, high - value, figure->unit));
}

static double level_percent(const struct result *result)
{
    return 100 * result_number_at(result, NULL, "interval_level");
}

/* ---- fit ---- */

static bool has_interval(const struct result *result)
{
    const struct result_item *curves = result_find(result, "curves");
    RESULT_EACH (curve, result, curves) {
        const struct result_item *at_fmax = result_get(result, curve, "at_fmax");
        for (size_t k = 0; k < FIGURE_COUNT; k++) {
            const struct result_item *figure = result_get(result, at_fmax, FIGURES[k].key);
            if (is_known(result_number_at(result, figure, "high")))
                return true;
        }
    }
    return false;
}

static void show_curves(struct power_view *view)
{
    static const struct table_column COLUMNS[] = {
        {"GPU", false},          {"application", false}, {"clocks", true},         {"fmax", true},
        {"power at fmax", true}, {"time at fmax", true}, {"energy at fmax", true}, {"", false},
    };
    const struct result *result = view->result;
    const struct result_item *curves = result_find(result, "curves");
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (curve, result, curves) {
        const struct result_item *at_fmax = result_get(result, curve, "at_fmax");
        table_add(&table, result_text_at(result, curve, "gpu"));
        table_add(&table, result_text_at(result, curve, "application"));
        table_addf(&table, "%.0f", result_number_at(result, curve, "clocks"));
        table_addf(&table, "%g MHz", result_number_at(result, at_fmax, "freq_mhz"));
        for (size_t k = 0; k < FIGURE_COUNT; k++)
            add_value(&table, result, at_fmax, &FIGURES[k]);
        table_add(&table, result_text_at(result, curve, "invalid"));
    }
    power_view_table(view, &table);
}

static void show_fit(struct power_view *view)
{
    const struct result *result = view->result;
    size_t curves = result_length(result, result_find(result, "curves"));
    const char *file = result_text_at(result, NULL, "file");
    char interval[80] = "no interval: too few clocks or applications to estimate one";
    if (has_interval(result))
        str_format(interval, sizeof interval, "± is %.0f %%", level_percent(result));
    text_addf(&view->words, "Model %s (%s)", result_text_at(result, NULL, "model"),
              result_text_at(result, NULL, "view.summary"));
    power_view_line(view);
    text_addf(&view->words, "Fitted to %.0f of %.0f rows, %zu curve%s; %s",
              result_number_at(result, NULL, "rows_used"), result_number_at(result, NULL, "rows"),
              curves, curves == 1 ? "" : "s", interval);
    power_view_line(view);
    power_view_gap(view);
    show_curves(view);
    power_view_findings(view);
    if (file[0]) {
        power_view_gap(view);
        text_addf(&view->words, "written to %s", file);
        power_view_line(view);
    }
}

/* ---- predict ---- */

static void show_predictions(struct power_view *view)
{
    static const struct table_column COLUMNS[] = {
        {"clock", true},  {"power", true}, {"time", true},
        {"energy", true}, {"EDP", true},   {"", false},
    };
    const struct result *result = view->result;
    const struct result_item *predictions = result_find(result, "predictions");
    struct table table = TABLE(COLUMNS);
    char cell[FORMAT_MAX];
    text_addf(&view->words, "Model %s; ± is %.0f %%", result_text_at(result, NULL, "model"),
              level_percent(result));
    power_view_line(view);
    power_view_gap(view);
    RESULT_EACH (row, result, predictions) {
        table_addf(&table, "%g MHz", result_number_at(result, row, "freq_mhz"));
        for (size_t k = 0; k < FIGURE_COUNT; k++)
            add_value(&table, result, row, &FIGURES[k]);
        table_add(&table, format_si(cell, result_number_at(result, row, "edp_js"), "J·s"));
        table_add(&table, result_flag_at(result, row, "extrapolated") ? "extrapolated" : "");
    }
    power_view_table(view, &table);
}

/* ---- validate ---- */

static void add_percent(struct table *table, double share)
{
    table_add_known(table, share, "%.1f", 100 * share);
}

static void add_score(struct table *table, const struct result *result,
                      const struct result_item *score, const struct figure *figure)
{
    static const char *const WITHIN[] = {"within_5", "within_10", "within_15"};
    double mae = result_number_at(result, score, "mae");
    double rmse = result_number_at(result, score, "rmse");
    double r2 = result_number_at(result, score, "r2");
    double total = result_number_at(result, score, "total_error");
    table_add(table, figure->title);
    table_addf(table, "%.0f", result_number_at(result, score, "rows"));
    add_percent(table, result_number_at(result, score, "mape"));
    table_add_known(table, mae, "%.3g %s", mae, figure->unit);
    table_add_known(table, rmse, "%.3g %s", rmse, figure->unit);
    table_add_known(table, r2, "%.3f", r2);
    for (size_t i = 0; i < sizeof WITHIN / sizeof *WITHIN; i++)
        add_percent(table, result_number_at(result, score, WITHIN[i]));
    table_add_known(table, total, "%+.1f", 100 * total);
    add_percent(table, result_number_at(result, score, "coverage"));
}

/* A row for each figure that was predicted; what is common to them is in that of the first. */
static void add_validation(struct table *table, const struct result *result,
                           const struct result_item *validation)
{
    bool is_first = true;
    for (size_t k = 0; k < FIGURE_COUNT; k++) {
        const struct result_item *score = result_get(result, validation, FIGURES[k].key);
        if (result_number_at(result, score, "rows") == 0)
            continue;
        table_add(table, is_first ? result_text_at(result, validation, "model") : "");
        table_add(table, is_first ? result_text_at(result, validation, "left_out") : "");
        add_score(table, result, score, &FIGURES[k]);
        add_percent(table,
                    is_first ? result_number_at(result, validation, "edp_regret.mean") : UNKNOWN);
        add_percent(table,
                    is_first ? result_number_at(result, validation, "edp_regret.max") : UNKNOWN);
        table_add(table, is_first && result_flag_at(result, validation, "leaks") ? "leaks" : "");
        is_first = false;
    }
}

static void show_verdict(struct power_view *view)
{
    double max = result_number_at(view->result, NULL, "max_mape");
    bool pass = result_flag_at(view->result, NULL, "pass");
    if (!is_known(max))
        return;
    power_view_gap(view);
    text_addf(&view->words, "%s: power and time MAPE %s %.3g %%", pass ? "pass" : "FAIL",
              pass ? "within" : "beyond", 100 * max);
    power_view_line(view);
}

static void show_validations(struct power_view *view)
{
    static const struct table_column COLUMNS[] = {
        {"model", false},    {"left out", false}, {"", false},     {"rows", true},
        {"MAPE %", true},    {"MAE", true},       {"RMSE", true},  {"R²", true},
        {"≤5 %", true},      {"≤10 %", true},     {"≤15 %", true}, {"total %", true},
        {"covered %", true}, {"regret %", true},  {"max %", true}, {"", false},
    };
    const struct result *result = view->result;
    const struct result_item *validations = result_find(result, "validations");
    struct table table = TABLE(COLUMNS);
    bool any_leak = false;
    RESULT_EACH (validation, result, validations) {
        add_validation(&table, result, validation);
        any_leak |= result_flag_at(result, validation, "leaks");
    }
    power_view_table(view, &table);
    power_view_gap(view);
    text_addf(&view->words,
              "MAPE is the mean over applications; covered: by %.0f %% intervals; regret: "
              "EDP at the chosen clock over\nthe lowest, by each application's own fit (mean "
              "and maximum).",
              level_percent(result));
    power_view_line(view);
    if (any_leak) {
        text_add(&view->words, "data leakage: other clocks of the same application remain in the "
                               "fit; for new applications see \"application\".");
        power_view_line(view);
    }
    power_view_findings(view);
    show_verdict(view);
}

/* ---- the views ---- */

static void fit_text(const struct result *result, bool color, struct text *out)
{
    power_view_print(show_fit, result, false, color, out);
}

static void fit_markdown(const struct result *result, bool color, struct text *out)
{
    power_view_print(show_fit, result, true, color, out);
}

const struct print_views POWER_FIT_VIEWS = {fit_text, fit_markdown, .has_blank_line = true};

static void predict_text(const struct result *result, bool color, struct text *out)
{
    power_view_print(show_predictions, result, false, color, out);
}

static void predict_markdown(const struct result *result, bool color, struct text *out)
{
    power_view_print(show_predictions, result, true, color, out);
}

const struct print_views POWER_PREDICT_VIEWS = {predict_text, predict_markdown,
                                                .has_blank_line = true};

static void validate_text(const struct result *result, bool color, struct text *out)
{
    power_view_print(show_validations, result, false, color, out);
}

static void validate_markdown(const struct result *result, bool color, struct text *out)
{
    power_view_print(show_validations, result, true, color, out);
}

const struct print_views POWER_VALIDATE_VIEWS = {validate_text, validate_markdown,
                                                 .has_blank_line = true};
