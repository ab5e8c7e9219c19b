/* Views of the results of `ipw power`: a table of figures with their ±, below a line about the model. */
#include "report/text/power_report.h"

#include "core/result.h"
#include "core/units.h"
#include "core/text.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "report/text/page.h"

/* The figures of a prediction by their keys. */
static const struct figure {
    const char *key, *title, *unit;
} FIGURES[] = {{"power_w", "power", "W"}, {"time_s", "time", "s"}, {"energy_j", "energy", "J"}};

enum { FIGURE_COUNT = COUNT_OF(FIGURES) };

/* ---- text and Markdown ---- */

void power_view_title(struct print_page *page)
{
    if (page->is_markdown)
        text_addf(page->out, "# %s\n", page->result->name);
}

/* Blocks of Markdown are separated by empty lines, items of a list are not. */
static void start_block(struct print_page *page, bool is_item)
{
    if (page->is_markdown && !(is_item && page->is_in_list))
        text_add(page->out, "\n");
    page->is_in_list = is_item;
}

static void add_words(struct print_page *page)
{
    for (size_t i = 0; page->is_markdown && i < page->words.length; i++)
        if (page->words.bytes[i] == '\n')
            page->words.bytes[i] = ' ';
    if (page->is_markdown)
        markdown_add(page->out, text_get(&page->words));
    else
        text_add(page->out, text_get(&page->words));
    text_add(page->out, "\n");
    text_clear(&page->words);
}

void power_view_line(struct print_page *page)
{
    start_block(page, false);
    add_words(page);
}

void power_view_item(struct print_page *page)
{
    start_block(page, true);
    text_add(page->out, page->is_markdown ? "- " : "  ");
    add_words(page);
}

void power_view_gap(struct print_page *page)
{
    if (!page->is_markdown)
        text_add(page->out, "\n");
}

void power_view_heading(struct print_page *page, const char *title)
{
    start_block(page, false);
    text_addf(page->out, page->is_markdown ? "## %s\n" : "\n%s:\n", title);
}

void power_view_table(struct print_page *page, struct table *table)
{
    start_block(page, false);
    page_table(page, table, "");
}

/* ---- findings ---- */

void power_view_findings(struct print_page *page)
{
    const struct result_item *findings = result_find(page->result, "findings");
    if (result_first(findings))
        power_view_heading(page, "Data checks");
    RESULT_EACH (finding, findings) {
        finding_words(finding, true, page->color, &page->words);
        power_view_item(page);
    }
}

/* ---- values with their intervals ---- */

/* Half of the interval as ±; it is symmetric except for a lower end of 0. */
static void add_value(struct table *table, const struct result_item *row,
                      const struct figure *figure)
{
    const struct result_item *group = result_get(row, figure->key);
    double value = result_number_at(group, "value");
    double high = result_number_at(group, "high");
    char cell[FORMAT_MAX];
    table_add(table, format_with_error(cell, value, high - value, figure->unit));
}

static double level_percent(const struct result *result)
{
    return 100 * result_number_at(result->items, "interval_level");
}

/* ---- fit ---- */

static bool has_interval(const struct result *result)
{
    RESULT_EACH (curve, result_find(result, "curves")) {
        const struct result_item *at_fmax = result_get(curve, "at_fmax");
        for (size_t k = 0; k < FIGURE_COUNT; k++) {
            const struct result_item *figure = result_get(at_fmax, FIGURES[k].key);
            if (is_known(result_number_at(figure, "high")))
                return true;
        }
    }
    return false;
}

static void show_curves(struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"GPU", false},          {"application", false}, {"clocks", true},         {"fmax", true},
        {"power at fmax", true}, {"time at fmax", true}, {"energy at fmax", true}, {"", false},
    };
    const struct result *result = page->result;
    struct table table = TABLE(COLUMNS);
    RESULT_EACH (curve, result_find(result, "curves")) {
        const struct result_item *at_fmax = result_get(curve, "at_fmax");
        table_add(&table, result_text_at(curve, "gpu"));
        table_add(&table, result_text_at(curve, "application"));
        table_addf(&table, "%.0f", result_number_at(curve, "clocks"));
        table_addf(&table, "%g MHz", result_number_at(at_fmax, "freq_mhz"));
        for (size_t k = 0; k < FIGURE_COUNT; k++)
            add_value(&table, at_fmax, &FIGURES[k]);
        table_add(&table, result_text_at(curve, "invalid"));
    }
    power_view_table(page, &table);
}

static void show_fit(struct print_page *page)
{
    const struct result *result = page->result;
    size_t curves = result_length(result_find(result, "curves"));
    const char *file = result_text_at(result->items, "file");
    char interval[80] = "no interval: too few clocks or applications to estimate one";
    if (has_interval(result))
        chars_format(interval, "± is %.0f %%", level_percent(result));
    power_view_title(page);
    text_addf(&page->words, "Model %s (%s)", result_text_at(result->items, "model"),
              result_text_at(result->items, "view.summary"));
    power_view_line(page);
    text_addf(&page->words, "Fitted to %.0f of %.0f rows, %zu curve%s; %s",
              result_number_at(result->items, "rows_used"), result_number_at(result->items, "rows"),
              curves, str_plural(curves), interval);
    power_view_line(page);
    power_view_gap(page);
    show_curves(page);
    power_view_findings(page);
    if (file[0]) {
        power_view_gap(page);
        text_addf(&page->words, "written to %s", file);
        power_view_line(page);
    }
}

/* ---- predict ---- */

static void show_predictions(struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"clock", true},  {"power", true}, {"time", true},
        {"energy", true}, {"EDP", true},   {"", false},
    };
    const struct result *result = page->result;
    struct table table = TABLE(COLUMNS);
    char cell[FORMAT_MAX];
    power_view_title(page);
    text_addf(&page->words, "Model %s; ± is %.0f %%", result_text_at(result->items, "model"),
              level_percent(result));
    power_view_line(page);
    power_view_gap(page);
    RESULT_EACH (row, result_find(result, "predictions")) {
        table_addf(&table, "%g MHz", result_number_at(row, "freq_mhz"));
        for (size_t k = 0; k < FIGURE_COUNT; k++)
            add_value(&table, row, &FIGURES[k]);
        table_add(&table, format_si(cell, result_number_at(row, "edp_js"), "J·s"));
        table_add(&table, result_flag_at(row, "extrapolated") ? "extrapolated" : "");
    }
    power_view_table(page, &table);
}

/* ---- validate ---- */

static void add_percent(struct table *table, double share)
{
    table_add_known(table, share, "%.1f", 100 * share);
}

static void add_score(struct table *table, const struct result_item *score,
                      const struct figure *figure)
{
    static const char *const WITHIN[] = {"within_5", "within_10", "within_15"};
    double mae = result_number_at(score, "mae");
    double rmse = result_number_at(score, "rmse");
    double r2 = result_number_at(score, "r2");
    double total = result_number_at(score, "total_error");
    table_add(table, figure->title);
    table_addf(table, "%.0f", result_number_at(score, "rows"));
    add_percent(table, result_number_at(score, "mape"));
    table_add_known(table, mae, "%.3g %s", mae, figure->unit);
    table_add_known(table, rmse, "%.3g %s", rmse, figure->unit);
    table_add_known(table, r2, "%.3f", r2);
    for (size_t i = 0; i < COUNT_OF(WITHIN); i++)
        add_percent(table, result_number_at(score, WITHIN[i]));
    table_add_known(table, total, "%+.1f", 100 * total);
    add_percent(table, result_number_at(score, "coverage"));
}

/* A row for each figure that was predicted; what is common to them is in that of the first. */
static void add_validation(struct table *table, const struct result_item *validation)
{
    bool is_first = true;
    for (size_t k = 0; k < FIGURE_COUNT; k++) {
        const struct result_item *score = result_get(validation, FIGURES[k].key);
        if (result_number_at(score, "rows") == 0)
            continue;
        table_add(table, is_first ? result_text_at(validation, "model") : "");
        table_add(table, is_first ? result_text_at(validation, "left_out") : "");
        add_score(table, score, &FIGURES[k]);
        add_percent(table, is_first ? result_number_at(validation, "edp_regret.mean") : UNKNOWN);
        add_percent(table, is_first ? result_number_at(validation, "edp_regret.max") : UNKNOWN);
        table_add(table, is_first && result_flag_at(validation, "leaks") ? "leaks" : "");
        is_first = false;
    }
}

static void show_verdict(struct print_page *page)
{
    double max = page_number(page, "max_mape");
    bool pass = page_flag(page, "pass");
    if (!is_known(max))
        return;
    power_view_gap(page);
    text_addf(&page->words, "%s: power and time MAPE %s %.3g %%", pass ? "pass" : "FAIL",
              pass ? "within" : "beyond", 100 * max);
    power_view_line(page);
}

static void show_validations(struct print_page *page)
{
    static const struct table_column COLUMNS[] = {
        {"model", false},    {"left out", false}, {"", false},     {"rows", true},
        {"MAPE %", true},    {"MAE", true},       {"RMSE", true},  {"R²", true},
        {"≤5 %", true},      {"≤10 %", true},     {"≤15 %", true}, {"total %", true},
        {"covered %", true}, {"regret %", true},  {"max %", true}, {"", false},
    };
    const struct result *result = page->result;
    struct table table = TABLE(COLUMNS);
    bool any_leak = false;
    power_view_title(page);
    RESULT_EACH (validation, result_find(result, "validations")) {
        add_validation(&table, validation);
        any_leak |= result_flag_at(validation, "leaks");
    }
    power_view_table(page, &table);
    power_view_gap(page);
    text_addf(&page->words,
              "MAPE is the mean over applications; covered: by %.0f %% intervals; regret: "
              "EDP at the chosen clock over\nthe lowest, by each application's own fit (mean "
              "and maximum).",
              level_percent(result));
    power_view_line(page);
    if (any_leak) {
        text_add(&page->words, "data leakage: other clocks of the same application remain in the "
                               "fit; for new applications see \"application\".");
        power_view_line(page);
    }
    power_view_findings(page);
    show_verdict(page);
}

/* ---- the views ---- */

const struct print_views POWER_FIT_VIEWS = {.page = show_fit, .has_blank_line = true};
const struct print_views POWER_PREDICT_VIEWS = {.page = show_predictions, .has_blank_line = true};
const struct print_views POWER_VALIDATE_VIEWS = {.page = show_validations, .has_blank_line = true};
