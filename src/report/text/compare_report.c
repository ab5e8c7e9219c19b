/* The views of `ipw compare`: a table of metrics with their verdicts, fairness warnings first, as text and as
 * Markdown. */
#include "report/text/compare_report.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "core/energy.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "report/print/print.h"
#include "report/text/format.h"

enum { CELL_MAX = 128, CELLS = 8 };

static const struct table_column COLUMNS[CELLS] = {
    {"metric", false},  {"baseline", true}, {"this run", true}, {"difference", true},
    {"relative", true}, {"95 % CI", true},  {"p (Holm)", true}, {"verdict", false},
};

/* ---- cells ---- */

static void value_text(char *to, const char *unit, double value, double error)
{
    if (str_equal(unit, "currency"))
        format_amount(to, value, error, "");
    else
        format_figure(to, value, error, unit);
}

static void figure_text(char *to, const struct result_item *figure)
{
    value_text(to, figure->unit, figure->number, figure->error);
}

/* Always with its sign; a share in percentage points. */
static void difference_text(char *to, const struct result_item *difference)
{
    char size[CELL_MAX];
    double value = difference->number;
    value_text(size, difference->unit, fabs(value), UNKNOWN);
    if (!is_known(value))
        str_copy(to, CELL_MAX, "-");
    else if (str_equal(difference->unit, "%"))
        str_format(to, CELL_MAX, "%+.1f points", 100 * value);
    else
        str_format(to, CELL_MAX, "%s%s", value < 0 ? "-" : "+", size);
}

static void percent_text(char *to, double share)
{
    if (!is_known(share))
        str_copy(to, CELL_MAX, "-");
    else
        str_format(to, CELL_MAX, fabs(share) < 10 ? "%+.1f %%" : "%+.3g %%", 100 * share);
}

static void interval_text(char *to, const struct result_item *figure)
{
    if (!is_known(figure->low) || !is_known(figure->high))
        str_copy(to, CELL_MAX, "-");
    else
        str_format(to, CELL_MAX, figure->high < 100 ? "%+.1f to %+.1f %%" : "%+.1f to %+.3g %%",
                   100 * figure->low, 100 * figure->high);
}

/* With the number of queries that have the metric, if not all of them do. */
static void metric_text(char *to, const struct result_item *comparison,
                        const struct result_item *metric)
{
    const char *name = metric->key;
    size_t queries = (size_t)result_number_at(metric, "baseline.queries") /
                     (size_t)result_number_at(comparison, "runs.baseline");
    size_t pairs = (size_t)result_number_at(comparison, "pairs");
    bool is_quality = result_get(metric, "paired_questions") != NULL;
    if (queries && queries < pairs && !is_quality)
        str_format(to, CELL_MAX, "%s (%zu of %zu)", name, queries, pairs);
    else
        str_copy(to, CELL_MAX, name);
}

static void fill_cells(const struct result_item *comparison, const struct result_item *metric,
                       char cells[CELLS][CELL_MAX])
{
    const struct result_item *relative = result_get(metric, "relative");
    metric_text(cells[0], comparison, metric);
    figure_text(cells[1], result_at(metric, "baseline.value"));
    figure_text(cells[2], result_at(metric, "run.value"));
    difference_text(cells[3], result_get(metric, "difference"));
    percent_text(cells[4], relative->number);
    interval_text(cells[5], relative);
    format_p(cells[6], result_number_at(metric, "p_holm"), result_flag_at(metric, "p_is_bound"));
    str_copy(cells[7], CELL_MAX, result_text_at(metric, "verdict"));
}

/* Metrics that neither run has are omitted. */
static bool is_shown(const struct result_item *metric)
{
    return is_known(result_number_at(metric, "baseline.value")) ||
           is_known(result_number_at(metric, "run.value"));
}

static void fill_table(const struct result_item *comparison, struct table *table)
{
    char cells[CELLS][CELL_MAX];
    table_init(table, COLUMNS, CELLS);
    RESULT_EACH (metric, result_get(comparison, "metrics")) {
        if (!is_shown(metric))
            continue;
        fill_cells(comparison, metric, cells);
        for (size_t c = 0; c < CELLS; c++)
            table_add(table, cells[c]);
    }
}

/* ---- lines ---- */

static size_t runs_of(const struct result_item *comparison, const char *side)
{
    return (size_t)result_number_at(result_get(comparison, "runs"), side);
}

static bool is_repeated(const struct result_item *comparison)
{
    const struct result_item *series = result_get(comparison, "series");
    if (series && result_number_at(series, "pairs") > 1)
        return true;
    return runs_of(comparison, "baseline") > 1 && runs_of(comparison, "run") > 1;
}

/* What p and the intervals are based on, each once. */
static void put_basis(const struct result *result, const char *indent, struct text *out)
{
    const struct result_item *comparisons = result_find(result, "comparisons");
    RESULT_EACH (comparison, comparisons) {
        const char *basis = result_text_at(comparison, "basis");
        bool is_new = basis[0];
        RESULT_EACH (earlier, comparisons) {
            if (earlier == comparison)
                break;
            is_new = is_new && !str_equal(result_text_at(earlier, "basis"), basis);
        }
        if (is_new)
            wrap_words(out, "", strlen(indent), SIZE_MAX, basis);
    }
}

/* In percent; printed once if it is the same for all, else with each comparison (put_common). */
static double common_to_all(const struct result *result)
{
    const struct result_item *comparisons = result_find(result, "comparisons");
    double common = result_number_at(result->items, "comparisons.0.common_pct");
    RESULT_EACH (comparison, comparisons)
        if (!(result_number_at(comparison, "common_pct") == common))
            return UNKNOWN;
    return common;
}

static void put_common(double percent, const char *indent, struct text *out)
{
    char common[FORMAT_MAX];
    if (percent > 0)
        text_addf(out, "%senergies %s\n", indent, format_common(common, percent / 100));
}

static struct tariff tariff_of(const struct result_item *side)
{
    const struct result_item *operating = result_get(side, "operating");
    return (struct tariff){.price_per_kwh = result_number_at(operating, "price_per_kwh"),
                           .gco2_per_kwh = result_number_at(operating, "gco2_per_kwh"),
                           .device_price_per_hour =
                               result_number_at(operating, "device_price_per_hour")};
}

/* That of the baseline, else of the first side that has one: others are in the warnings. */
static void put_tariff(const struct result *result, const char *indent, struct text *out)
{
    const struct result_item *side = result_find(result, "baseline");
    struct tariff tariff = tariff_of(side);
    RESULT_EACH (comparison, result_find(result, "comparisons"))
        if (!tariff_given(&tariff)) {
            side = comparison;
            tariff = tariff_of(side);
        }
    if (!tariff_given(&tariff))
        return;
    text_addf(out, "%soperating cost and emissions ", indent);
    format_tariff(&tariff, result_text_at(side, "operating.currency"), out);
    text_addf(out, "%s%s\n", format_scope(&tariff)[0] ? "; " : "", format_scope(&tariff));
}

static void put_explanation(const struct result *result, const char *indent, struct text *out)
{
    char first[64];
    chars_copy(first,
               result_text_at(result->items, "comparisons.0.metrics.energy_per_query.label"));
    first[0] = (char)tolower((unsigned char)first[0]);
    put_common(common_to_all(result), indent, out);
    put_tariff(result, indent, out);
    text_addf(out,
              "%sp: probability of such a difference by chance; %s is tested first, the "
              "other\n%s%.0f tests are Holm-corrected.\n"
              "%s\"better\", \"worse\": p < %g and the 95 %% CI excludes 0. \"no evidence\" is not "
              "\"equal\".\n",
              indent, first, indent, result_number_at(result->items, "view.tests"), indent,
              result_number_at(result->items, "alpha"));
    put_basis(result, indent, out);
}

static void pairing_text(char *to, const struct result_item *comparison)
{
    const char *units = result_text_at(comparison, "view.records");
    bool is_paired = result_flag_at(comparison, "paired");
    double pairs = result_number_at(comparison, "pairs");
    double same = result_number_at(comparison, "same_queries");
    size_t runs = runs_of(comparison, "baseline") + runs_of(comparison, "run");
    const struct result_item *series = result_get(comparison, "series");
    if (series)
        str_format(to, CELL_MAX, "%.0f pairs of runs that alternated",
                   result_number_at(series, "pairs"));
    else if (is_paired && pairs < same)
        str_format(to, CELL_MAX, "%.0f of %.0f common %s, paired: those that %s runs completed",
                   pairs, same, units, runs > 2 ? "all" : "both");
    else if (is_paired)
        str_format(to, CELL_MAX, "%.0f common %s, paired", same, units);
    else
        str_format(to, CELL_MAX, "different %s, unpaired", units);
}

/* "runs/x_r1 and 2 more", "not saved"; the caller frees it. */
static char *where_text(const struct result_item *side)
{
    size_t runs = result_length(result_get(side, "directories"));
    const char *directory = result_text_at(side, "directory");
    if (runs > 1)
        return xformat("%s and %zu more: %zu runs", directory, runs - 1, runs);
    return xstrdup(runs ? directory : "not saved");
}

/* ---- bounds ---- */

/* A bound on a difference that is not decided. */
static const char *repeats_note(const struct result_item *comparison)
{
    if (is_repeated(comparison))
        return "";
    if (runs_of(comparison, "baseline") != runs_of(comparison, "run"))
        return "; a side has one run: differences between runs are unknown";
    return "; one run a side: not decided";
}

/* Whether the metric has a verdict. */
static bool is_decided(const struct result_item *metric)
{
    const char *verdict = result_text_at(metric, "verdict");
    return str_equal(verdict, "better") || str_equal(verdict, "worse") ||
           str_equal(verdict, "higher") || str_equal(verdict, "lower");
}

static char *exceeded_line(const struct result *result, const struct result_item *check,
                           const struct result_item *comparison)
{
    const char *name = result_text_at(check, "metric");
    const struct result_item *metrics = result_get(comparison, "metrics");
    const struct result_item *metric = result_get(metrics, name);
    const struct result_item *relative = result_get(metric, "relative");
    char value[CELL_MAX], interval[CELL_MAX] = "";
    bool is_confident = result_flag_at(result->items, "confident");
    if (result_flag_at(check, "view.is_relative") && is_known(relative->number))
        percent_text(value, relative->number);
    else
        difference_text(value, result_get(metric, "difference"));
    if (is_confident)
        interval_text(interval, relative);
    return xformat("'%s': %s differs by %s%s%s (%s)%s", result_text_at(check, "fail_if"), name,
                   value, is_confident ? ", 95 % CI: " : "", interval,
                   result_text_at(check, "directory"),
                   is_decided(metric) ? "" : repeats_note(comparison));
}

char *compare_check_line(const struct result *result, const struct result_item *check)
{
    const char *outcome = result_text_at(check, "outcome");
    const char *bound = result_text_at(check, "fail_if");
    const char *directory = result_text_at(check, "directory");
    char path[64];
    chars_format(path, "comparisons.%.0f", result_number_at(check, "view.comparison"));
    const struct result_item *comparison = result_find(result, path);
    if (str_equal(outcome, "not repeated"))
        return xformat("'%s' cannot be checked with --confident%s (%s); repeat both sides with "
                       "--repeat-runs N",
                       bound, repeats_note(comparison), directory);
    if (str_equal(outcome, "not known"))
        return xformat("'%s' cannot be checked: %s is unknown in one of the runs (%s)", bound,
                       result_text_at(check, "metric"), directory);
    if (str_equal(outcome, "not comparable"))
        return xformat("'%s' cannot be checked: conditions differ, and energies are not comparable "
                       "(%s); --ignore-conditions compares them anyway",
                       bound, directory);
    return exceeded_line(result, check, comparison);
}

static const char *outcome_word(const char *outcome)
{
    static const char *const WORDS[][2] = {
        {"failed", "FAILED"}, {"not known", "FAILED"}, {"not repeated", "not decided"}};
    const char *const *found = STR_FIND(outcome, WORDS);
    return found ? found[1] : outcome;
}

static void put_checks(const struct result *result, const char *before, struct text *out)
{
    RESULT_EACH (check, result_find(result, "checks")) {
        char *line = compare_check_line(result, check);
        text_addf(out, "%s%s: ", before, outcome_word(result_text_at(check, "outcome")));
        text_add_plain(out, line);
        text_add(out, "\n");
        free(line);
    }
}

static bool has_checks(const struct result *result)
{
    return result_first(result_find(result, "checks")) != NULL;
}

/* "20 queries" */
static void put_queries(const struct result *result, struct text *out)
{
    double queries = result_number_at(result->items, "baseline.queries");
    text_addf(out, "%.0f %s", queries,
              result_text_at(result->items, queries == 1 ? "comparisons.0.view.record"
                                                         : "comparisons.0.view.records"));
}

/* The metric that is tested first, in words. */
static void put_statement(const struct result_item *comparison, const char *before,
                          struct text *out)
{
    const struct result_item *metrics = result_get(comparison, "metrics");
    const struct result_item *energy = result_get(metrics, "energy_per_query");
    text_addf(out, "%s%s: %s\n", before, result_text_at(energy, "label"),
              result_text_at(energy, "statement"));
}

/* ---- text ---- */

/* The name of a side, its runs, and model and hardware. */
static void put_side(const struct result_item *side, const char *before, struct text *out)
{
    const char *hardware = result_text_at(side, "hardware_label");
    char *where = where_text(side);
    text_addf(out, "\n %s%s\n   ", before, plain_text(result_text_at(side, "name")).text);
    text_add_plain(out, where);
    text_addf(out, "\n   '%s'%s%s; ", plain_text(result_text_at(side, "model")).text,
              hardware[0] ? " on " : "", plain_text(hardware).text);
    free(where);
}

static void put_comparison(const struct result_item *comparison, bool has_common, bool color,
                           struct text *out)
{
    const struct result_item *findings = result_get(comparison, "findings");
    char pairing[CELL_MAX];
    struct table table;
    pairing_text(pairing, comparison);
    put_side(comparison, "", out);
    text_addf(out, "%s\n", pairing);
    put_statement(comparison, "   ", out);
    findings_text(findings, color, out);
    text_add(out, result_first(findings) ? "" : "\n");
    fill_table(comparison, &table);
    table_print(&table, "   ", color, out);
    if (!has_common)
        put_common(result_number_at(comparison, "common_pct"), "   ", out);
}

static void compare_text(const struct result *result, bool color, struct text *out)
{
    const struct result_item *baseline = result_find(result, "baseline");
    const struct result_item *comparisons = result_find(result, "comparisons");
    bool is_one = result_length(result_get(baseline, "directories")) <= 1;
    put_side(baseline, "baseline: ", out);
    put_queries(result, out);
    text_add(out, is_one ? "\n" : " each\n");
    RESULT_EACH (comparison, comparisons)
        put_comparison(comparison, is_known(common_to_all(result)), color, out);
    text_add(out, "\n");
    put_explanation(result, "   ", out);
    if (has_checks(result))
        text_add(out, "\n");
    put_checks(result, "   ", out);
    text_add(out, "\n");
}

/* ---- Markdown ---- */

static void put_markdown(const struct result *result, const struct result_item *comparison,
                         struct text *out)
{
    const struct result_item *findings = result_get(comparison, "findings");
    struct table table;
    char pairing[CELL_MAX];
    char *where = where_text(comparison);
    pairing_text(pairing, comparison);
    text_add(out, "\n### ");
    markdown_add(out, result_text_at(comparison, "name"));
    text_add(out, "\n\n");
    markdown_add(out, where);
    free(where);
    text_addf(out, "; %s.\n\n", pairing);
    put_statement(comparison, "", out);
    text_add(out, "\n");
    RESULT_EACH (finding, findings) {
        text_addf(out, "- **%s**: ", result_text_at(finding, "severity"));
        markdown_add(out, result_text_at(finding, "text"));
        text_addf(out, " (`%s`)\n", result_text_at(finding, "code"));
    }
    text_add(out, result_first(findings) ? "\n" : "");
    fill_table(comparison, &table);
    table_write_markdown(&table, out);
    table_release(&table);
    text_add(out, "\n");
    if (!is_known(common_to_all(result)))
        put_common(result_number_at(comparison, "common_pct"), "", out);
}

static void compare_markdown(const struct result *result, bool color, struct text *out)
{
    const struct result_item *baseline = result_find(result, "baseline");
    char *where = where_text(baseline);
    (void)color;
    text_add(out, "Baseline: ");
    markdown_add(out, result_text_at(baseline, "name"));
    text_add(out, ", ");
    markdown_add(out, where);
    free(where);
    text_add(out, ", ");
    put_queries(result, out);
    text_add(out, "\n");
    RESULT_EACH (comparison, result_find(result, "comparisons"))
        put_markdown(result, comparison, out);
    text_add(out, "\n");
    put_explanation(result, "", out);
    text_add(out, has_checks(result) ? "\n" : "");
    put_checks(result, "- ", out);
}

const struct print_views COMPARE_VIEWS = {
    .text = compare_text, .markdown = compare_markdown, .has_blank_line = true};
