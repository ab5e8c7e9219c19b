/* Linear fits: least squares with standard errors for lines and planes, and the robust Theil-Sen line.  Points with
 * a coordinate that is not finite are ignored.  Results are plain data; memory that a fit needs is freed before it
 * returns. */
#ifndef IPW_STATS_FIT_H
#define IPW_STATS_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct linear_fit {
    size_t count; /* points with finite coordinates */
    double slope, intercept;
    double r2;                            /* 1 - residual / total squares; 1 when y is constant */
    double slope_error, intercept_error;  /* standard errors; UNKNOWN for fewer than three points */
    double residual;                      /* standard deviation about the line */
    double slope_low, slope_high;         /* 95 % interval, by Student's t */
    double intercept_low, intercept_high; /* the same for the intercept */
    double p_value;                       /* two-sided, of the slope being 0 */
};

/* y = intercept + slope x.  False, with all but count UNKNOWN, under two points or two different x. */
bool linear_fit(const double *x, const double *y, size_t count, struct linear_fit *out);

/* Half-width of the 95 % confidence band of the line at x; x_mean: of the fitted points. */
double linear_fit_band(const struct linear_fit *fit, double x, double x_mean);

/* A line on natural logarithms: of x alone, or of both (y = exp(intercept) x^slope).  Points whose logarithm is
 * undefined are ignored. */
enum linear_logs { LINEAR_PLAIN, LINEAR_LOG_X, LINEAR_LOG_LOG };
bool linear_fit_logs(const double *x, const double *y, size_t count, enum linear_logs logs,
                     struct linear_fit *out);

/* y = intercept + a x + b z. */
struct plane_fit {
    size_t count;
    double intercept, a, b;
    double intercept_error, a_error,
        b_error; /* standard errors; UNKNOWN for fewer than four points */
    double r2;
};

/* False, with all but count UNKNOWN, where the points are collinear or fewer than three. */
bool plane_fit(const double *x, const double *z, const double *y, size_t count,
               struct plane_fit *out);

/* The median of the slopes between all pairs of points, which is robust to outliers. */
struct theil_sen {
    size_t pairs;            /* with different x that were used */
    bool sampled;            /* too many pairs: some were drawn at random */
    double slope, intercept; /* intercept = median(y) - slope median(x); UNKNOWN without a pair */
};

/* All pairs of up to THEIL_SEN_EXACT points.  For more points, THEIL_SEN_SAMPLED pairs are sampled, with a fixed
 * seed: the slope then has a sampling error of about 1.25 / sqrt(pairs) of the slopes' spread; for more points than
 * that the medians are of every n-th value. */
enum { THEIL_SEN_EXACT = 1000, THEIL_SEN_SAMPLED = 200000 };
void theil_sen(const double *x, const double *y, size_t count, struct theil_sen *out);

#endif
