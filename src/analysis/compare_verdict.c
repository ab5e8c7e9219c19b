/* Verdicts on the differences that compare.c found, and the words for them, which every view uses. */
#include <math.h>
#include <stdlib.h>

#include "analysis/compare.h"
#include "analysis/compare_quality.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"

const char *compare_verdict_text(enum compare_verdict verdict)
{
    static const char *const TEXTS[VERDICTS] = {
        [VERDICT_UNKNOWN] = "not known",     [VERDICT_NO_EVIDENCE] = "no evidence",
        [VERDICT_BETTER] = "better",         [VERDICT_WORSE] = "worse",
        [VERDICT_HIGHER] = "higher",         [VERDICT_LOWER] = "lower",
        [VERDICT_UNDECIDED] = "not decided", [VERDICT_NOT_COMPARABLE] = "not comparable",
    };
    return TEXTS[verdict];
}

/* ---- significance of several tests ---- */

/* The tests of all comparisons: of each metric of each; those of the plain p values, or of the final ones. */
struct family {
    struct comparison *all;
    size_t count;
    bool is_plain;
    double *p_values; /* scratch */
};

static bool is_primary(size_t test)
{
    return test % COMPARE_METRICS == COMPARE_ENERGY_PER_QUERY;
}

static struct compared *compared_at(const struct family *family, size_t test)
{
    return &family->all[test / COMPARE_METRICS].metrics[test % COMPARE_METRICS];
}

static double p_value_of(const struct family *family, size_t test)
{
    const struct compared *compared = compared_at(family, test);
    return family->is_plain ? compared->plain.p_value : compared->found.p_value;
}

static double *p_holm(const struct family *family, size_t test)
{
    struct compared *compared = compared_at(family, test);
    return family->is_plain ? &compared->plain.p_holm : &compared->p_holm;
}

/* Corrects the tests for which `wants` is true, and scales p such that `level` becomes COMPARE_ALPHA; the others stay.
 * Returns how many there are. */
static size_t correct(const struct family *family, bool (*wants)(size_t test), double level)
{
    size_t tests = 0, all = family->count * COMPARE_METRICS;
    for (size_t i = 0; i < all; i++) {
        family->p_values[i] = wants(i) ? p_value_of(family, i) : UNKNOWN;
        tests += is_known(family->p_values[i]);
    }
    holm_adjust(family->p_values, all);
    for (size_t i = 0; i < all; i++)
        if (wants(i) && is_known(family->p_values[i]))
            *p_holm(family, i) = fmin(1, family->p_values[i] * COMPARE_ALPHA / level);
    return tests;
}

static bool wants_other(size_t test)
{
    return !is_primary(test) && !compare_is_priced((enum compare_metric)(test % COMPARE_METRICS));
}

static bool wants_priced(size_t test)
{
    return compare_is_priced((enum compare_metric)(test % COMPARE_METRICS));
}

static bool all_primary_are_significant(const struct family *family)
{
    for (size_t i = COMPARE_ENERGY_PER_QUERY; i < family->count * COMPARE_METRICS;
         i += COMPARE_METRICS)
        if (*p_holm(family, i) >= COMPARE_ALPHA) /* without a test, its part of the level is free */
            return false;
    return true;
}

/* Returns the number of tests of the other metrics. */
static size_t correct_all(const struct family *family)
{
    (void)correct(family, is_primary, COMPARE_PRIMARY * COMPARE_ALPHA);
    double rest = all_primary_are_significant(family) ? 1 : 1 - COMPARE_PRIMARY;
    size_t tests = correct(family, wants_other, rest * COMPARE_ALPHA);
    (void)correct(family, wants_priced, rest * COMPARE_ALPHA / (double)(tests + 1));
    return tests;
}

static size_t correct_tests(struct comparison *all, size_t count)
{
    double *p_values = xmalloc((count * COMPARE_METRICS + 1) * sizeof *p_values);
    (void)correct_all(&(struct family){all, count, true, p_values});
    size_t tests = correct_all(&(struct family){all, count, false, p_values});
    free(p_values);
    return tests;
}

/* ---- verdicts ---- */

bool compare_is_blocked(const struct comparison *comparison, enum compare_metric metric)
{
    return comparison->conditions == CONDITIONS_DIFFER && COMPARE_METRIC_INFO[metric].energy;
}

/* Whether the difference is that of these runs, but may be no other than one that conditions cause. */
static bool is_explained(const struct compared *compared)
{
    const struct contrast_figure *difference = &compared->found.difference;
    return difference->low <= compared->shift_high && difference->high >= compared->shift_low &&
           (compared->shift_low < 0 || compared->shift_high > 0);
}

static enum compare_verdict verdict_of(const struct compared *compared, enum better better)
{
    const struct contrast_figure *difference = &compared->found.difference;
    if (!is_known(compared->p_holm))
        return VERDICT_UNKNOWN;
    bool apart = difference->low > 0 || difference->high < 0;
    bool is_significant = compared->p_holm < COMPARE_ALPHA && apart;
    if (!is_significant && !(compared->plain.p_holm < COMPARE_ALPHA))
        return VERDICT_NO_EVIDENCE;
    if (!is_significant)
        return is_explained(compared) ? VERDICT_NOT_COMPARABLE : VERDICT_UNDECIDED;
    bool higher = difference->value > 0;
    if (better == BETTER_NEITHER)
        return higher ? VERDICT_HIGHER : VERDICT_LOWER;
    return higher == (better == BETTER_HIGHER) ? VERDICT_BETTER : VERDICT_WORSE;
}

/* "up to +1.6 %", "-0.3 to +1.6 %" */
static void share_words(double low, double high, char *to, size_t size)
{
    if (low < 0 && high > 0)
        str_format(to, size, "%+.1f to %+.1f %%", 100 * low, 100 * high);
    else
        str_format(to, size, "up to %+.1f %%", 100 * (high > 0 ? high : low));
}

/* What conditions may explain: that nothing can be said about the energy, or how much was allowed for. */
static void warn_of_influence(struct comparison *comparison)
{
    const struct compare_influence *influence = &comparison->influence;
    const struct compared *energy = &comparison->metrics[COMPARE_ENERGY_PER_QUERY];
    bool is_ignored = comparison->conditions == CONDITIONS_IGNORED;
    char share[64];
    if (!influence->text[0] || comparison->conditions == CONDITIONS_DIFFER)
        return;
    share_words(influence->energy_low, influence->energy_high, share, sizeof share);
    if (energy->verdict == VERDICT_NOT_COMPARABLE)
        compare_warn_of(comparison, FINDING_NOT_COMPARABLE,
                        "energies are not comparable: %s, which may explain %s", influence->text,
                        share);
    else
        compare_warn_of(comparison, FINDING_CONDITIONS_DIFFER,
                        "%s, which may explain %s of the energy: verdicts %s", influence->text,
                        share, is_ignored ? "ignore it" : "allow for it");
}

static void correct_qualities(struct comparison *all, size_t count)
{
    double *p_values = xcalloc(count * SUMMARY_QUALITIES_MAX + 1, sizeof *p_values);
    size_t tests = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t q = 0; q < all[i].quality_count; q++)
            p_values[tests++] = all[i].qualities[q].p_value;
    holm_adjust(p_values, tests);
    tests = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t q = 0; q < all[i].quality_count; q++)
            all[i].qualities[q].p_holm = p_values[tests++];
    free(p_values);
}

enum compare_verdict compare_quality_verdict(const struct compared_quality *quality)
{
    const struct contrast_figure *difference = &quality->difference;
    if (!is_known(quality->p_holm) || !is_known(difference->value))
        return VERDICT_UNKNOWN;
    bool apart = difference->low > 0 || difference->high < 0;
    if (!(quality->p_holm < COMPARE_ALPHA) || !apart)
        return VERDICT_NO_EVIDENCE;
    bool higher = difference->value > 0;
    return higher == (quality->better == BETTER_HIGHER) ? VERDICT_BETTER : VERDICT_WORSE;
}

void compare_verdicts(struct comparison *all, size_t count)
{
    size_t tests = correct_tests(all, count);
    correct_qualities(all, count);
    for (size_t i = 0; i < count; i++) {
        for (size_t m = 0; m < COMPARE_METRICS; m++) {
            struct compared *compared = &all[i].metrics[m];
            compared->verdict = verdict_of(compared, COMPARE_METRIC_INFO[m].better);
            if (compared->verdict != VERDICT_UNKNOWN &&
                compare_is_blocked(&all[i], (enum compare_metric)m))
                compared->verdict = VERDICT_NOT_COMPARABLE;
        }
        warn_of_influence(&all[i]);
        compare_warn_few(&all[i], tests);
    }
}

/* ---- words ---- */

bool compare_is_single(const struct comparison *comparison)
{
    size_t repeats = 0;
    for (size_t i = 0; i < COMPARE_METRICS; i++)
        if (comparison->metrics[i].a_queries > repeats)
            repeats = comparison->metrics[i].a_queries;
    return comparison->a_runs == 1 && comparison->side.runs == 1 &&
           !(comparison->kind == RUN_KIND_RUN && repeats > 1);
}

/* "lower in this run by 9 %"; a metric of 0 has no relative difference. */
static void difference_words(const struct compared *compared, const char *where, char *to,
                             size_t size)
{
    double relative = compared->found.relative.value;
    const char *direction = compared->found.difference.value > 0 ? "higher" : "lower";
    if (is_known(relative))
        str_format(to, size, fabs(relative) < 0.995 ? "%s%s by %.2g %%" : "%s%s by %.0f %%",
                   direction, where, 100 * fabs(relative));
    else
        str_format(to, size, "%s%s", direction, where);
}

const char *compare_caveat(const struct comparison *comparison, enum compare_metric metric)
{
    switch (comparison->metrics[metric].verdict) {
    case VERDICT_UNKNOWN:
        return "not tested";
    case VERDICT_NO_EVIDENCE:
        return "no evidence of a difference";
    case VERDICT_NOT_COMPARABLE:
        return "conditions differ: not comparable";
    case VERDICT_UNDECIDED:
        if (compare_is_single(comparison))
            return "one run a side: not decided";
        return comparison->has_order
                   ? "runs also change in the order of their measurement: not decided"
                   : "not decided";
    default:
        return "";
    }
}

const char *compare_statement(const struct comparison *comparison, enum compare_metric metric,
                              char to[static STATEMENT_MAX])
{
    const struct compared *compared = &comparison->metrics[metric];
    const char *where = compare_is_single(comparison) ? " in this run" : " in these runs";
    const char *caveat = compare_caveat(comparison, metric);
    char words[80];
    switch (compared->verdict) {
    case VERDICT_BETTER:
    case VERDICT_WORSE:
        difference_words(compared, "", words, sizeof words);
        str_format(to, STATEMENT_MAX, "%s: %s", words, compare_verdict_text(compared->verdict));
        break;
    case VERDICT_HIGHER:
    case VERDICT_LOWER:
        difference_words(compared, "", to, STATEMENT_MAX);
        break;
    case VERDICT_UNDECIDED:
    case VERDICT_NOT_COMPARABLE:
        difference_words(compared, where, words, sizeof words);
        str_format(to, STATEMENT_MAX, "%s; %s", words, caveat);
        break;
    case VERDICT_NO_EVIDENCE:
        str_copy(to, STATEMENT_MAX, caveat);
        break;
    default:
        str_copy(to, STATEMENT_MAX, compare_verdict_text(compared->verdict));
    }
    return to;
}

/* ---- what p is based on ---- */

/* "5 % of each energy and time (assumed: ...)", "1.2 % of energy and 0.6 % of time (of 6 repeats ...)". */
static void spread_words(const struct run_spread *spread, char *to, size_t size)
{
    const char *of_time = spread->time_freedom < FREEDOM_ASSUMED ? "" : " (assumed)";
    if (!spread->runs)
        str_format(to, size,
                   "%.2g %% of each energy and time, assumed: the run index has no repeats of them",
                   100 * spread->energy);
    else
        str_format(to, size,
                   "%.2g %% of energy and %.2g %% of time%s, of %zu repeats in the run index",
                   100 * spread->energy, 100 * spread->time, of_time, spread->runs);
}

/* Of runs that alternated. */
static void series_words(const struct compare_series *series, char *to, size_t size)
{
    char looks[100] = "";
    if (series->until_decided)
        chars_format(looks,
                     ", which allow for a look after each pair of at most %zu (--until-decided)",
                     series->until_decided);
    str_format(to, size,
               "%zu pairs of runs that alternated: p and CI by a t-test of the differences within "
               "pairs%s.",
               series->pairs, looks);
}

const char *compare_basis(const struct comparison *comparison, char to[static BASIS_MAX])
{
    const char *order =
        comparison->has_order ? ", allowing for a trend in the order of measurement" : "";
    bool is_command = comparison->kind == RUN_KIND_RUN;
    char spread[160];
    to[0] = '\0';
    spread_words(&comparison->spread, spread, sizeof spread);
    if (comparison->series.pairs > 1)
        series_words(&comparison->series, to, BASIS_MAX);
    else if (compare_is_repeated(comparison))
        str_format(to, BASIS_MAX,
                   "Several runs per side: p and CI by Welch's t-test of the run means, from the "
                   "variation between runs%s.",
                   order);
    else if (comparison->a_runs + comparison->side.runs > 2)
        return to;
    else if (!compare_is_single(comparison))
        str_format(to, BASIS_MAX,
                   "p and CI by Welch's t-test, from the variation between the repeats (-r) of "
                   "each `ipw run`%s.",
                   order);
    else
        str_format(to, BASIS_MAX,
                   "One run a side: p and CI include the spread between runs, %s; repeat both "
                   "sides with %s N.",
                   spread, is_command ? "-r" : "--repeat-runs");
    return to;
}
