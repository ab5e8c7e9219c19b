/* Quantiles by linear interpolation: quantile p of n sorted values stands at position p (n - 1),
 * counted from 0, between the two values around it (the definition that NumPy and R call linear
 * and type 7).  Values that are UNKNOWN or infinite are left out.  The caller's array is never
 * changed; what cannot be answered (no value, p outside 0..1, no memory) is UNKNOWN. */
#ifndef IPW_STATS_QUANTILE_H
#define IPW_STATS_QUANTILE_H

#include <stddef.h>

double quantile(const double *values, size_t count, double p);
double median(const double *values, size_t count);

/* Several at once for the price of one sort: out[i] is the quantile at ps[i]. */
void quantiles(const double *values, size_t count, const double *ps, size_t p_count, double *out);

/* On an array that is already ascending and finite: no copy, no allocation. */
double quantile_sorted(const double *ascending, size_t count, double p);

#endif
