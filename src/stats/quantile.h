/* Order statistics: quantiles by linear interpolation, and sorting of doubles.  Quantile p of n sorted values is
 * at position p (n - 1), counted from 0, between the two values around it (NumPy's "linear", R's type 7).
 * What cannot be answered (no value, p outside 0..1, no memory) is UNKNOWN.  Pure. */
#ifndef IPW_STATS_QUANTILE_H
#define IPW_STATS_QUANTILE_H

#include <stddef.h>

/* Of the finite values; the array is not changed. */
double quantile(const double *values, size_t count, double p);

/* A range that holds the quantile p of what an ascending, finite array was drawn from, with probability `level` or more:
 * order statistics by the binomial distribution, whatever the distribution is.  An end beyond the values is UNKNOWN. */
void quantile_interval(const double *ascending, size_t count, double p, double level, double *low,
                       double *high);
/* How many values it takes for an upper end. */
size_t quantile_least_count(double p, double level);

/* Relative standard deviation of values (which may be UNKNOWN), made so that / sqrt(count) gives the standard error of
 * their median.  UNKNOWN under two. */
double relative_scatter(const double *values, size_t count);

/* Several at once for the price of one sort: out[i] is the quantile at ps[i]. */
void quantiles(const double *values, size_t count, const double *ps, size_t p_count, double *out);

/* Of an array that is ascending and finite: no copy, no allocation. */
double quantile_sorted(const double *ascending, size_t count, double p);

/* Of a finite array, which is reordered instead of sorted: linear time and no copy.  The ps must ascend. */
void select_quantiles(double *values, size_t count, const double *ps, size_t p_count, double *out);
double select_median(double *values, size_t count);

/* The value that a new one of the same kind is at most with probability `level`, as split conformal prediction has it:
 * the ceil(level (n + 1))-th of n, at most the largest.  The array is sorted.  UNKNOWN without a value. */
double conformal_quantile(double *values, size_t count, double level);

/* Puts finite values into ascending order. */
void sort_ascending(double *values, size_t count);

#endif
