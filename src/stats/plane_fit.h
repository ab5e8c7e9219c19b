/* A plane through points by least squares: y = intercept + a x + b z.  Plain data, pure. */
#ifndef IPW_STATS_PLANE_FIT_H
#define IPW_STATS_PLANE_FIT_H

#include <stdbool.h>
#include <stddef.h>

struct plane_fit {
    size_t count; /* triples of which all are finite */
    double intercept, a, b;
    double intercept_error, a_error, b_error; /* standard errors; UNKNOWN under four triples */
    double r2;
};

/* False, with all but count UNKNOWN, where the points lie on a line or are fewer than three. */
bool plane_fit(const double *x, const double *z, const double *y, size_t count,
               struct plane_fit *out);

#endif
