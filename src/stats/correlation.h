/* How two figures go together: Pearson's r, Spearman's rank correlation, Kendall's tau-b.  Against the
 * order of time the last is the Mann-Kendall test for a trend.  Pairs of which one is not finite are
 * left out.  Pure but for memory of their own, which they give back. */
#ifndef IPW_STATS_CORRELATION_H
#define IPW_STATS_CORRELATION_H

#include <stddef.h>

#include "core/err.h"

struct correlation {
    size_t count; /* pairs */
    double value; /* -1 .. 1; UNKNOWN where one of the two never differs */
    double
        p_value; /* of one as far from 0, were there none: two-sided; UNKNOWN under three pairs */
};

enum err pearson(const double *x, const double *y, size_t count, struct correlation *out) MUST_USE;

/* Equal values share the mean of their ranks. */
enum err spearman(const double *x, const double *y, size_t count, struct correlation *out) MUST_USE;

/* In n log n; p by the normal distribution, with the variance that ties leave. */
enum err kendall(const double *x, const double *y, size_t count, struct correlation *out) MUST_USE;

#endif
