/* The ranking of runs by accuracy and energy. */
#include "analysis/across.h"

#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "stats/pareto.h"

static double joules_of(const struct run_figures *run)
{
    return run->point.joules_per_query;
}

/* ---- the best ---- */

static bool is_more_accurate(const struct run_figures *run, const struct run_figures *best)
{
    double accuracy = run->point.accuracy;
    if (!best || accuracy > best->point.accuracy)
        return true;
    return accuracy == best->point.accuracy && joules_of(run) < joules_of(best);
}

/* The best except `other`; for equal accuracies the cheaper one. */
static long most_accurate(const struct run_ranking *all, long other)
{
    long best = NO_RUN;
    for (size_t i = 0; i < all->count; i++) {
        const struct run_figures *run = &all->runs[i];
        if ((long)i != other && is_known(run->point.accuracy) &&
            is_more_accurate(run, best < 0 ? NULL : &all->runs[best]))
            best = (long)i;
    }
    return best;
}

static long least_energy(const struct run_ranking *all, long other)
{
    long best = NO_RUN;
    for (size_t i = 0; i < all->count; i++)
        if ((long)i != other && is_known(joules_of(&all->runs[i])) &&
            (best < 0 || joules_of(&all->runs[i]) < joules_of(&all->runs[best])))
            best = (long)i;
    return best;
}

/* ---- differences ---- */

/* Newcombe's interval for the difference of two proportions, from their own intervals. */
static enum difference accuracy_difference(const struct run_figures *more,
                                           const struct run_figures *less)
{
    double distance = hypot(more->point.accuracy - more->accuracy_low,
                            less->accuracy_high - less->point.accuracy);
    if (!is_known(distance))
        return DIFFERENCE_UNKNOWN;
    return more->point.accuracy - less->point.accuracy > distance ? DIFFERENCE_OUTSIDE
                                                                  : DIFFERENCE_INSIDE;
}

/* Errors are half-widths of 95 % CI, without the error common to both. */
static enum difference energy_difference(const struct run_figures *more,
                                         const struct run_figures *less)
{
    double distance = hypot(more->joules_per_query_error, less->joules_per_query_error);
    if (!is_known(more->joules_per_query_error) || !is_known(less->joules_per_query_error))
        return DIFFERENCE_UNKNOWN;
    return joules_of(more) - joules_of(less) > distance ? DIFFERENCE_OUTSIDE : DIFFERENCE_INSIDE;
}

/* ---- the ranking ---- */

static void rank_accuracy(struct run_ranking *all)
{
    all->accurate = most_accurate(all, NO_RUN);
    all->runner_up = most_accurate(all, all->accurate);
    if (all->runner_up >= 0)
        all->accuracy = accuracy_difference(&all->runs[all->accurate], &all->runs[all->runner_up]);
}

static void rank_energy(struct run_ranking *all)
{
    all->cheapest = least_energy(all, NO_RUN);
    all->as_cheap = NO_RUN;
    long next = least_energy(all, all->cheapest);
    bool other = all->accurate >= 0 && all->accurate != all->cheapest &&
                 is_known(joules_of(&all->runs[all->accurate]));
    all->dear = other ? all->accurate : next;
    if (all->cheapest < 0)
        return;
    const struct run_figures *cheapest = &all->runs[all->cheapest];
    if (all->dear >= 0)
        all->energy = energy_difference(&all->runs[all->dear], cheapest);
    if (next >= 0 && next != all->dear &&
        energy_difference(&all->runs[next], cheapest) != DIFFERENCE_OUTSIDE)
        all->as_cheap = next;
}

/* That of all runs with a known energy; a run whose records differ has the method "mixed". */
static const char *common_method(const struct run_ranking *all)
{
    const char *method = all->cheapest < 0 ? NULL : all->runs[all->cheapest].method;
    if (method && str_equal(method, "mixed"))
        return NULL;
    for (size_t i = 0; method && i < all->count; i++)
        if (is_known(joules_of(&all->runs[i])) && !str_equal(all->runs[i].method, method))
            method = NULL;
    return method;
}

static void name_and_mark(struct run_ranking *all, size_t letters)
{
    size_t count = all->count;
    const struct run_point **points = xmalloc((count + 1) * sizeof *points);
    double *figures = xmalloc((2 * count + 1) * sizeof *figures);
    for (size_t i = 0; i < count; i++) {
        points[i] = &all->runs[i].point;
        figures[i] = joules_of(&all->runs[i]);
        figures[count + i] = all->runs[i].point.accuracy;
    }
    pareto_mark(figures, figures + count, count, all->optimal);
    run_names_of(points, count, letters, &all->names);
    free((void *)points);
    free(figures);
}

void run_ranking_of(struct run_figures *runs, size_t count, size_t letters, struct run_ranking *out)
{
    *out = (struct run_ranking){
        .runs = runs, .count = count, .optimal = xcalloc(count + 1, sizeof *out->optimal)};
    out->common = run_figures_settle(runs, count);
    name_and_mark(out, letters);
    rank_accuracy(out);
    rank_energy(out);
    out->method = common_method(out);
}

void run_ranking_release(struct run_ranking *ranking)
{
    free(ranking->optimal);
    run_names_release(&ranking->names);
    *ranking = (struct run_ranking){0};
}
