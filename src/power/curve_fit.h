/* The two curves of the roofline model, for one application on one GPU, against the relative frequency x = f / fmax:
 *
 *   time   t0 + t1 max(0, 1/x - knee)   memory-bound above the knee clock, compute-bound below it
 *   power  max(idle, sum c[k] (x - 1)^k)  a cubic, which rises more steeply above the voltage floor
 *
 * Fitted by least absolute deviations, which are robust to cold and throttled runs.  With only a few probes, the
 * shape of the power curve comes from other applications: a normal distribution of relative coefficients (struct
 * power_prior), updated by the probes.  Plain data; nothing is owned. */
#ifndef IPW_POWER_CURVE_FIT_H
#define IPW_POWER_CURVE_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct freq_curve;
struct freq_sample;

struct time_fit {
    double t0, t1; /* seconds */
    double knee;   /* in fmax / f, at least 1 */
};

/* u is fmax / f.  One point scales as 1 / f, the worst case of a lower clock; two give max(t0, tc u).  ERR_NO_DATA
 * without a point. */
enum err time_fit(const double *u, const double *seconds, size_t count, struct time_fit *out)
    MUST_USE;
double time_fit_at(const struct time_fit *fit, double u);

enum { POWER_TERMS = 5 };

struct power_fit {
    double c[POWER_TERMS]; /* watts; unused terms are 0 */
    double idle_w;         /* 0: no floor */
    double lowest; /* x of the lowest clock measured: below it power falls linearly to idle */
};
double power_fit_at(const struct power_fit *fit, double x);

/* Of c[k] / c[0]. */
struct power_prior {
    size_t curves; /* number of curves that it was fitted to */
    double mean[POWER_TERMS];
    double covariance[POWER_TERMS][POWER_TERMS];
};

/* Fitted to full sweeps on one V100; used where no other applications are available. */
const struct power_prior *power_prior_builtin(void);

/* The relative coefficients of a full sweep; false for a curve with fewer than POWER_SWEEP_MIN samples. */
enum { POWER_PRIOR_MIN = 4, POWER_SWEEP_MIN = 8 };
struct power_shape {
    double c[POWER_TERMS];
    bool is_known;
};
void power_shape(const struct freq_curve *curve, struct power_shape *out);

/* From the known shapes except shapes[left_out] (count: all of them); the built-in one for fewer than
 * POWER_PRIOR_MIN. */
struct power_prior power_prior_of(const struct power_shape *shapes, size_t count, size_t left_out);

/* A cubic by least absolute deviations for POWER_SWEEP_MIN samples or more; the prior updated by the samples for
 * fewer.  ERR_NO_DATA without a sample. */
enum err power_fit(const struct freq_sample *samples, size_t count, double fmax_mhz, double idle_w,
                   const struct power_prior *prior, struct power_fit *out) MUST_USE;

#endif
