/* Descriptive statistics: moments, order statistics, a quantile sketch for streams of any length, kernel density.  A
 * struct online is plain data; a struct sketch owns memory.  Zero-initialize both; release the sketch. */
#ifndef IPW_STATS_DESCRIPTIVE_H
#define IPW_STATS_DESCRIPTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* ---- moments ---- */

/* Welford's algorithm, which avoids the cancellation of a sum of squares (watts that differ in the fourth digit). */
struct online {
    uint64_t count;
    double mean;    /* of the values so far; meaningless while count is 0 */
    double squares; /* sum of squared distances from the mean */
    double min;
    double max;
};

/* Adds one value.  UNKNOWN and infinite values are ignored and not counted. */
void online_add(struct online *stats, double value);
struct online online_of(const double *values, size_t count);

/* UNKNOWN without a value. */
double online_mean(const struct online *stats);
double online_min(const struct online *stats);
double online_max(const struct online *stats);

/* The mean of values that are all known, as their sum over their count; UNKNOWN without a value. */
double mean_of(const double *values, size_t count);

/* Sample standard deviation (n - 1); UNKNOWN for fewer than two values. */
double online_stddev(const struct online *stats);

/* Standard error of the mean: stddev / sqrt(n). */
double online_standard_error(const struct online *stats);

/* ---- order statistics ---- */

/* Quantiles by linear interpolation, and sorting of doubles.  Quantile p of n sorted values is at position p (n -
 * 1), counted from 0, between the two adjacent values (NumPy's "linear", R's type 7).  UNKNOWN without a value, for
 * p outside 0..1 or out of memory. */

/* Of the finite values; the array is not changed. */
double quantile(const double *values, size_t count, double p);

/* Distribution-free confidence interval of quantile p of the population of an ascending, finite sample, with
 * confidence `level` or more: order statistics by the binomial distribution.  An end outside the sample is UNKNOWN. */
void quantile_interval(const double *ascending, size_t count, double p, double level, double *low,
                       double *high);
/* Minimum sample size for which the upper end is known. */
size_t quantile_min_count(double p, double level);

/* Relative standard deviation of values (which may be UNKNOWN), scaled so that dividing by sqrt(count) gives the
 * standard error of their median.  UNKNOWN for fewer than two. */
double relative_scatter(const double *values, size_t count);

/* Several quantiles with one sort: out[i] is the quantile at ps[i]. */
void quantiles(const double *values, size_t count, const double *ps, size_t p_count, double *out);

/* Of an array that is ascending and finite: no copy, no allocation. */
double quantile_sorted(const double *ascending, size_t count, double p);

/* Of a finite array, which is reordered instead of sorted: linear time and no copy.  The ps must ascend. */
void select_quantiles(double *values, size_t count, const double *ps, size_t p_count, double *out);
double select_median(double *values, size_t count);

/* Split conformal prediction: the bound that a new value of the same distribution does not exceed with probability
 * `level`: the ceil(level (n + 1))-th of n values, at most the largest.  Sorts the array.  UNKNOWN without a value. */
double conformal_quantile(double *values, size_t count, double level);

/* Puts finite values into ascending order. */
void sort_ascending(double *values, size_t count);

/* ---- streaming quantiles in bounded memory ---- */

/* Exact for the first few thousand values, then a histogram with bins of one percent.  For non-negative values:
 * times, tokens, joules. */
struct sketch {
    struct online moments;
    double *exact;  /* the first values, until there are too many */
    uint64_t *bins; /* NULL until then */
};

enum err sketch_add(struct sketch *sketch,
                    double value); /* fails only in libipw, for lack of memory */

/* As quantile() while exact, then within half a percent.  UNKNOWN without a value. */
double sketch_quantile(const struct sketch *sketch, double p);
void sketch_release(struct sketch *sketch);

/* ---- kernel density estimation with Gaussian kernels ---- */

/* Silverman's rule as in the Python IPW: 0.9 x sample standard deviation x n^(-1/5).  UNKNOWN for fewer than two
 * finite values, or where all are equal. */
double kde_bandwidth(const double *values, size_t count);

/* density[i] at at[i], of the finite values.  Up to KDE_EXACT values have a kernel each; more are first binned on a
 * grid of KDE_GRID points (linear binning), which changes the density by less than a thousandth of its peak.
 * ERR_NO_DATA without a bandwidth. */
enum { KDE_EXACT = 20000, KDE_GRID = 4096 };
enum err kde(const double *values, size_t count, const double *at, size_t points, double *density)
    MUST_USE;

#endif
