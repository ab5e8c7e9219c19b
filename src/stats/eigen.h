/* Eigenvalues and eigenvectors of symmetric matrices, by Householder tridiagonalization and the implicit QL method; and
 * what follows from them: square roots of covariances, and the Fréchet distance of two normal distributions.  Matrices
 * are row-major.  Pure; memory that a call needs is freed before it returns. */
#ifndef IPW_STATS_EIGEN_H
#define IPW_STATS_EIGEN_H

#include <stddef.h>

#include "core/err.h"

/* The eigenvalues of a (size x size), ascending; row i of vectors, which may be NULL, is the unit eigenvector of value i.
 * a is not changed.  ERR_BAD_VALUE for elements that are not finite, and if the iteration does not converge. */
enum err eigen_symmetric(const double *a, size_t size, double *values, double *vectors) MUST_USE;

/* root = the symmetric square root of a; negative eigenvalues, which are rounding errors of a covariance, count as 0. */
enum err eigen_square_root(const double *a, size_t size, double *root) MUST_USE;

/* Mean and covariance (divisor count - 1) of `count` rows of `size` numbers; at least two rows. */
void covariance_of(const double *rows, size_t count, size_t size, double *mean, double *covariance);

struct normal_distribution {
    const double *mean, *covariance;
};

/* |m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2)), where the trace of the root is the sum of the roots of the eigenvalues of
 * S2^(1/2) S1 S2^(1/2).  transport, which may be NULL, becomes the matrix of the optimal transport from a to b: the
 * distance changes by tr((1 - transport) dS1) with S1; it is meaningful for covariances of full rank. */
enum err frechet_distance(const struct normal_distribution *a, const struct normal_distribution *b,
                          size_t size, double *distance, double *transport) MUST_USE;

#endif
