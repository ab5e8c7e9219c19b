/* Least squares by Householder reflections, which do not square the condition number as normal equations do; and
 * with every unknown held at 0 or above (NNLS), by Lawson and Hanson's active sets.  Matrices are row-major.
 * Memory that a call needs is freed before it returns. */
#ifndef IPW_STATS_LEAST_SQUARES_H
#define IPW_STATS_LEAST_SQUARES_H

#include <stddef.h>

#include "core/err.h"

/* x[columns] minimizes |a x - b|.  ERR_BAD_VALUE where the columns are linearly dependent (or more than the rows):
 * x is not unique. */
enum err least_squares(const double *a, const double *b, size_t rows, size_t columns, double *x)
    MUST_USE;

/* The same over x >= 0.  Dependent columns get 0 as far as the others explain b. */
enum err least_squares_positive(const double *a, const double *b, size_t rows, size_t columns,
                                double *x) MUST_USE;

/* Standard deviations of x for a standard deviation of 1 in every b: sigmas[j] is the square root of element j of
 * the diagonal of the inverse of a'a.  ERR_BAD_VALUE as above. */
enum err least_squares_sigmas(const double *a, size_t rows, size_t columns, double *sigmas)
    MUST_USE;

#endif
