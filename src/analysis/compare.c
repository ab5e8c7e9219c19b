#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/compare/fairness.h"
#include "analysis/compare/match.h"
#include "analysis/compare/terms.h"
#include "core/text.h"
#include "core/units.h"

#define Z_95 1.959963984540054

const struct compare_metric_info COMPARE_METRIC_INFO[COMPARE_METRICS] = {
#define METRIC(constant, name, unit, better, energy, label, of) {name, unit, label, better, energy},
#define PRODUCT(constant, name, unit, better, energy, label, of, times)                            \
    {name, unit, label, better, energy},
#include "rundir/record.def"
};

const char *compare_verdict_text(enum compare_verdict verdict)
{
    static const char *const TEXTS[VERDICTS] = {"not known", "no evidence", "better",
                                                "worse",     "higher",      "lower"};
    return TEXTS[verdict];
}

/* ---- one metric ---- */

/* Right by one of the two and not by the other: the rest says nothing about which is better. */
static double mcnemar(const struct terms *terms)
{
    uint64_t only_a = 0, only_b = 0;
    for (size_t i = 0; i < terms->a_count; i++) {
        bool a = terms->a[i * CONTRAST_SUMS] > 0, b = terms->b[i * CONTRAST_SUMS] > 0;
        only_a += a && !b;
        only_b += b && !a;
    }
    return sign_test(only_b, only_a);
}

/* Both ends moved away from the value by a further standard deviation. */
static void widen(struct contrast_figure *figure, double sigma)
{
    figure->low = figure->value - hypot(figure->value - figure->low, 1.96 * sigma);
    figure->high = figure->value + hypot(figure->high - figure->value, 1.96 * sigma);
}

/* Sensors that are wrong in every query alike: in each value, and where they are not the same ones also in
 * the difference. */
static void add_calibration(double a_calibration, double b_calibration, bool same,
                            struct compared *out)
{
    double a = is_known(a_calibration) ? a_calibration * out->found.a : 0;
    double b = is_known(b_calibration) ? b_calibration * out->found.b : 0;
    out->a_plus_minus = hypot(out->found.a_error, a);
    out->b_plus_minus = hypot(out->found.b_error, b);
    if (same)
        return;
    double both = hypot(is_known(a_calibration) ? a_calibration : 0,
                        is_known(b_calibration) ? b_calibration : 0);
    widen(&out->found.difference, hypot(a, b));
    widen(&out->found.relative, both * fabs(1 + out->found.relative.value));
}

/* All or none right do not scatter, and are no surer for that: the standard error of Wilson's interval,
 * which is z^2 / (n + z^2) wide there, and of a product, what it makes of the second factor. */
static double edge_error(const double *terms, size_t count, bool product, double error)
{
    double sums[CONTRAST_SUMS] = {0}, questions = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t s = 0; s < CONTRAST_SUMS; s++)
            sums[s] += terms[i * CONTRAST_SUMS + s];
        questions += terms[i * CONTRAST_SUMS + 1] > 0;
    }
    if (!is_known(error) || (sums[0] != 0 && sums[0] != sums[1]))
        return error;
    double of_accuracy = Z_95 / (2 * (questions + Z_95 * Z_95));
    return hypot(error, of_accuracy * (product ? sums[2] / sums[3] : 1));
}

static bool is_of_accuracy(enum compare_metric metric)
{
    return metric == COMPARE_ACCURACY || metric == COMPARE_IPJ || metric == COMPARE_IPW;
}

static enum err compare_metric(const struct terms_run *a, const struct terms_run *b,
                               const struct match *match, enum compare_metric metric, uint64_t seed,
                               struct compared *out)
{
    struct terms terms;
    enum err err = terms_of(a, b, match, metric, &terms);
    if (err)
        return err;
    struct contrast_question question = {.a = {terms.a, terms.a_count},
                                         .b = {terms.b, terms.b_count},
                                         .paired = match->paired,
                                         .product = metric_is_product(metric),
                                         .seed = seed};
    err = contrast(&question, &out->found);
    if (!err && is_of_accuracy(metric)) {
        out->found.a_error =
            edge_error(terms.a, terms.a_count, question.product, out->found.a_error);
        out->found.b_error =
            edge_error(terms.b, terms.b_count, question.product, out->found.b_error);
    }
    out->a_queries = terms.a_queries;
    out->b_queries = terms.b_queries;
    out->a_plus_minus = out->found.a_error;
    out->b_plus_minus = out->found.b_error;
    if (is_known(out->found.p_value)) {
        out->test = match->paired ? "paired permutation" : "permutation";
        if (metric == COMPARE_ACCURACY && match->paired && !terms.repeats) {
            out->found.p_value = mcnemar(&terms);
            out->test = "McNemar, exact";
        }
    }
    if (!err && COMPARE_METRIC_INFO[metric].energy)
        add_calibration(run_calibration(a->table), run_calibration(b->table),
                        same_sensors(a->table, b->table), out);
    terms_release(&terms);
    return err;
}

/* ---- two runs ---- */

enum err compare_runs(const struct run_table *a, const struct run_table *b, uint64_t seed,
                      struct comparison *out, struct error *why)
{
    struct terms_run in_a = terms_run_of(a), in_b = terms_run_of(b);
    struct match match;
    *out = (struct comparison){0};
    str_copy(out->directory, sizeof out->directory, b->directory);
    str_copy(out->model, sizeof out->model, b->model);
    str_copy(out->hardware, sizeof out->hardware, run_fact_text(b, "hardware_label"));
    enum err err = match_runs(a, b, &match);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    out->paired = match.paired;
    out->same = match.same;
    out->pairs = match.paired ? match.a_count : 0;
    out->a_only = match.a_only;
    out->b_only = match.b_only;
    out->changed = match.changed;
    for (size_t i = 0; !err && i < COMPARE_METRICS; i++) {
        out->metrics[i].p_holm = UNKNOWN;
        err = compare_metric(&in_a, &in_b, &match, (enum compare_metric)i, seed + i,
                             &out->metrics[i]);
    }
    match_release(&match);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    fairness_check(a, b, out);
    return ERR_OK;
}

/* ---- all of them ---- */

static enum compare_verdict verdict_of(const struct compared *compared, enum compare_better better)
{
    const struct contrast_figure *difference = &compared->found.difference;
    if (!is_known(compared->p_holm))
        return VERDICT_UNKNOWN;
    bool apart = difference->low > 0 || difference->high < 0;
    if (!(compared->p_holm < COMPARE_ALPHA) || !apart)
        return VERDICT_NO_EVIDENCE;
    bool higher = difference->value > 0;
    if (better == BETTER_NEITHER)
        return higher ? VERDICT_HIGHER : VERDICT_LOWER;
    return higher == (better == BETTER_HIGHER) ? VERDICT_BETTER : VERDICT_WORSE;
}

enum err compare_judge(struct comparison *all, size_t count, struct error *why)
{
    double *p_values = malloc((count * COMPARE_METRICS + 1) * sizeof *p_values);
    if (!p_values)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    for (size_t i = 0; i < count * COMPARE_METRICS; i++)
        p_values[i] = all[i / COMPARE_METRICS].metrics[i % COMPARE_METRICS].found.p_value;
    holm_adjust(p_values, count * COMPARE_METRICS);
    for (size_t i = 0; i < count * COMPARE_METRICS; i++) {
        struct compared *compared = &all[i / COMPARE_METRICS].metrics[i % COMPARE_METRICS];
        compared->p_holm = p_values[i];
        compared->verdict = verdict_of(compared, COMPARE_METRIC_INFO[i % COMPARE_METRICS].better);
    }
    free(p_values);
    return ERR_OK;
}
