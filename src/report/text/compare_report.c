/* The report of `ipw compare`: a table of metrics with their verdicts, fairness warnings first, or JSON. */
#include "report/text/compare_report.h"

#include <math.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"

/* ---- text ---- */

enum { CELL_MAX = 128, CELLS = 8, WHERE_MAX = 560 };

static const struct table_column COLUMNS[CELLS] = {
    {"metric", false},  {"baseline", true}, {"this run", true}, {"difference", true},
    {"relative", true}, {"95 % CI", true},  {"p (Holm)", true}, {"verdict", false},
};

/* ---- cells ---- */

/* A metric without a unit is a share. */
static void value_text(char *to, const struct compare_metric_info *info, double value, double error)
{
    if (strcmp(info->unit, "currency") == 0) {
        format_amount(to, value, error, "");
        return;
    }
    const char *unit = !info->unit[0] ? "%" : strcmp(info->unit, "1") == 0 ? "" : info->unit;
    format_figure(to, value, error, unit);
}

/* Always with its sign; a share in percentage points. */
static void difference_text(char *to, const struct compare_metric_info *info, double value)
{
    char size[CELL_MAX];
    value_text(size, info, fabs(value), UNKNOWN);
    if (!is_known(value))
        str_copy(to, CELL_MAX, "-");
    else if (!info->unit[0])
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

static void interval_text(char *to, const struct contrast_figure *figure)
{
    if (!is_known(figure->low) || !is_known(figure->high))
        str_copy(to, CELL_MAX, "-");
    else
        str_format(to, CELL_MAX, "%+.1f to %+.1f %%", 100 * figure->low, 100 * figure->high);
}

/* No random permutation reached the difference: p is an upper bound. */
static bool is_p_bound(const struct compared *compared)
{
    return compared->test && strstr(compared->test, "permutation") && !compared->found.exact &&
           compared->found.p_value * (CONTRAST_TRIES + 1) < 1.5;
}

static void fill_cells(const struct comparison *comparison, enum compare_metric metric,
                       char cells[CELLS][CELL_MAX])
{
    const struct compare_metric_info *info = &COMPARE_METRIC_INFO[metric];
    const struct compared *compared = &comparison->metrics[metric];
    str_copy(cells[0], CELL_MAX, info->name);
    size_t queries = compared->a_queries / comparison->a_runs;
    if (queries && queries < comparison->pairs)
        str_format(cells[0], CELL_MAX, "%s (%zu of %zu)", info->name, queries, comparison->pairs);
    value_text(cells[1], info, compared->found.a, compared->a_plus_minus);
    value_text(cells[2], info, compared->found.b, compared->b_plus_minus);
    difference_text(cells[3], info, compared->found.difference.value);
    percent_text(cells[4], compared->found.relative.value);
    interval_text(cells[5], &compared->found.relative);
    format_p(cells[6], compared->p_holm, is_p_bound(compared));
    str_copy(cells[7], CELL_MAX, compare_verdict_text(compared->verdict));
}

/* Metrics that neither run has are omitted. */
static bool is_shown(const struct comparison *comparison, enum compare_metric metric)
{
    const struct contrast *found = &comparison->metrics[metric].found;
    return is_known(found->a) || is_known(found->b);
}

/* ---- lines ---- */

static size_t questions_asked(const struct compare_report *report)
{
    size_t asked = 0;
    for (size_t i = 0; i < report->set->count; i++)
        for (size_t m = 0; m < COMPARE_METRICS; m++)
            asked += !compare_is_priced((enum compare_metric)m) &&
                     is_known(report->set->comparisons[i].metrics[m].found.p_value);
    return asked;
}

/* Unit of the baseline's records: "queries", "runs" ... */
static const char *units_of(const struct compare_report *report, bool several)
{
    return run_kind_unit(report->set->count ? report->set->comparisons[0].kind : RUN_KIND_PROFILE,
                         several);
}

/* Variation that p and the intervals are based on, if it is not the same for all comparisons. */
static void put_basis(const struct compare_report *report, const char *indent, struct text *out)
{
    bool repeated = false, single = false, commands = false;
    for (size_t i = 0; i < report->set->count; i++) {
        const struct comparison *comparison = &report->set->comparisons[i];
        bool one = comparison->a_runs + comparison->side.runs == 2;
        repeated = repeated || compare_is_repeated(comparison);
        commands = commands || (one && comparison->kind == RUN_KIND_RUN);
        single = single || (one && comparison->kind != RUN_KIND_RUN);
    }
    if (commands)
        text_addf(out,
                  "%sp and CI by Welch's t-test, from the variation between the repeats (-r) of "
                  "each `ipw run`.\n",
                  indent);
    if (repeated)
        text_addf(out,
                  "%sSeveral runs per side: p and CI by Welch's t-test of the run means, from the "
                  "variation between runs.\n",
                  indent);
    if (single)
        text_addf(out,
                  "%sOne run per side: differences between runs are unknown. p and CI cover the "
                  "variation between the %s of one run;\n%srepeat both sides with --repeat-runs "
                  "N.\n",
                  indent, units_of(report, true), indent);
}

/* Printed once if it is the same for all; else with each comparison (put_common). */
static double common_to_all(const struct compare_report *report)
{
    double common = report->set->comparisons[0].common;
    for (size_t i = 1; i < report->set->count; i++)
        if (!(report->set->comparisons[i].common == common))
            return UNKNOWN;
    return common;
}

static void put_common(double common, const char *indent, struct text *out)
{
    if (common > 0)
        text_addf(out,
                  common < 0.0995 ? "%sall energies ±%.1f %%, common: the same in every run, it "
                                    "cancels in the differences\n"
                                  : "%sall energies ±%.0f %%, common: the same in every run, it "
                                    "cancels in the differences\n",
                  indent, 100 * common);
}

/* That of the baseline, else of the first side that has one: others are in the warnings. */
static void put_tariff(const struct compare_report *report, const char *indent, struct text *out)
{
    const struct compared_side *side = &report->set->baseline;
    for (size_t i = 0; !tariff_given(&side->tariff) && i < report->set->count; i++)
        side = &report->set->comparisons[i].side;
    if (!tariff_given(&side->tariff))
        return;
    text_addf(out, "%soperating cost and emissions ", indent);
    format_tariff(&side->tariff, side->currency, out);
    text_addf(out, "%s%s\n", format_scope(&side->tariff)[0] ? "; " : "",
              format_scope(&side->tariff));
}

static void put_explanation(const struct compare_report *report, const char *indent,
                            struct text *out)
{
    put_common(common_to_all(report), indent, out);
    put_tariff(report, indent, out);
    text_addf(out,
              "%sp: probability of such a difference by chance, Holm-corrected for %zu tests.\n"
              "%s\"better\", \"worse\": p < %g and the 95 %% CI excludes 0. \"no evidence\" is not "
              "\"equal\".\n",
              indent, questions_asked(report), indent, COMPARE_ALPHA);
    put_basis(report, indent, out);
}

static void pairing_text(char *to, const struct comparison *comparison)
{
    const char *units = run_kind_unit(comparison->kind, true);
    if (comparison->paired && comparison->pairs < comparison->same)
        str_format(to, CELL_MAX, "%zu of %zu common %s, paired: those that %s runs completed",
                   comparison->pairs, comparison->same, units,
                   comparison->a_runs + comparison->side.runs > 2 ? "all" : "both");
    else if (comparison->paired)
        str_format(to, CELL_MAX, "%zu common %s, paired", comparison->same, units);
    else
        str_format(to, CELL_MAX, "different %s, unpaired", units);
}

/* "runs/x_r1 and 2 more". */
static void where_text(char *to, const struct compared_side *side)
{
    if (side->runs > 1)
        str_format(to, WHERE_MAX, "%s and %zu more: %zu runs", side->directory, side->runs - 1,
                   side->runs);
    else
        str_copy(to, WHERE_MAX, side->directory);
}

char *compare_check_line(const struct compare_check *check, const struct comparison *comparison,
                         enum compare_outcome outcome, bool confident, char *to)
{
    const struct compare_metric_info *info = &COMPARE_METRIC_INFO[check->metric];
    const struct contrast *found = &comparison->metrics[check->metric].found;
    char value[CELL_MAX], interval[CELL_MAX];
    if (check->relative && is_known(found->relative.value))
        percent_text(value, found->relative.value);
    else
        difference_text(value, info, found->difference.value);
    const char *unrepeated = compare_is_repeated(comparison)
                                 ? ""
                                 : "; one run per side: differences between runs are unknown";
    interval_text(interval, &found->relative);
    if (comparison->a_runs != comparison->side.runs && unrepeated[0])
        unrepeated = "; a side has one run: differences between runs are unknown";
    if (outcome == CHECK_UNREPEATED)
        str_format(to, CHECK_LINE_MAX,
                   "'%s' cannot be checked with --confident%s (%.200s); repeat both sides with "
                   "--repeat-runs N",
                   check->text, unrepeated, comparison->side.directory);
    else if (outcome == CHECK_UNKNOWN)
        str_format(to, CHECK_LINE_MAX,
                   "'%s' cannot be checked: %s is unknown in one of the runs (%.200s)", check->text,
                   info->name, comparison->side.directory);
    else if (outcome == CHECK_NOT_COMPARABLE)
        str_format(to, CHECK_LINE_MAX,
                   "'%s' cannot be checked: conditions differ, and energies are not comparable "
                   "(%.200s); --ignore-conditions compares them anyway",
                   check->text, comparison->side.directory);
    else
        str_format(to, CHECK_LINE_MAX, "'%s': %s differs by %s%s%s (%.200s)%s", check->text,
                   info->name, value, confident ? ", 95 % CI: " : "", confident ? interval : "",
                   comparison->side.directory, unrepeated);
    return to;
}

static void put_checks(const struct compare_report *report, const char *before, struct text *out)
{
    static const char *const WORDS[CHECK_OUTCOMES] = {"passed", "FAILED", "FAILED",
                                                      "not comparable", "not decided"};
    char line[CHECK_LINE_MAX];
    for (size_t i = 0; i < report->set->count; i++)
        for (size_t c = 0; c < report->check_count; c++) {
            const struct compare_check *check = &report->checks[c];
            enum compare_outcome outcome =
                compare_check_evaluate(check, &report->set->comparisons[i], report->confident);
            compare_check_line(check, &report->set->comparisons[i], outcome, report->confident,
                               line);
            text_addf(out, "%s%s: %s\n", before, WORDS[outcome], str_plain(line, sizeof line));
        }
}

/* ---- text ---- */

static void fill_table(const struct comparison *comparison, struct table *table)
{
    char cells[CELLS][CELL_MAX];
    table_init(table, COLUMNS, CELLS);
    for (size_t m = 0; m < COMPARE_METRICS; m++) {
        if (!is_shown(comparison, (enum compare_metric)m))
            continue;
        fill_cells(comparison, (enum compare_metric)m, cells);
        for (size_t c = 0; c < CELLS; c++)
            table_add(table, cells[c]);
    }
}

static void put_comparison(const struct comparison *comparison, bool has_common, bool color,
                           struct text *out)
{
    const struct compared_side *side = &comparison->side;
    char pairing[CELL_MAX], where[WHERE_MAX];
    struct table table;
    pairing_text(pairing, comparison);
    where_text(where, side);
    text_addf(out, "\n %s\n   %s\n   '%s'%s%s; %s\n", plain_text(side->name).text,
              plain_text(where).text, plain_text(side->model).text, side->hardware[0] ? " on " : "",
              plain_text(side->hardware).text, pairing);
    for (size_t i = 0; i < comparison->warning_count; i++)
        text_addf(out, "   warning: %s\n", plain_text(comparison->warnings[i].text).text);
    text_add(out, "\n");
    fill_table(comparison, &table);
    table_print(&table, "   ", color, out);
    if (!has_common)
        put_common(comparison->common, "   ", out);
}

void compare_text(const struct compare_report *report, bool color, struct text *out)
{
    const struct compared_side *baseline = &report->set->baseline;
    char where[WHERE_MAX];
    where_text(where, baseline);
    text_addf(out, "\n baseline: %s\n   %s\n   '%s'%s%s; %zu %s%s\n",
              plain_text(baseline->name).text, plain_text(where).text,
              plain_text(baseline->model).text, baseline->hardware[0] ? " on " : "",
              plain_text(baseline->hardware).text, baseline->queries,
              units_of(report, baseline->queries != 1), baseline->runs > 1 ? " each" : "");
    for (size_t i = 0; i < report->set->count; i++)
        put_comparison(&report->set->comparisons[i], is_known(common_to_all(report)), color, out);
    text_add(out, "\n");
    put_explanation(report, "   ", out);
    if (report->check_count)
        text_add(out, "\n");
    put_checks(report, "   ", out);
    text_add(out, "\n");
}

/* ---- Markdown ---- */

void compare_markdown(const struct compare_report *report, struct text *out)
{
    const struct compared_side *baseline = &report->set->baseline;
    char where[WHERE_MAX];
    where_text(where, baseline);
    text_add(out, "Baseline: ");
    markdown_add(out, baseline->name);
    text_add(out, ", ");
    markdown_add(out, where);
    text_addf(out, ", %zu %s\n", baseline->queries, units_of(report, baseline->queries != 1));
    for (size_t i = 0; i < report->set->count; i++) {
        const struct comparison *comparison = &report->set->comparisons[i];
        struct table table;
        char pairing[CELL_MAX];
        pairing_text(pairing, comparison);
        where_text(where, &comparison->side);
        text_add(out, "\n### ");
        markdown_add(out, comparison->side.name);
        text_add(out, "\n\n");
        markdown_add(out, where);
        text_addf(out, "; %s.\n\n", pairing);
        for (size_t w = 0; w < comparison->warning_count; w++) {
            text_add(out, "- **warning**: ");
            markdown_add(out, comparison->warnings[w].text);
            text_add(out, "\n");
        }
        text_add(out, comparison->warning_count ? "\n" : "");
        fill_table(comparison, &table);
        table_write_markdown(&table, out);
        table_release(&table);
        text_add(out, "\n");
        if (!is_known(common_to_all(report)))
            put_common(comparison->common, "", out);
    }
    text_add(out, "\n");
    put_explanation(report, "", out);
    text_add(out, report->check_count ? "\n" : "");
    put_checks(report, "- ", out);
}

/* ---- JSON ---- */

static void figure_to_json(struct json *json, const char *key, const char *interval_key,
                           const struct contrast_figure *figure)
{
    json_number(json, key, figure->value);
    if (!is_known(figure->low) || !is_known(figure->high)) {
        json_null(json, interval_key);
        return;
    }
    json_array(json, interval_key);
    json_number(json, NULL, figure->low);
    json_number(json, NULL, figure->high);
    json_array_end(json);
}

static void side_to_json(struct json *json, const char *key, double value, double plus_minus,
                         double statistical, size_t queries)
{
    json_object(json, key);
    json_number(json, "value", value);
    json_number(json, "plus_minus", plus_minus);
    json_number(json, "plus_minus_statistical", statistical);
    json_integer(json, "queries", (int64_t)queries);
    json_object_end(json);
}

static void metric_to_json(struct json *json, const struct compared *compared,
                           const struct compare_metric_info *info)
{
    static const char *const BETTER[] = {"lower", "neither", "higher"};
    const struct contrast *found = &compared->found;
    json_object(json, info->name);
    json_string(json, "label", info->label);
    json_string(json, "unit", info->unit);
    json_string(json, "better", BETTER[info->better - BETTER_LOWER]);
    side_to_json(json, "baseline", found->a, compared->a_plus_minus, found->a_error,
                 compared->a_queries);
    side_to_json(json, "run", found->b, compared->b_plus_minus, found->b_error,
                 compared->b_queries);
    figure_to_json(json, "difference", "difference_interval_95", &found->difference);
    figure_to_json(json, "relative", "relative_interval_95", &found->relative);
    json_string(json, "test", compared->test);
    json_number(json, "dof", found->freedom);
    json_number(json, "p_value", found->p_value);
    json_number(json, "p_holm", compared->p_holm);
    json_bool(json, "p_is_bound", is_p_bound(compared));
    json_string(json, "verdict", compare_verdict_text(compared->verdict));
    json_object_end(json);
}

static void compared_to_json(struct json *json, const struct compared_side *side,
                             const char *const *directories)
{
    json_string(json, "name", side->name);
    json_string(json, "directory", side->directory);
    json_array(json, "directories");
    for (size_t i = 0; i < side->runs; i++)
        json_string(json, NULL, directories[i]);
    json_array_end(json);
    json_string(json, "model", side->model);
    json_string(json, "hardware_label", side->hardware);
    json_object(json, "operating");
    json_string(json, "currency", side->currency[0] ? side->currency : NULL);
    json_number(json, "price_per_kwh", side->tariff.price_per_kwh);
    json_number(json, "gco2_per_kwh", side->tariff.gco2_per_kwh);
    json_number(json, "device_price_per_hour", side->tariff.device_price_per_hour);
    json_object_end(json);
}

static void comparison_to_json(struct json *json, const struct comparison *comparison,
                               const char *const *directories)
{
    static const char *const CONDITIONS[] = {"unknown", "comparable", "not comparable", "ignored"};
    json_object(json, NULL);
    compared_to_json(json, &comparison->side, directories);
    json_string(json, "method",
                comparison->a_runs + comparison->side.runs > 2 ? "run-level" : "query-level");
    json_object(json, "runs");
    json_integer(json, "baseline", (int64_t)comparison->a_runs);
    json_integer(json, "run", (int64_t)comparison->side.runs);
    json_object_end(json);
    json_number(json, "common_pct", 100 * comparison->common);
    json_bool(json, "paired", comparison->paired);
    json_integer(json, "same_queries", (int64_t)comparison->same);
    json_integer(json, "pairs", (int64_t)comparison->pairs);
    json_integer(json, "baseline_only", (int64_t)comparison->a_only);
    json_integer(json, "run_only", (int64_t)comparison->b_only);
    json_integer(json, "changed_questions", (int64_t)comparison->changed);
    json_string(json, "conditions", CONDITIONS[comparison->conditions]);
    json_array(json, "warnings");
    for (size_t i = 0; i < comparison->warning_count; i++)
        json_string(json, NULL, comparison->warnings[i].text);
    json_array_end(json);
    json_object(json, "metrics");
    for (size_t m = 0; m < COMPARE_METRICS; m++)
        metric_to_json(json, &comparison->metrics[m], &COMPARE_METRIC_INFO[m]);
    json_object_end(json);
    json_object_end(json);
}

static void checks_to_json(struct json *json, const struct compare_report *report)
{
    static const char *const OUTCOMES[CHECK_OUTCOMES] = {"passed", "failed", "not known",
                                                         "not comparable", "not repeated"};
    json_array(json, "checks");
    for (size_t i = 0; i < report->set->count; i++)
        for (size_t c = 0; c < report->check_count; c++) {
            const struct compare_check *check = &report->checks[c];
            json_object(json, NULL);
            json_string(json, "directory", report->set->comparisons[i].side.directory);
            json_string(json, "fail_if", check->text);
            json_string(json, "metric", COMPARE_METRIC_INFO[check->metric].name);
            json_string(json, "outcome",
                        OUTCOMES[compare_check_evaluate(check, &report->set->comparisons[i],
                                                        report->confident)]);
            json_object_end(json);
        }
    json_array_end(json);
}

void compare_json(const struct compare_report *report, struct text *out)
{
    struct json json;
    const char *const *directories = report->groups->directories;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_object(&json, "baseline");
    compared_to_json(&json, &report->set->baseline, directories);
    json_integer(&json, "queries", (int64_t)report->set->baseline.queries);
    json_object_end(&json);
    json_array(&json, "comparisons");
    for (size_t i = 0; i < report->set->count; i++) {
        directories += report->groups->runs[i];
        comparison_to_json(&json, &report->set->comparisons[i], directories);
    }
    json_array_end(&json);
    checks_to_json(&json, report);
    json_bool(&json, "confident", report->confident);
    json_string(&json, "correction", "holm");
    json_number(&json, "alpha", COMPARE_ALPHA);
    json_integer(&json, "seed", (int64_t)report->seed);
    json_string(&json, "version", IPW_VERSION);
    json_object_end(&json);
    text_add(out, "\n");
}
