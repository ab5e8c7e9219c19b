/* Rank correlation: Spearman's rho and Kendall's tau-b.  With time as x the latter is the Mann-Kendall trend test.
 * Pairs with a value that is not finite are ignored.  Memory that a call needs is freed before it returns. */
#ifndef IPW_STATS_CORRELATION_H
#define IPW_STATS_CORRELATION_H

#include <stddef.h>

struct correlation {
    size_t count;   /* pairs */
    double value;   /* -1 .. 1; UNKNOWN where x or y is constant */
    double p_value; /* two-sided, of no correlation; UNKNOWN for fewer than three pairs */
};

/* Ties get their mean rank. */
void spearman(const double *x, const double *y, size_t count, struct correlation *out);

/* In O(n log n); p by the normal approximation, with the variance corrected for ties. */
void kendall(const double *x, const double *y, size_t count, struct correlation *out);

#endif
