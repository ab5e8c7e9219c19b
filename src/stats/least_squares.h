/* Least squares by Householder's reflections, which do not square the condition of the matrix as
 * normal equations do; and the same with every unknown held at 0 or above, by Lawson's and Hanson's
 * active sets.  Matrices are row-major.  Pure but for memory of their own, which they give back. */
#ifndef IPW_STATS_LEAST_SQUARES_H
#define IPW_STATS_LEAST_SQUARES_H

#include <stddef.h>

#include "core/err.h"

/* x[columns] minimises |a x - b|.  ERR_BAD_VALUE where the columns depend on one another (or are more
 * than the rows): no x is the one. */
enum err least_squares(const double *a, const double *b, size_t rows, size_t columns, double *x)
    MUST_USE;

/* The same over x >= 0.  Columns that depend on others get 0 as far as the others explain b. */
enum err least_squares_positive(const double *a, const double *b, size_t rows, size_t columns,
                                double *x) MUST_USE;

/* What a standard deviation of 1 in every b makes of x: sigmas[j] is the root of element j of the
 * diagonal of the inverse of a'a.  ERR_BAD_VALUE as above. */
enum err least_squares_sigmas(const double *a, size_t rows, size_t columns, double *sigmas)
    MUST_USE;

#endif
