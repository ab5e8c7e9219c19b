/* Order statistics without sorting all: the array is the caller's and is put into another order.
 * Values must be finite.  Pure. */
#ifndef IPW_STATS_SELECT_H
#define IPW_STATS_SELECT_H

#include <stddef.h>

/* The value that would stand at `rank` (from 0) in ascending order; smaller ones stand before it
 * afterwards, larger ones behind. */
double select_rank(double *values, size_t count, size_t rank);

/* As quantile_sorted, of an array in any order; UNKNOWN without a value. */
double select_quantile(double *values, size_t count, double p);
double select_median(double *values, size_t count);

/* Several at once, which must ascend: each looks only at what lies above the one before. */
void select_quantiles(double *values, size_t count, const double *ps, size_t p_count, double *out);

/* Ascending. */
void sort_ascending(double *values, size_t count);

#endif
