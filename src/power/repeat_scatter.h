/* How far measured settings must be apart to be distinguished: the only test of it, for the best of a sweep in reports,
 * for a recommendation, and for the ± of a saving.  A few repeats determine the scatter of one setting poorly, so that of
 * all settings is pooled; and the best of many noisy settings looks better than it is, so a difference must hold for all
 * of them at once (Bonferroni).  Nothing to own. */
#ifndef IPW_POWER_REPEAT_SCATTER_H
#define IPW_POWER_REPEAT_SCATTER_H

#include <stddef.h>

#include "power/optimize.h"

struct repeat_scatter {
    double energy, time; /* relative scatter of a single run, pooled; UNKNOWN without repeats */
    double freedom;      /* degrees of freedom of the energy's; 0: no repeats */
    double t;            /* Student's t for all comparisons with one of the settings */
};

/* usable: the number of settings that are compared. */
struct repeat_scatter repeat_scatter_of(const struct optimize_point *points, size_t count,
                                        size_t usable);

/* The relative difference of the objective up to which two settings with so many runs cannot be distinguished; UNKNOWN
 * without repeats. */
double repeat_scatter_apart(const struct repeat_scatter *scatter, const struct optimize_goal *goal,
                            unsigned runs, unsigned other_runs);

#endif
