/* Pareto optimality of choices by cost and benefit.  Pure. */
#ifndef IPW_STATS_PARETO_H
#define IPW_STATS_PARETO_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

/* Sets optimal[i] where no other choice dominates it, that is, costs no more with no less benefit, and is strictly
 * better in one of the two.  Equal choices are optimal together; one with an unknown value is not. */
void pareto_mark(const double *cost, const double *benefit, size_t count, bool *optimal);

#endif
