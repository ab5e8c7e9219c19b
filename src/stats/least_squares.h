/* Least squares by Householder QR, which does not square the condition number as normal equations do; and
 * non-negative least squares (NNLS) by Lawson and Hanson's active-set method.  Matrices are row-major.  Memory that
 * a call needs is freed before it returns. */
#ifndef IPW_STATS_LEAST_SQUARES_H
#define IPW_STATS_LEAST_SQUARES_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* x[columns] minimizes |a x - b|.  ERR_BAD_VALUE where the columns are linearly dependent (or more than the rows): x
 * is not unique. */
enum err least_squares(const double *a, const double *b, size_t rows, size_t columns, double *x)
    MUST_USE;

/* The same subject to x >= 0.  Dependent columns get 0 where the others suffice to explain b. */
enum err least_squares_nonnegative(const double *a, const double *b, size_t rows, size_t columns,
                                   double *x) MUST_USE;

/* Standard deviations of x for a standard deviation of 1 in every b: sigmas[j] is the square root of element j of
 * the diagonal of the inverse of a'a.  ERR_BAD_VALUE as above. */
enum err least_squares_sigmas(const double *a, size_t rows, size_t columns, double *sigmas)
    MUST_USE;

/* Least absolute deviations: x minimizes the sum of |a x - b|, robust to outliers; by iteratively reweighted least
 * squares.  ERR_BAD_VALUE as above. */
enum err least_absolute(const double *a, const double *b, size_t rows, size_t columns, double *x)
    MUST_USE;

/* ---- conditioning of a system ---- */

/* An overdetermined system a x = b with few unknowns; it borrows its arrays. */
enum { LEAST_SQUARES_COLUMNS_MAX = 14 };

struct least_squares_system {
    size_t rows, columns;
    const double *a; /* rows x columns, row by row; columns scaled to length 1 */
    const double *b; /* rows */
    /* Rows are grouped into strata for the bootstrap: group g is rows first[g] to first[g + 1]. */
    const size_t *first;
    size_t groups;
};

/* Eigenvalues of the normal matrix. */
struct least_squares_spectrum {
    size_t columns;
    double values[LEAST_SQUARES_COLUMNS_MAX]; /* squares of the singular values */
    double vectors[LEAST_SQUARES_COLUMNS_MAX][LEAST_SQUARES_COLUMNS_MAX]; /* [column][value] */
    size_t largest, smallest;                                             /* indices */
};

void least_squares_spectrum_of(const struct least_squares_system *system,
                               struct least_squares_spectrum *out);

/* Largest over smallest singular value; INFINITY when columns are linearly dependent. */
double least_squares_spectrum_condition(const struct least_squares_spectrum *spectrum);

/* The two columns that are closest to collinear. */
void least_squares_spectrum_worst_pair(const struct least_squares_spectrum *spectrum, size_t *a,
                                       size_t *b);

/* Leverage of a row: the weight of its own b in its fitted value. */
double least_squares_spectrum_leverage(const struct least_squares_spectrum *spectrum,
                                       const double *row);

struct least_squares_intervals {
    double low[LEAST_SQUARES_COLUMNS_MAX],
        high[LEAST_SQUARES_COLUMNS_MAX]; /* 95 %, of the unknowns */
    double singular;                     /* share of the draws without a solution */
};

/* draws 0: depends on the size of the system, at most 2000. */
void least_squares_bootstrap(const struct least_squares_system *system, unsigned draws,
                             uint64_t seed, struct least_squares_intervals *out);

#endif
