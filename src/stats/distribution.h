/* Student's t, and the density of a sample by Gaussian kernels.  Memory that a call needs is
 * freed before it returns. */
#ifndef IPW_STATS_DISTRIBUTION_H
#define IPW_STATS_DISTRIBUTION_H

#include <stddef.h>

#include "core/err.h"

/* Student's t with `freedom` degrees (more than 0): the two-sided tail probability beyond |t|, and the t whose
 * two-sided tail probability is `outside` (in 0..1).  UNKNOWN for anything else. */
double student_outside(double t, double freedom);
double student_quantile(double outside, double freedom);

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
