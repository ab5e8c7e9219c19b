/* Rank correlation: Spearman's rho and Kendall's tau-b.  Against the order of time the latter is the Mann-Kendall
 * test for a trend.  Pairs with a value that is not finite are left out.  Memory that a call needs is freed before
 * it returns. */
#ifndef IPW_STATS_CORRELATION_H
#define IPW_STATS_CORRELATION_H

#include <stddef.h>

#include "core/err.h"

struct correlation {
    size_t count;   /* pairs */
    double value;   /* -1 .. 1; UNKNOWN where one of the two is constant */
    double p_value; /* two-sided, of no correlation; UNKNOWN under three pairs */
};

/* Equal values share the mean of their ranks. */
enum err spearman(const double *x, const double *y, size_t count, struct correlation *out) MUST_USE;

/* In n log n; p by the normal approximation, with the variance corrected for ties. */
enum err kendall(const double *x, const double *y, size_t count, struct correlation *out) MUST_USE;

#endif
