#include "power/repeat_scatter.h"

#include <math.h>

#include "stats/distribution.h"
#include "core/units.h"

#define COPY_TOLERANCE 1e-9 /* relative: closer measurements are copies, not repeats */

/* Pooled over all points with repeats.  Copies of one measurement are ignored. */
static double pooled(const struct optimize_point *points, size_t count, enum freq_figure figure,
                     double *freedom)
{
    double squares = 0;
    *freedom = 0;
    for (size_t i = 0; i < count; i++) {
        const struct optimize_point *point = &points[i];
        if (point->runs < 2 || !is_known(point->scatter[figure]))
            continue;
        squares += (point->runs - 1) * point->scatter[figure] * point->scatter[figure];
        *freedom += point->runs - 1;
    }
    if (!(squares > *freedom * COPY_TOLERANCE * COPY_TOLERANCE))
        *freedom = 0;
    return *freedom > 0 ? sqrt(squares / *freedom) : UNKNOWN;
}

struct repeat_scatter repeat_scatter_of(const struct optimize_point *points, size_t count,
                                        size_t usable)
{
    struct repeat_scatter scatter = {.t = UNKNOWN};
    double unused, others = usable > 2 ? (double)(usable - 1) : 1;
    scatter.energy = pooled(points, count, FREQ_ENERGY_J, &scatter.freedom);
    scatter.time = pooled(points, count, FREQ_TIME_S, &unused);
    if (scatter.freedom > 0)
        scatter.t = student_quantile((1 - FREQ_LEVEL) / others, scatter.freedom);
    return scatter;
}

double repeat_scatter_apart(const struct repeat_scatter *scatter, const struct optimize_goal *goal,
                            unsigned runs, unsigned other_runs)
{
    if (!(scatter->freedom > 0) || !runs || !other_runs)
        return UNKNOWN;
    double time = known_or(scatter->time, 0);
    /* A slow run also uses more energy: the two errors do not cancel. */
    double one = goal->is_time_only ? time : scatter->energy + goal->time_exponent * time;
    return scatter->t * one * sqrt(1.0 / runs + 1.0 / other_runs);
}
