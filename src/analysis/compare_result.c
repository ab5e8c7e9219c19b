/* A comparison as a result: what every format of `ipw compare` and the page are printed from. */
#include <string.h>

#include "analysis/compare_quality.h"
#include "analysis/compare_set.h"
#include "core/result.h"
#include "core/units.h"
#include "core/text.h"

/* ---- metrics ---- */

enum { LABEL_MAX = 64 };

/* No random permutation reached the difference: p is an upper bound. */
static bool is_p_bound(const struct compared *compared)
{
    return compared->test && strstr(compared->test, "permutation") && !compared->found.exact &&
           compared->found.p_value * (CONTRAST_TRIES + 1) < 1.5;
}

/* The unit of its figures: a metric without one is a share, "1" is a plain number. */
static const char *unit_of(const struct compare_metric_info *info)
{
    if (!info->unit[0])
        return "%";
    return str_equal(info->unit, "1") ? "" : info->unit;
}

static void put_side_figure(struct result *out, const char *key, double value, double plus_minus,
                            double statistical, size_t queries, const char *unit)
{
    result_group(out, key);
    result_number(out, "value", value, unit);
    result_uncertain(out, "value", plus_minus);
    result_number(out, "plus_minus", plus_minus, unit);
    result_number(out, "plus_minus_statistical", statistical, unit);
    result_count(out, "queries", queries);
    result_end(out);
}

static void put_contrast(struct result *out, const char *key, const struct contrast_figure *figure,
                         const char *unit)
{
    result_number(out, key, figure->value, unit);
    result_interval(out, key, figure->low, figure->high);
}

/* "Energy per run" of commands, whose records are no queries. */
static const char *label_of(const struct comparison *comparison,
                            const struct compare_metric_info *info, char to[LABEL_MAX])
{
    static const char QUERY[] = " query";
    size_t length = strlen(info->label), stem = length - (sizeof QUERY - 1);
    if (!str_ends(info->label, QUERY))
        return info->label;
    str_format(to, LABEL_MAX, "%.*s %s", (int)stem, info->label,
               run_kind_unit(comparison->kind, false));
    return to;
}

static void put_metric(struct result *out, const struct comparison *comparison,
                       enum compare_metric metric)
{
    const struct compared *compared = &comparison->metrics[metric];
    const struct compare_metric_info *info = &COMPARE_METRIC_INFO[metric];
    char statement[STATEMENT_MAX], label[LABEL_MAX];
    const struct contrast *found = &compared->found;
    const char *unit = unit_of(info);
    result_group(out, info->name);
    result_text(out, "label", label_of(comparison, info, label));
    result_text(out, "unit", info->unit);
    result_text(out, "better", better_name((int)info->better));
    put_side_figure(out, "baseline", found->a, compared->a_plus_minus, found->a_error,
                    compared->a_queries, unit);
    put_side_figure(out, "run", found->b, compared->b_plus_minus, found->b_error,
                    compared->b_queries, unit);
    put_contrast(out, "difference", &found->difference, unit);
    put_contrast(out, "relative", &found->relative, "%");
    result_group(out, "of_these_runs");
    put_contrast(out, "difference", &compared->plain.difference, unit);
    put_contrast(out, "relative", &compared->plain.relative, "%");
    result_number(out, "p_value", compared->plain.p_value, "");
    result_end(out);
    result_numbers(out, "conditions_explain",
                   (const double[]){compared->shift_low, compared->shift_high}, 2, unit);
    result_text(out, "test", compared->test);
    result_number(out, "dof", found->freedom, "");
    result_number(out, "p_value", found->p_value, "");
    result_number(out, "p_holm", compared->p_holm, "");
    result_flag(out, "p_is_bound", is_p_bound(compared));
    result_text(out, "verdict", compare_verdict_text(compared->verdict));
    result_text(out, "statement", compare_statement(comparison, metric, statement));
    result_end(out);
}

static void put_quality(struct result *out, const struct compared_quality *quality)
{
    const char *verdict = compare_verdict_text(compare_quality_verdict(quality));
    result_group(out, quality->name);
    result_text(out, "label", quality->name);
    result_text(out, "unit", "1");
    result_text(out, "better", better_name((int)quality->better));
    put_side_figure(out, "baseline", quality->a, quality->a_plus_minus, quality->a_plus_minus,
                    quality->a_count, "");
    put_side_figure(out, "run", quality->b, quality->b_plus_minus, quality->b_plus_minus,
                    quality->b_count, "");
    put_contrast(out, "difference", &quality->difference, "");
    put_contrast(out, "relative", &quality->relative, "%");
    result_text(out, "test", quality->test);
    result_count(out, "paired_questions", quality->pairs);
    result_number(out, "p_value", quality->p_value, "");
    result_number(out, "p_holm", quality->p_holm, "");
    result_flag(out, "p_is_bound", false);
    result_text(out, "verdict", verdict);
    result_text(out, "statement", verdict);
    result_end(out);
}

/* ---- sides ---- */

/* directories: NULL for runs that were not saved. */
static void put_side(struct result *out, const struct compared_side *side,
                     const char *const *directories)
{
    result_text(out, "name", side->name);
    result_text(out, "directory", directories ? side->directory : NULL);
    result_list(out, "directories");
    for (size_t i = 0; directories && i < side->runs; i++)
        result_text(out, NULL, directories[i]);
    result_end(out);
    result_text(out, "model", side->model);
    result_text(out, "hardware_label", side->hardware);
    result_group(out, "operating");
    result_text(out, "currency", side->currency[0] ? side->currency : NULL);
    result_number(out, "price_per_kwh", side->tariff.price_per_kwh, "");
    result_number(out, "gco2_per_kwh", side->tariff.gco2_per_kwh, "g");
    result_number(out, "device_price_per_hour", side->tariff.device_price_per_hour, "");
    result_end(out);
}

/* Also where they explain the difference of the energy that was found. */
static enum compare_conditions conditions_of(const struct comparison *comparison)
{
    bool is_explained =
        comparison->metrics[COMPARE_ENERGY_PER_QUERY].verdict == VERDICT_NOT_COMPARABLE;
    return is_explained ? CONDITIONS_DIFFER : comparison->conditions;
}

/* Of one run a side: null otherwise. */
static void put_spread(struct result *out, const struct comparison *comparison)
{
    const struct run_spread *spread = &comparison->spread;
    if (!compare_is_single(comparison)) {
        result_null(out, "spread");
        return;
    }
    result_group(out, "spread");
    result_number(out, "energy_pct", 100 * spread->energy, "");
    result_number(out, "time_pct", 100 * spread->time, "");
    result_count(out, "repeats", spread->runs);
    result_end(out);
}

/* Of runs that alternated; absent otherwise. */
static void put_series(struct result *out, const struct compare_series *series)
{
    if (!series->is_interleaved)
        return;
    result_group(out, "series");
    result_count(out, "pairs", series->pairs);
    if (series->until_decided)
        result_count(out, "until_decided", series->until_decided);
    else
        result_null(out, "until_decided");
    result_number(out, "look", series->look, "");
    result_end(out);
}

/* What the views call the records of a run: "query", "queries". */
static void put_units(struct result *out, enum run_kind kind)
{
    result_aside(out, "view");
    result_text(out, "record", run_kind_unit(kind, false));
    result_text(out, "records", run_kind_unit(kind, true));
    result_flag(out, "is_command", kind == RUN_KIND_RUN);
    result_end(out);
}

static void put_comparison(struct result *out, const struct comparison *comparison,
                           const char *const *directories)
{
    static const char *const CONDITIONS[] = {"unknown", "comparable", "not comparable", "ignored"};
    bool by_runs = comparison->a_runs + comparison->side.runs > 2;
    char basis[BASIS_MAX];
    result_group(out, NULL);
    put_side(out, &comparison->side, directories);
    result_text(out, "method", by_runs ? "run-level" : "query-level");
    result_group(out, "runs");
    result_count(out, "baseline", comparison->a_runs);
    result_count(out, "run", comparison->side.runs);
    result_end(out);
    result_number(out, "common_pct", 100 * comparison->common, "");
    result_flag(out, "paired", comparison->paired);
    result_count(out, "same_queries", comparison->same);
    result_count(out, "pairs", comparison->pairs);
    result_count(out, "baseline_only", comparison->a_only);
    result_count(out, "run_only", comparison->b_only);
    result_count(out, "changed_questions", comparison->changed);
    result_text(out, "conditions", CONDITIONS[conditions_of(comparison)]);
    result_text(out, "basis", compare_basis(comparison, basis));
    result_flag(out, "uses_order", comparison->has_order);
    put_spread(out, comparison);
    put_series(out, &comparison->series);
    put_units(out, comparison->kind);
    findings_to_result(&comparison->findings, "findings", out);
    result_group(out, "metrics");
    for (size_t m = 0; m < COMPARE_METRICS; m++)
        put_metric(out, comparison, (enum compare_metric)m);
    for (size_t q = 0; q < comparison->quality_count; q++)
        put_quality(out, &comparison->qualities[q]);
    result_end(out);
    result_end(out);
}

/* ---- bounds ---- */

static void put_check(struct result *out, const struct compare_report *report, size_t comparison,
                      const struct compare_check *check)
{
    static const char *const OUTCOMES[CHECK_OUTCOMES] = {"passed", "failed", "not known",
                                                         "not comparable", "not repeated"};
    const struct comparison *of = &report->set->comparisons[comparison];
    result_group(out, NULL);
    result_text(out, "directory", of->side.directory);
    result_text(out, "fail_if", check->text);
    result_text(out, "metric", COMPARE_METRIC_INFO[check->metric].name);
    result_text(out, "outcome", OUTCOMES[compare_check_evaluate(check, of, report->confident)]);
    result_aside(out, "view");
    result_count(out, "comparison", comparison);
    result_flag(out, "is_relative", check->relative);
    result_end(out);
    result_end(out);
}

/* ---- all ---- */

/* Tests beside the primary one that share Holm's correction. */
static size_t tests_made(const struct compare_set *set)
{
    size_t tests = 0;
    for (size_t i = 0; i < set->count; i++)
        for (size_t m = 0; m < COMPARE_METRICS; m++)
            tests += m != COMPARE_ENERGY_PER_QUERY && !compare_is_priced((enum compare_metric)m) &&
                     is_known(set->comparisons[i].metrics[m].found.p_value);
    return tests;
}

static const struct result_column COLUMNS[] = {
    {"run", "^name", 0},
    {"directory", "^directory", 0},
    {"metric", "", 0},
    {"unit", "unit", 0},
    {"baseline", "baseline.value", 0},
    {"baseline_plus_minus", "baseline.plus_minus", 0},
    {"baseline_queries", "baseline.queries", 0},
    {"value", "run.value", 0},
    {"plus_minus", "run.plus_minus", 0},
    {"queries", "run.queries", 0},
    {"difference", "difference", 0},
    {"difference_low", "difference:low", 0},
    {"difference_high", "difference:high", 0},
    {"relative", "relative", 0},
    {"relative_low", "relative:low", 0},
    {"relative_high", "relative:high", 0},
    {"p_value", "p_value", 0},
    {"p_holm", "p_holm", 0},
    {"verdict", "verdict", 0},
    {0},
};

void compare_result(const struct compare_report *report, struct result *out)
{
    const struct compare_set *set = report->set;
    const char *const *directories = report->is_temporary ? NULL : report->groups->directories;
    result_begin(out, "compare");
    result_group(out, "baseline");
    put_side(out, &set->baseline, directories);
    result_count(out, "queries", set->baseline.queries);
    result_end(out);
    result_list(out, "comparisons");
    for (size_t i = 0; i < set->count; i++) {
        directories += directories ? report->groups->runs[i] : 0;
        put_comparison(out, &set->comparisons[i], directories);
    }
    result_end(out);
    result_list(out, "checks");
    for (size_t i = 0; i < set->count; i++)
        for (size_t c = 0; c < report->check_count; c++)
            put_check(out, report, i, &report->checks[c]);
    result_end(out);
    result_aside(out, "view");
    result_count(out, "tests", tests_made(set));
    result_end(out);
    result_flag(out, "confident", report->confident);
    result_text(out, "correction", "holm");
    result_number(out, "alpha", COMPARE_ALPHA, "");
    result_integer(out, "seed", (int64_t)report->seed);
    result_text(out, "version", IPW_VERSION);
    result_end(out);
    result_table(out, "comparisons.*.metrics", COLUMNS);
}
