/* The ranking of settings by accuracy and energy.  Whether the next ones differ from the best is what `ipw compare` says of
 * them, with the best as the baseline. */
#include "analysis/across.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/compare_set.h"
#include "analysis/quality_axis.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/pareto.h"

enum { TESTED_MAX = 8 }; /* settings next to the best: a test reads their records */

static double joules_of(const struct run_figures *run)
{
    return run->point.joules_per_query;
}

/* ---- the best ---- */

static bool is_more_accurate(const struct run_figures *run, const struct run_figures *best)
{
    double accuracy = run->point.accuracy;
    if (!best || accuracy > best->point.accuracy)
        return is_known(accuracy);
    return accuracy == best->point.accuracy && joules_of(run) < joules_of(best);
}

static bool is_cheaper(const struct run_figures *run, const struct run_figures *best)
{
    return is_known(joules_of(run)) && (!best || joules_of(run) < joules_of(best));
}

typedef bool is_better_fn(const struct run_figures *run, const struct run_figures *best);

/* The best of those that are not taken yet. */
static long best_of(const struct run_settings *settings, is_better_fn *is_better, const bool *taken)
{
    long best = NO_SETTING;
    for (size_t i = 0; i < settings->count; i++)
        if (!taken[i] && is_better(&settings->means[i], best < 0 ? NULL : &settings->means[best]))
            best = (long)i;
    return best;
}

/* ---- tests ---- */

/* The sides of a comparison: settings in an order of their own. */
struct sides {
    struct compare_groups groups;
    size_t settings[TESTED_MAX + 1], directories;
};

static void add_side(struct sides *sides, const struct compare_groups *all, size_t setting)
{
    const char *const *from = all->directories;
    for (size_t s = 0; s < setting; s++)
        from += all->runs[s];
    for (size_t i = 0; i < all->runs[setting]; i++)
        sides->groups.directories[sides->directories++] = from[i];
    sides->settings[sides->groups.count] = setting;
    sides->groups.runs[sides->groups.count++] = all->runs[setting];
}

static void take_verdicts(const struct sides *sides, const struct compare_set *set,
                          enum compare_metric metric, struct standing *out)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct comparison *comparison = &set->comparisons[i];
        enum compare_verdict verdict = comparison->metrics[metric].verdict;
        out->of[sides->settings[i + 1]] =
            (struct stand){verdict == VERDICT_NO_EVIDENCE || verdict == VERDICT_UNDECIDED,
                           compare_caveat(comparison, metric)};
    }
}

static void test_sides(const struct sides *sides, const char *model, enum compare_metric metric,
                       struct standing *out)
{
    struct compare_set set;
    const struct compare_options options = {.model = model, .only = UINT32_C(1) << metric};
    if (compare_set_load(&sides->groups, &options, &set, NULL))
        return;
    take_verdicts(sides, &set, metric, out);
    compare_set_release(&set);
}

static void rank(const struct run_settings *settings, const struct compare_groups *groups,
                 const char *model, is_better_fn *is_better, enum compare_metric metric,
                 struct standing *out)
{
    size_t count = settings->count, runs = 0;
    bool *taken = xcalloc(count + 1, sizeof *taken);
    *out = (struct standing){NO_SETTING, NO_SETTING, xcalloc(count + 1, sizeof *out->of)};
    for (size_t i = 0; i < count; i++) {
        out->of[i].caveat = "not tested";
        runs += groups->runs[i];
    }
    struct sides sides = {
        .groups = {.directories = xcalloc(runs + 1, sizeof *sides.groups.directories),
                   .runs = xcalloc(count + 1, sizeof *sides.groups.runs)}};
    long best = best_of(settings, is_better, taken);
    out->best = best;
    for (size_t i = 0; i <= TESTED_MAX && best >= 0; i++) {
        if (i == 1)
            out->next = best;
        taken[best] = true;
        add_side(&sides, groups, (size_t)best);
        best = best_of(settings, is_better, taken);
    }
    if (sides.groups.count > 1)
        test_sides(&sides, model, metric, out);
    compare_groups_release(&sides.groups);
    free(taken);
}

/* ---- the ranking ---- */

/* That of all settings with a known energy; a run whose records differ has the method "mixed". */
static const char *common_method(const struct run_settings *settings, long cheapest)
{
    const char *method = cheapest < 0 ? NULL : settings->means[cheapest].method;
    if (method && str_equal(method, "mixed"))
        return NULL;
    for (size_t i = 0; method && i < settings->count; i++)
        if (is_known(joules_of(&settings->means[i])) &&
            !str_equal(settings->means[i].method, method))
            method = NULL;
    return method;
}

static bool is_first_of_dataset(const struct run_point *const *points, size_t of)
{
    for (size_t i = 0; i < of; i++)
        if (str_equal(points[i]->dataset, points[of]->dataset))
            return false;
    return true;
}

static size_t count_datasets(const struct run_point *const *points, size_t count)
{
    size_t datasets = 0;
    for (size_t i = 0; i < count; i++)
        datasets += is_first_of_dataset(points, i);
    return datasets;
}

static void mark_dataset(const struct quality_axis *axis, const struct run_point *const *points,
                         size_t count, const char *dataset, double *figures, bool *optimal)
{
    bool *marks = xcalloc(count + 1, sizeof *marks);
    for (size_t i = 0; i < count; i++) {
        bool is_its = str_equal(points[i]->dataset, dataset);
        figures[i] = is_its ? points[i]->joules_per_query : UNKNOWN;
        figures[count + i] = is_its ? quality_axis_benefit(axis, points[i]) : UNKNOWN;
    }
    pareto_mark(figures, figures + count, count, marks);
    for (size_t i = 0; i < count; i++)
        optimal[i] |= marks[i];
    free(marks);
}

void run_points_mark(const struct quality_axis *axis, const struct run_point *const *points,
                     size_t count, bool *optimal)
{
    double *figures = xmalloc((2 * count + 1) * sizeof *figures);
    memset(optimal, 0, count * sizeof *optimal);
    for (size_t i = 0; i < count; i++)
        if (is_first_of_dataset(points, i))
            mark_dataset(axis, points, count, points[i]->dataset, figures, optimal);
    free(figures);
}

static void name_and_mark(struct run_ranking *all, size_t letters)
{
    size_t count = all->settings->count;
    const struct run_point **points = xmalloc((count + 1) * sizeof *points);
    struct quality_axis axis;
    quality_axis_of(all->settings->means, count, &axis);
    for (size_t i = 0; i < count; i++)
        points[i] = &all->settings->means[i].point;
    all->datasets = count_datasets(points, count);
    run_points_mark(&axis, points, count, all->optimal);
    run_names_of(points, count, letters, &all->names);
    free((void *)points);
}

/* Nothing is the best of all. */
static void rank_none(size_t count, struct standing *out)
{
    *out = (struct standing){NO_SETTING, NO_SETTING, xcalloc(count + 1, sizeof *out->of)};
    for (size_t i = 0; i < count; i++)
        out->of[i].caveat = "not tested";
}

void run_ranking_of(const struct run_settings *settings, const struct compare_groups *groups,
                    const char *model, size_t letters, struct run_ranking *out)
{
    *out = (struct run_ranking){.settings = settings,
                                .optimal = xcalloc(settings->count + 1, sizeof *out->optimal)};
    name_and_mark(out, letters);
    if (out->datasets > 1) {
        rank_none(settings->count, &out->accuracy);
        rank_none(settings->count, &out->energy);
        return;
    }
    rank(settings, groups, model, is_more_accurate, COMPARE_ACCURACY, &out->accuracy);
    rank(settings, groups, model, is_cheaper, COMPARE_ENERGY_PER_QUERY, &out->energy);
    out->method = common_method(settings, out->energy.best);
}

void run_ranking_release(struct run_ranking *ranking)
{
    free(ranking->optimal);
    free(ranking->accuracy.of);
    free(ranking->energy.of);
    run_names_release(&ranking->names);
    *ranking = (struct run_ranking){0};
}
