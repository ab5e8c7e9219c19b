/* The knee is found by a grid search, where for each candidate the time is linear in two unknowns; the polynomial is
 * linear in its coefficients.  Both use least absolute deviations by reweighting (stats/least_squares.h), the former
 * specialized for two unknowns because it runs for every candidate. */
#include "power/curve_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "core/xalloc.h"
#include "power/freq_points.h"
#include "stats/least_squares.h"

/* ---- time ---- */

enum { KNEES = 24, KNEES_FINER = 4, KNEE_ROUNDS = 20 };
/* A knee is accepted only if it reduces the deviations to this share of those without one. */
#define KNEE_GAIN 0.97

double time_fit_at(const struct time_fit *fit, double u)
{
    return fit->t0 + fit->t1 * fmax(0, u - fit->knee);
}

static double deviations(const struct time_fit *fit, const double *u, const double *t, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += fabs(time_fit_at(fit, u[i]) - t[i]);
    return sum;
}

/* Least squares for a few probes: least absolute deviations would interpolate three and ignore the others. */
static double squares(const struct time_fit *fit, const double *u, const double *t, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (time_fit_at(fit, u[i]) - t[i]) * (time_fit_at(fit, u[i]) - t[i]);
    return sum;
}

/* One weighted least-squares step of t0 and t1 >= 0 for the fit's knee. */
static void reweighted_step(struct time_fit *fit, const double *u, const double *t, size_t count,
                            double floor)
{
    double w = 0, wh = 0, wt = 0, whh = 0, wht = 0;
    for (size_t i = 0; i < count; i++) {
        double h = fmax(0, u[i] - fit->knee);
        double weight = floor > 0 ? 1 / fmax(fabs(time_fit_at(fit, u[i]) - t[i]), floor) : 1;
        w += weight;
        wh += weight * h;
        wt += weight * t[i];
        whh += weight * h * h;
        wht += weight * h * t[i];
    }
    double spread = whh - wh * wh / w;
    double slope = spread > 1e-12 * w ? (wht - wh * wt / w) / spread : 0;
    fit->t1 = fmax(0, slope);
    fit->t0 = (wt - fit->t1 * wh) / w;
}

static double fit_at_knee(struct time_fit *fit, const double *u, const double *t, size_t count)
{
    double best = INFINITY;
    struct time_fit found = *fit;
    reweighted_step(fit, u, t, count, 0);
    if (count < POWER_SWEEP_MIN)
        return squares(fit, u, t, count);
    for (unsigned round = 0; round < KNEE_ROUNDS; round++) {
        double cost = deviations(fit, u, t, count);
        bool is_settled = cost > 0.9999 * best;
        if (cost < best) {
            best = cost;
            found = *fit;
        }
        if (is_settled)
            break;
        reweighted_step(fit, u, t, count, 1e-4 * fabs(fit->t0) + 1e-12);
    }
    *fit = found;
    return best;
}

/* max(t0, tc u): memory-bound until the compute units become the bottleneck. */
static struct time_fit fit_pair(double u0, double t0, double u1, double t1)
{
    if (u0 > u1)
        return fit_pair(u1, t1, u0, t0);
    double slope = t1 / u1;
    if (t1 <= t0 || t0 / slope < 1)
        return (struct time_fit){t0, t1 > t0 ? (t1 - t0) / (u1 - u0) : 0, u0};
    return (struct time_fit){t0, slope, t0 / slope};
}

/* Accepts the knee if it reduces the deviations more than the best so far, and sufficiently. */
static void try_knee(double knee, const double *u, const double *t, size_t count, double limit,
                     double *best, struct time_fit *out)
{
    struct time_fit fit = {0, 0, knee};
    double cost = fit_at_knee(&fit, u, t, count);
    if (cost < limit && cost < *best) {
        *best = cost;
        *out = fit;
    }
}

enum err time_fit(const double *u, const double *seconds, size_t count, struct time_fit *out)
{
    double highest = 1, best, plain;
    *out = (struct time_fit){UNKNOWN, UNKNOWN, 1};
    if (count == 0)
        return ERR_NO_DATA;
    if (count == 1) {
        *out = (struct time_fit){seconds[0] / u[0], seconds[0] / u[0], 1};
        return ERR_OK;
    }
    if (count == 2 && u[0] != u[1]) {
        *out = fit_pair(u[0], seconds[0], u[1], seconds[1]);
        return ERR_OK;
    }
    for (size_t i = 0; i < count; i++)
        highest = fmax(highest, u[i]);
    struct time_fit fit = {0, 0, 1};
    best = plain = fit_at_knee(&fit, u, seconds, count);
    *out = fit;
    double step = (highest - 1) / KNEES;
    for (unsigned i = 1; i < KNEES; i++)
        try_knee(1 + step * i, u, seconds, count, KNEE_GAIN * plain, &best, out);
    double coarse = out->knee;
    for (int i = -KNEES_FINER + 1; coarse > 1 && i < KNEES_FINER; i++)
        try_knee(coarse + step * i / KNEES_FINER, u, seconds, count, KNEE_GAIN * plain, &best, out);
    return ERR_OK;
}

/* ---- power ---- */

enum { CUBIC_TERMS = 4 };

/* Relative noise of a probe: the residual after the median of a few runs. */
#define PROBE_NOISE 0.009
/* Relative noise of the power at fmax, which scales the others. */
#define SCALE_NOISE 0.03

static void terms_of(double x, size_t terms, double *row)
{
    row[0] = 1;
    for (size_t k = 1; k < terms; k++)
        row[k] = row[k - 1] * (x - 1);
}

static double polynomial(const double *c, double x)
{
    double sum = 0;
    for (size_t k = POWER_TERMS; k-- > 0;)
        sum = sum * (x - 1) + c[k];
    return sum;
}

double power_fit_at(const struct power_fit *fit, double x)
{
    double inside = fmax(fit->lowest, fmin(x, 1.05));
    double watts = fmax(fit->idle_w, polynomial(fit->c, inside));
    return x < fit->lowest ? fit->idle_w + (watts - fit->idle_w) * x / fit->lowest : watts;
}

/* By least absolute deviations; fewer terms where the samples do not determine more. */
static enum err fit_sweep(const struct freq_sample *samples, size_t count, double fmax_mhz,
                          size_t terms, double *c)
{
    double *a = xmalloc(count * terms * sizeof *a), *b = xmalloc(count * sizeof *b);
    memset(c, 0, POWER_TERMS * sizeof *c);
    for (size_t i = 0; i < count; i++) {
        terms_of(samples[i].freq_mhz / fmax_mhz, terms, a + i * terms);
        b[i] = samples[i].power_w;
    }
    enum err err = least_absolute(a, b, count, terms, c);
    free(a);
    free(b);
    return err;
}

void power_shape(const struct freq_curve *curve, struct power_shape *out)
{
    *out = (struct power_shape){0};
    if (curve->count < POWER_SWEEP_MIN)
        return;
    enum err err = fit_sweep(curve->samples, curve->count, curve->fmax_mhz, POWER_TERMS, out->c);
    out->is_known = !err && out->c[0] > 0;
    double first = out->c[0];
    for (size_t k = 0; out->is_known && k < POWER_TERMS; k++)
        out->c[k] /= first;
}

/* Quartics fitted to the sweeps of 14 applications on one V100 (510 to 1380 MHz). */
const struct power_prior *power_prior_builtin(void)
{
    static const struct power_prior PRIOR = {
        .curves = 14,
        .mean = {1, 2.441, 8.58, 16.31, 10.67},
        .covariance = {{0.0009, 0, 0, 0, 0},
                       {0, 0.2054, 0.9097, 1.662, 1.034},
                       {0, 0.9097, 7.056, 16.08, 11.25},
                       {0, 1.662, 16.08, 38.99, 28.02},
                       {0, 1.034, 11.25, 28.02, 20.37}},
    };
    return &PRIOR;
}

struct power_prior power_prior_of(const struct power_shape *shapes, size_t count, size_t left_out)
{
    struct power_prior prior = {0};
    for (size_t i = 0; i < count; i++)
        prior.curves += i != left_out && shapes[i].is_known;
    if (prior.curves < POWER_PRIOR_MIN)
        return *power_prior_builtin();
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; i != left_out && shapes[i].is_known && k < POWER_TERMS; k++)
            prior.mean[k] += shapes[i].c[k] / (double)prior.curves;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 1; i != left_out && shapes[i].is_known && k < POWER_TERMS; k++)
            for (size_t j = 1; j < POWER_TERMS; j++)
                prior.covariance[k][j] += (shapes[i].c[k] - prior.mean[k]) *
                                          (shapes[i].c[j] - prior.mean[j]) /
                                          (double)(prior.curves - 1);
    prior.covariance[0][0] = SCALE_NOISE * SCALE_NOISE;
    return prior;
}

/* covariance x row */
static void spread_of(const struct power_prior *prior, const double *row, double *out)
{
    for (size_t k = 0; k < POWER_TERMS; k++) {
        out[k] = 0;
        for (size_t j = 0; j < POWER_TERMS; j++)
            out[k] += prior->covariance[k][j] * row[j];
    }
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (size_t k = 0; k < POWER_TERMS; k++)
        sum += a[k] * b[k];
    return sum;
}

/* Updates the prior's mean with the probes according to its covariance and their noise (a Kalman gain). */
static enum err fit_probes(const struct freq_sample *samples, size_t count, double fmax_mhz,
                           const struct power_prior *prior, double *c)
{
    double rows[POWER_SWEEP_MIN][POWER_TERMS] = {{0}}, spread[POWER_SWEEP_MIN][POWER_TERMS];
    double system[POWER_SWEEP_MIN * POWER_SWEEP_MIN] = {0}, off[POWER_SWEEP_MIN] = {0};
    double gain[POWER_SWEEP_MIN];
    size_t top = 0;
    for (size_t i = 0; i < count; i++)
        top = samples[i].freq_mhz > samples[top].freq_mhz ? i : top;
    for (size_t i = 0; i < count; i++) {
        terms_of(samples[i].freq_mhz / fmax_mhz, POWER_TERMS, rows[i]);
        spread_of(prior, rows[i], spread[i]);
    }
    double scale = samples[top].power_w / dot(rows[top], prior->mean);
    for (size_t i = 0; i < count; i++) {
        off[i] = samples[i].power_w / scale - dot(rows[i], prior->mean);
        for (size_t j = 0; j < count; j++)
            system[i * count + j] =
                dot(rows[i], spread[j]) + (i == j ? PROBE_NOISE * PROBE_NOISE : 0);
    }
    enum err err = least_squares(system, off, count, count, gain);
    for (size_t k = 0; k < POWER_TERMS; k++) {
        c[k] = prior->mean[k];
        for (size_t i = 0; !err && i < count; i++)
            c[k] += spread[i][k] * gain[i];
        c[k] *= scale;
    }
    return err;
}

enum err power_fit(const struct freq_sample *samples, size_t count, double fmax_mhz, double idle_w,
                   const struct power_prior *prior, struct power_fit *out)
{
    *out = (struct power_fit){.idle_w = idle_w > 0 ? idle_w : 0, .lowest = INFINITY};
    if (count == 0)
        return ERR_NO_DATA;
    for (size_t i = 0; i < count; i++)
        out->lowest = fmin(out->lowest, samples[i].freq_mhz / fmax_mhz);
    if (count < POWER_SWEEP_MIN) {
        out->lowest = fmin(out->lowest, 0.35); /* the prior's range */
        return fit_probes(samples, count, fmax_mhz, prior, out->c);
    }
    enum err err = ERR_BAD_VALUE;
    for (size_t terms = CUBIC_TERMS; err == ERR_BAD_VALUE && terms > 0; terms--)
        err = fit_sweep(samples, count, fmax_mhz, terms, out->c);
    return err;
}
