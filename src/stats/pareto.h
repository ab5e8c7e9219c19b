/* The Pareto frontier: of several choices, those that no other beats.  Pure. */
#ifndef IPW_STATS_PARETO_H
#define IPW_STATS_PARETO_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

/* Sets on[i] where no other choice costs as little and is worth as much, and more in one of the two:
 * cost[i] is better smaller, worth[i] better larger.  Equal choices are on it together; one of which
 * either figure is unknown is not. */
enum err pareto_mark(const double *cost, const double *worth, size_t count, bool *on) MUST_USE;

#endif
