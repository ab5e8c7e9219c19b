/* Theil's and Sen's line: the median of the slopes between all pairs of points, which outliers do not
 * move.  Pure but for memory of its own, which it gives back. */
#ifndef IPW_STATS_THEIL_SEN_H
#define IPW_STATS_THEIL_SEN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct theil_sen {
    size_t count, pairs;     /* points; pairs of different x that were looked at */
    bool drawn;              /* of too many pairs, some by lot */
    double slope, intercept; /* intercept = median(y) - slope median(x); UNKNOWN without a pair */
};

/* All pairs of up to THEIL_SEN_EXACT points.  Of more points, THEIL_SEN_DRAWN pairs are drawn, always
 * the same for the same points: the slope then has an error of its own, of about 1.25 / sqrt(pairs) of
 * the slopes' spread; and of more points than that the medians are of every so-many-th. */
enum { THEIL_SEN_EXACT = 1000, THEIL_SEN_DRAWN = 200000 };
enum err theil_sen(const double *x, const double *y, size_t count, struct theil_sen *out) MUST_USE;

#endif
