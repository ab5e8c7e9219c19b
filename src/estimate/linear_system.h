/* An overdetermined linear system a x = b with few unknowns, and how well it determines them: the condition of
 * its columns, the leverage of its rows, and bootstrap intervals of the least-squares solution.  Pure functions;
 * a struct linear_system borrows its arrays. */
#ifndef IPW_ESTIMATE_LINEAR_SYSTEM_H
#define IPW_ESTIMATE_LINEAR_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { LINEAR_COLUMNS_MAX = 14 };

struct linear_system {
    size_t rows, columns;
    const double *a; /* rows x columns, row by row; columns scaled to length 1 */
    const double *b; /* rows */
    /* Rows are in groups that the bootstrap resamples separately: group g is rows first[g] to first[g + 1]. */
    const size_t *first;
    size_t groups;
};

/* Eigenvalues of the normal matrix. */
struct linear_spectrum {
    size_t columns;
    double values[LINEAR_COLUMNS_MAX];                      /* squares of the singular values */
    double vectors[LINEAR_COLUMNS_MAX][LINEAR_COLUMNS_MAX]; /* [column][value] */
    size_t largest, smallest;                               /* indices */
};

void linear_spectrum_of(const struct linear_system *system, struct linear_spectrum *out);

/* Largest over smallest singular value; INFINITY when columns are linearly dependent. */
double linear_spectrum_condition(const struct linear_spectrum *spectrum);

/* The two columns that are most nearly collinear. */
void linear_spectrum_worst_pair(const struct linear_spectrum *spectrum, size_t *a, size_t *b);

/* Leverage of a row of the matrix: the weight of its own b in its fitted value. */
double linear_spectrum_leverage(const struct linear_spectrum *spectrum, const double *row);

struct linear_intervals {
    double low[LINEAR_COLUMNS_MAX], high[LINEAR_COLUMNS_MAX]; /* 95 %, of the unknowns */
    double singular; /* share of the draws without a solution */
};

/* draws 0: as many as the size of the system allows, at most 2000. */
enum err linear_bootstrap(const struct linear_system *system, unsigned draws, uint64_t seed,
                          struct linear_intervals *out) MUST_USE;

#endif
