/* A straight line through points by least squares, with what it is worth.  Plain data, pure. */
#ifndef IPW_STATS_LINEAR_FIT_H
#define IPW_STATS_LINEAR_FIT_H

#include <stdbool.h>
#include <stddef.h>

struct linear_fit {
    size_t count; /* pairs of which both are finite */
    double slope, intercept;
    double r2;                            /* 1 - residual / total squares; 1 when y is constant */
    double slope_error, intercept_error;  /* standard errors; UNKNOWN under three pairs */
    double residual;                      /* standard deviation about the line */
    double slope_low, slope_high;         /* 95 % interval, by Student's t */
    double intercept_low, intercept_high; /* likewise */
    double p_value;                       /* of a slope as far from 0 as this, were there none */
};

/* y = intercept + slope x.  False, with all but count UNKNOWN, under two pairs or two different x. */
bool linear_fit(const double *x, const double *y, size_t count, struct linear_fit *out);

/* The same of the natural logarithms: of x alone, or of both (y = exp(intercept) x^slope).  Pairs with
 * a logarithm that is none are left out. */
enum linear_logs { LINEAR_PLAIN, LINEAR_LOG_X, LINEAR_LOG_LOG };
bool linear_fit_logs(const double *x, const double *y, size_t count, enum linear_logs logs,
                     struct linear_fit *out);

#endif
