/* Descriptive statistics of numbers: moments, order statistics, a sketch of both for a stream of any length, density.
 * A struct online is plain data; a struct sketch owns memory.  Zero-initialize both; release the sketch. */
#ifndef IPW_STATS_DESCRIPTIVE_H
#define IPW_STATS_DESCRIPTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* ---- moments ---- */

/* By Welford's recurrence, which does not cancel where a sum of squares does (a counter's watts differ in the fourth
 * digit). */
struct online {
    uint64_t count;
    double mean;    /* of the values so far; meaningless while count is 0 */
    double squares; /* sum of squared distances from the mean */
    double min;
    double max;
};

/* Adds one value.  UNKNOWN (or infinite) is not a value: it is left out and not counted. */
void online_add(struct online *stats, double value);

/* UNKNOWN without a value. */
double online_mean(const struct online *stats);
double online_min(const struct online *stats);
double online_max(const struct online *stats);

/* Of the sample (divided by n - 1); UNKNOWN under two values. */
double online_stddev(const struct online *stats);

/* Of the mean: stddev / sqrt(n). */
double online_standard_error(const struct online *stats);

/* ---- order statistics ---- */

/* Quantiles by linear interpolation, and sorting of doubles.  Quantile p of n sorted values is
 * at position p (n - 1), counted from 0, between the two values around it (NumPy's "linear", R's type 7).
 * What cannot be answered (no value, p outside 0..1, no memory) is UNKNOWN. */

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

/* ---- a stream in bounded memory ---- */

/* Exact for the first few thousand values, then a histogram with bins of one per cent.  For values of 0 and
 * more: times, tokens, joules. */
struct sketch {
    struct online moments;
    double *exact;  /* the first values, until there are too many */
    uint64_t *bins; /* NULL until then */
};

enum err sketch_add(struct sketch *sketch, double value) MUST_USE;

/* As quantile() while exact, then within half a per cent.  UNKNOWN without a value. */
double sketch_quantile(const struct sketch *sketch, double p);
void sketch_release(struct sketch *sketch);

/* ---- the density of a sample, by Gaussian kernels ---- */

/* Silverman's rule as the Python IPW has it: 0.9 x sample standard deviation x n^(-1/5).  UNKNOWN under two finite
 * values, or where all are equal. */
double kde_bandwidth(const double *values, size_t count);

/* density[i] at at[i], of the finite values.  Up to KDE_EXACT values each has its own kernel; more are first binned
 * on a grid of KDE_GRID points, each value split between its two neighbors, which changes the density by less than
 * a thousandth of its peak.  ERR_NO_DATA where there is no bandwidth. */
enum { KDE_EXACT = 20000, KDE_GRID = 4096 };
enum err kde(const double *values, size_t count, const double *at, size_t points, double *density)
    MUST_USE;

#endif
