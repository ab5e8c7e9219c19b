/* roofline: for each application that was swept, smooth curves of power and time (power/smooth_fit.h).  A new
 * application is predicted from its own probes, by a time curve with a knee and a power curve whose shape is learned
 * from the others (power/curve_fit.h): everything is relative to fmax and to the power there, so that it transfers to
 * another GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_bind.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "power/curve_fit.h"
#include "power/freq_model.h"
#include "power/smooth_fit.h"
#include "stats/correlation.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

/* The smooth curves at one clock. */
struct sweep_row {
    double freq_mhz;
    double power_w, time_s, window_s;
    double change[FREQ_FIGURES]; /* as in struct freq_prediction */
};

/* The fit of one application, or of the probes of one. */
struct roofline_fit {
    char gpu[40], application[64];
    double fmax_mhz, lowest_mhz, highest_mhz;
    bool has_time;
    struct time_fit time, window;
    struct power_fit power;
    struct sweep_row *sweep; /* ascending, up to fmax; none: the knee and the power curve */
    size_t sweep_count;
    double error[FREQ_FIGURES]; /* relative, FREQ_LEVEL; UNKNOWN: use that of probes */
};

enum { PROBE_COUNTS = 4 }; /* more probes use the interval of this many */

struct roofline {
    struct roofline_fit *fits;
    size_t count;
    struct power_prior prior;
    double probe_error[PROBE_COUNTS]
                      [FREQ_FIGURES]; /* for new applications, by the number of probes - 1 */
};

/* ---- files ---- */

static const struct json_field TIME_FIELDS[] = {
    BIND_NUMBER(time_fit, t0, "t0_s", .flags = FIELD_REQUIRED),
    BIND_NUMBER(time_fit, t1, "t1_s", .flags = FIELD_REQUIRED),
    BIND_NUMBER(time_fit, knee, "knee", .flags = FIELD_REQUIRED),
    {0},
};

static const struct json_field SWEEP_FIELDS[] = {
    BIND_NUMBER(sweep_row, freq_mhz, "freq_mhz", .flags = FIELD_REQUIRED | FIELD_ABOVE,
                .max = INFINITY),
    BIND_NUMBER(sweep_row, power_w, "power_w", .flags = FIELD_REQUIRED | FIELD_ABOVE,
                .max = INFINITY),
    BIND_NUMBER(sweep_row, time_s, "time_s", .flags = FIELD_REQUIRED | FIELD_ABOVE,
                .max = INFINITY),
    BIND_NUMBER(sweep_row, window_s, "window_s", .flags = FIELD_REQUIRED | FIELD_ABOVE,
                .max = INFINITY),
    BIND_VECTOR(sweep_row, change, "change_90", .flags = FIELD_REQUIRED),
    {0},
};

static bool has_time(const struct json_field *field, const void *object)
{
    (void)field;
    return ((const struct roofline_fit *)object)->has_time;
}

static const struct json_custom IF_TIMED = {.is_known = has_time};

static const struct json_field FIT_FIELDS[] = {
    BIND_CHARS(roofline_fit, gpu, "gpu", .flags = FIELD_LENIENT),
    BIND_CHARS(roofline_fit, application, "application", .flags = FIELD_LENIENT),
    BIND_NUMBER(roofline_fit, fmax_mhz, "fmax_mhz", .flags = FIELD_REQUIRED | FIELD_ABOVE,
                .max = INFINITY),
    BIND_NUMBER(roofline_fit, lowest_mhz, "lowest_mhz"),
    BIND_NUMBER(roofline_fit, highest_mhz, "highest_mhz"),
    BIND_OBJECT(roofline_fit, time, TIME_FIELDS, "time", .flags = FIELD_OMIT, .custom = &IF_TIMED),
    BIND_OBJECT(roofline_fit, window, TIME_FIELDS, "window", .flags = FIELD_OMIT,
                .custom = &IF_TIMED),
    BIND_VECTOR(roofline_fit, power.c, "power_w", .flags = FIELD_REQUIRED),
    BIND_NUMBER(roofline_fit, power.idle_w, "idle_w", .flags = FIELD_REQUIRED),
    BIND_NUMBER(roofline_fit, power.lowest, "lowest", .flags = FIELD_REQUIRED | FIELD_ABOVE,
                .max = INFINITY),
    BIND_VECTOR(roofline_fit, error, "relative_error_90", .flags = FIELD_REQUIRED),
    BIND_LIST(roofline_fit, sweep, sweep_count, SWEEP_FIELDS, "sweep", .flags = FIELD_LENIENT),
    {0},
};

static const struct json_field ROOFLINE_FIELDS[] = {
    BIND_LIST(roofline, fits, count, FIT_FIELDS, "applications"),
    BIND_VECTOR(roofline, probe_error, "probe_error_90", .flags = FIELD_REQUIRED),
    BIND_SIZE(roofline, prior.curves, "prior.curves", .flags = FIELD_LENIENT, .max = 1e9),
    BIND_VECTOR(roofline, prior.mean, "prior.mean", .flags = FIELD_REQUIRED),
    BIND_VECTOR(roofline, prior.covariance, "prior.covariance", .flags = FIELD_REQUIRED),
    {0},
};

static enum err roofline_check(const struct json_place *at, void *state)
{
    struct roofline *roofline = state;
    for (size_t i = 0; i < roofline->count; i++) {
        struct roofline_fit *fit = &roofline->fits[i];
        fit->has_time = is_known(fit->time.t0) && is_known(fit->window.t0);
        if (!is_known(fit->power.c[0]))
            return json_refuse(at, "applications", "power_w of number %zu must not begin with null",
                               i);
        for (size_t k = 1; k < fit->sweep_count; k++)
            if (!(fit->sweep[k].freq_mhz > fit->sweep[k - 1].freq_mhz))
                return json_refuse(at, "applications", "sweep of number %zu must ascend", i);
    }
    return ERR_OK;
}

/* ---- fitting ---- */

/* The finite times of samples, or their windows, against fmax / f. */
static size_t times_of(const struct freq_sample *samples, size_t count, double fmax_mhz,
                       bool is_window, double *u, double *t)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        double value = is_window ? samples[i].window_s : samples[i].time_s;
        if (value > 0) {
            u[known] = fmax_mhz / samples[i].freq_mhz;
            t[known++] = value;
        }
    }
    return known;
}

static enum err fit_times(const struct freq_sample *samples, size_t count, struct roofline_fit *fit)
{
    double *u = xmalloc((count + 1) * sizeof *u), *t = xmalloc((count + 1) * sizeof *t);
    enum err err = ERR_OK;
    size_t known = times_of(samples, count, fit->fmax_mhz, false, u, t);
    fit->has_time = known > 0;
    if (known)
        err = time_fit(u, t, known, &fit->time);
    known = err ? 0 : times_of(samples, count, fit->fmax_mhz, true, u, t);
    if (known)
        err = time_fit(u, t, known, &fit->window);
    fit->has_time &= known > 0;
    free(u);
    free(t);
    return err;
}

/* The knee and the power curve. */
static struct sweep_row probed_row(const struct roofline_fit *fit, double mhz)
{
    double u = fit->fmax_mhz / mhz;
    return (struct sweep_row){.freq_mhz = mhz,
                              .power_w = power_fit_at(&fit->power, 1 / u),
                              .time_s = fit->has_time ? time_fit_at(&fit->time, u) : UNKNOWN,
                              .window_s = fit->has_time ? time_fit_at(&fit->window, u) : UNKNOWN};
}

/* Between two positive values, on logarithmic scales. */
static double between(double low, double high, double share)
{
    return low * pow(high / low, share);
}

static struct sweep_row interpolated_row(const struct roofline_fit *fit, double mhz)
{
    size_t after = 1;
    while (after + 1 < fit->sweep_count && fit->sweep[after].freq_mhz < mhz)
        after++;
    const struct sweep_row *low = &fit->sweep[after - 1], *high = &fit->sweep[after];
    double share = log(mhz / low->freq_mhz) / log(high->freq_mhz / low->freq_mhz);
    struct sweep_row row = {.freq_mhz = mhz,
                            .power_w = between(low->power_w, high->power_w, share),
                            .time_s = between(low->time_s, high->time_s, share),
                            .window_s = between(low->window_s, high->window_s, share)};
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        row.change[k] = low->change[k] + share * (high->change[k] - low->change[k]);
    return row;
}

/* The curves of the sweep; outside it they continue in the form of the knee and the power curve. */
static struct sweep_row sweep_row_at(const struct roofline_fit *fit, double mhz)
{
    double lowest = fit->sweep[0].freq_mhz, highest = fit->sweep[fit->sweep_count - 1].freq_mhz;
    double inside = fmin(fmax(mhz, lowest), highest);
    struct sweep_row row = interpolated_row(fit, inside);
    if (inside == mhz)
        return row;
    struct sweep_row from = probed_row(fit, inside), to = probed_row(fit, mhz);
    row.power_w = fmax(fit->power.idle_w, row.power_w * to.power_w / from.power_w);
    row.time_s *= to.time_s / from.time_s;
    row.window_s *= to.window_s / from.window_s;
    return row;
}

static void predict_one(const struct roofline_fit *fit, double mhz, struct freq_prediction *out)
{
    struct sweep_row row = fit->sweep_count > 1 ? sweep_row_at(fit, mhz) : probed_row(fit, mhz);
    const double values[FREQ_FIGURES] = {row.power_w, row.time_s, row.power_w * row.window_s};
    *out = (struct freq_prediction){.freq_mhz = mhz, .has_change = fit->sweep_count > 1};
    memcpy(out->change, row.change, sizeof out->change);
    out->is_extrapolated = mhz < 0.999 * fit->lowest_mhz || mhz > 1.001 * fit->highest_mhz;
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        out->figures[k] = freq_value_within(values[k], fit->error[k]);
}

/* Half-widths from the residuals, with a correction for the degrees of freedom. */
static void set_errors(const struct freq_sample *samples, size_t count, double parameters,
                       struct roofline_fit *fit)
{
    double *errors = xmalloc((count + 1) * sizeof *errors), n = (double)count;
    double widen = n > parameters ? sqrt(n / (n - parameters)) : UNKNOWN;
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        size_t known = 0;
        for (size_t i = 0; i < count; i++) {
            struct freq_prediction at;
            const double found[FREQ_FIGURES] = {samples[i].power_w, samples[i].time_s,
                                                samples[i].energy_j};
            predict_one(fit, samples[i].freq_mhz, &at);
            double error = fabs(found[k] / at.figures[k].value - 1);
            if (is_known(error))
                errors[known++] = error;
        }
        fit->error[k] = conformal_quantile(errors, known, FREQ_LEVEL) * widen;
        if (k != FREQ_TIME_S && is_known(fit->error[k]))
            fit->error[k] = hypot(fit->error[k], freq_samples_pause_error(samples, count));
    }
    free(errors);
}

/* ---- a sweep ---- */

/* Curves with fewer clocks are evaluated at more, between which they are interpolated. */
enum { SWEEP_ROWS_MIN = 48 };

static int by_clock(const void *a, const void *b)
{
    return compare_numbers(((const struct freq_sample *)a)->freq_mhz,
                           ((const struct freq_sample *)b)->freq_mhz);
}

/* The samples with a power, a time and a window, ascending and one per clock; returns how many. */
static size_t complete_samples(const struct freq_sample *samples, size_t count, double *mhz,
                               double *const *figures)
{
    struct freq_sample *sorted = xmalloc((count + 1) * sizeof *sorted);
    size_t known = 0;
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_clock);
    for (size_t i = 0; i < count; i++) {
        const struct freq_sample *s = &sorted[i];
        if (!(s->power_w > 0 && s->time_s > 0 && s->window_s > 0) ||
            (known && !(s->freq_mhz > mhz[known - 1])))
            continue;
        mhz[known] = s->freq_mhz;
        figures[0][known] = s->power_w;
        figures[1][known] = s->time_s;
        figures[2][known++] = s->window_s;
    }
    free(sorted);
    return known;
}

/* The clocks that the curves are evaluated at: those measured, some between them, and fmax. */
static double *sweep_clocks(const double *mhz, size_t count, double fmax_mhz, size_t *out_count)
{
    size_t parts = count < SWEEP_ROWS_MIN ? SWEEP_ROWS_MIN / count + 1 : 1;
    double *out = xcalloc(parts * count + 1, sizeof *out);
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        double next = i + 1 < count ? mhz[i + 1] : fmax_mhz;
        for (size_t k = 0; k < parts && (k == 0 || next > mhz[i]); k++)
            out[(*out_count)++] = mhz[i] + (next - mhz[i]) * (double)k / (double)parts;
    }
    if (out[*out_count - 1] < fmax_mhz)
        out[(*out_count)++] = fmax_mhz;
    return out;
}

/* Curves of real GPUs are not as smooth as splines: drivers change the voltage in steps of several clocks, which errs
 * alike at neighboring samples.  The standard deviation of a curve is taken this many times. */
#define LACK_OF_FIT 2.0

static double sum_variance(double a, double b, double correlation)
{
    return square(a) + square(b) + 2 * correlation * a * b;
}

/* Half-width of the change of a product of two figures from fmax, whose errors are correlated: the uncertainty of the
 * curves, and the scatter of the mean of two samples at each end, as a measurement of the change would have. */
static double product_change(const struct smooth_curve *a, const struct smooth_curve *b,
                             double correlation, double t, size_t i)
{
    double curves = sum_variance(a->change[i], b->change[i], correlation);
    double samples = sum_variance(a->noise, b->noise, correlation);
    double variance = square(LACK_OF_FIT) * curves + samples;
    return t * sqrt(fmax(0, variance)) + fabs(a->moved[i] + b->moved[i]);
}

/* The same for one figure. */
static double figure_change(const struct smooth_curve *curve, double t, size_t i)
{
    return t * hypot(LACK_OF_FIT * curve->change[i], curve->noise) + fabs(curve->moved[i]);
}

/* power, time, window */
static void set_sweep(const struct smooth_curve *const *curves, size_t samples, const double *mhz,
                      struct roofline_fit *fit)
{
    const struct smooth_curve *power = curves[0], *time = curves[1], *window = curves[2];
    double outside = 1 - FREQ_LEVEL;
    double power_t = student_quantile(outside, power->freedom);
    double duration_t = student_quantile(outside, time->freedom);
    double energy_t = student_quantile(outside, fmin(power->freedom, window->freedom));
    struct correlation correlation; /* of the ranks: outliers are among the residuals */
    spearman(power->residual, window->residual, samples, &correlation);
    for (size_t i = 0; i < fit->sweep_count; i++)
        fit->sweep[i] = (struct sweep_row){.freq_mhz = mhz[i],
                                           .power_w = exp(power->value[i]),
                                           .time_s = exp(time->value[i]),
                                           .window_s = exp(window->value[i])};
    for (size_t i = 0; i + 1 < fit->sweep_count; i++) { /* the last is fmax */
        double *change = fit->sweep[i].change;
        change[FREQ_POWER_W] = figure_change(power, power_t, i);
        change[FREQ_TIME_S] = figure_change(time, duration_t, i);
        change[FREQ_ENERGY_J] =
            product_change(power, window, known_or(correlation.value, 0), energy_t, i);
    }
}

/* The curves of a sweep, if it has enough clocks; returns the parameters of the fit. */
static double fit_curves(const struct freq_sample *samples, size_t count, struct roofline_fit *fit)
{
    enum { CURVES = 3, KNEE_PARAMETERS = 4 };
    double parameters = KNEE_PARAMETERS;
    double *mhz = xcalloc(count + 1, sizeof *mhz), *figures[CURVES];
    struct smooth_curve fitted[CURVES] = {0};
    const struct smooth_curve *curves[CURVES] = {&fitted[0], &fitted[1], &fitted[2]};
    for (size_t k = 0; k < CURVES; k++)
        figures[k] = xcalloc(count + 1, sizeof *figures[k]);
    size_t known = complete_samples(samples, count, mhz, figures);
    if (known >= SMOOTH_MIN) {
        double *at = sweep_clocks(mhz, known, fit->fmax_mhz, &fit->sweep_count);
        fit->sweep = xcalloc(fit->sweep_count, sizeof *fit->sweep);
        if (!memcmp(figures[1], figures[2], known * sizeof *figures[1]))
            curves[2] = curves[1]; /* power was measured during the whole run */
        for (size_t k = 0; k < CURVES; k++)
            if (curves[k] == &fitted[k])
                smooth_fit(&(struct smooth_question){.mhz = mhz,
                                                     .figure = figures[k],
                                                     .count = known,
                                                     .at_mhz = at,
                                                     .at_count = fit->sweep_count,
                                                     .is_falling = k > 0,
                                                     .has_steps = k > 0},
                           &fitted[k]);
        set_sweep(curves, known, at, fit);
        parameters = (double)known - fmin(curves[0]->freedom, curves[1]->freedom);
        free(at);
    }
    for (size_t k = 0; k < CURVES; k++) {
        smooth_curve_release(&fitted[k]);
        free(figures[k]);
    }
    free(mhz);
    return parameters;
}

static enum err fit_samples(const struct freq_sample *samples, size_t count, double idle_w,
                            const struct power_prior *prior, struct roofline_fit *fit)
{
    fit->lowest_mhz = INFINITY;
    fit->highest_mhz = 0;
    for (size_t i = 0; i < count; i++) {
        fit->lowest_mhz = fmin(fit->lowest_mhz, samples[i].freq_mhz);
        fit->highest_mhz = fmax(fit->highest_mhz, samples[i].freq_mhz);
    }
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        fit->error[k] = UNKNOWN;
    enum err err = power_fit(samples, count, fit->fmax_mhz, idle_w, prior, &fit->power);
    if (!err)
        err = fit_times(samples, count, fit);
    if (err || count < POWER_SWEEP_MIN)
        return err;
    set_errors(samples, count, fit_curves(samples, count, fit), fit);
    return ERR_OK;
}

/* Predicts each application from that many of its probes and the shapes of the others. */
static enum err calibrate_probes(struct roofline *roofline, const struct freq_curves *curves,
                                 const struct power_shape *shapes, size_t wanted)
{
    struct freq_errors errors;
    enum err err = ERR_OK;
    freq_errors_init(&errors, curves);
    for (size_t i = 0; !err && i < curves->count; i++) {
        const struct freq_curve *curve = &curves->items[i];
        struct power_prior prior = power_prior_of(shapes, curves->count, i);
        struct roofline_fit fit = {.fmax_mhz = curve->fmax_mhz};
        struct freq_sample probes[PROBE_COUNTS] = {0};
        if (curve->count < POWER_SWEEP_MIN)
            continue;
        size_t count = freq_curve_probes(curve, wanted, FREQ_PROBE_NEAR, probes);
        err = fit_samples(probes, count, curve->idle_w, &prior, &fit);
        struct freq_prediction *at = xcalloc(curve->count, sizeof *at);
        for (size_t k = 0; !err && k < curve->count; k++)
            predict_one(&fit, curve->samples[k].freq_mhz, &at[k]);
        if (!err)
            freq_errors_add(&errors, curve, at);
        free(at);
    }
    freq_errors_finish(&errors, roofline->probe_error[wanted - 1]);
    return err;
}

static enum err fit_all(struct roofline *roofline, const struct freq_curves *curves,
                        struct power_shape *shapes)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < curves->count; i++)
        power_shape(&curves->items[i], &shapes[i]);
    roofline->prior = power_prior_of(shapes, curves->count, curves->count);
    for (size_t i = 0; !err && i < curves->count; i++) {
        const struct freq_curve *curve = &curves->items[i];
        struct roofline_fit *fit = &roofline->fits[roofline->count];
        if (curve->count == 0)
            continue;
        chars_copy(fit->gpu, curve->gpu);
        chars_copy(fit->application, curve->application);
        fit->fmax_mhz = curve->fmax_mhz;
        err = fit_samples(curve->samples, curve->count, curve->idle_w, &roofline->prior, fit);
        roofline->count++;
    }
    for (size_t probes = 1; !err && probes <= PROBE_COUNTS; probes++)
        err = calibrate_probes(roofline, curves, shapes, probes);
    return err;
}

static enum err roofline_fit(const struct freq_curves *curves,
                             const struct freq_model_options *options, void **state,
                             struct error *why)
{
    struct roofline *roofline = XNEW(roofline);
    struct power_shape *shapes = xcalloc(curves->count + 1, sizeof *shapes);
    (void)options;
    *state = NULL;
    roofline->fits = xcalloc(curves->count + 1, sizeof *roofline->fits);
    enum err err = fit_all(roofline, curves, shapes);
    free(shapes);
    if (err)
        freq_state_free(ROOFLINE_FIELDS, roofline);
    else
        *state = roofline;
    return err_explain(why, err);
}

/* ---- predicting ---- */

static bool matches_name(const char *name, const char *wanted)
{
    return !wanted || !wanted[0] || str_equal_nocase(name, wanted);
}

static const struct roofline_fit *find_fit(const struct roofline *roofline,
                                           const struct freq_target *target, size_t *matches)
{
    const struct roofline_fit *found = NULL;
    *matches = 0;
    for (size_t i = 0; i < roofline->count; i++)
        if (matches_name(roofline->fits[i].gpu, target->gpu) &&
            matches_name(roofline->fits[i].application, target->application)) {
            found = &roofline->fits[i];
            ++*matches;
        }
    return found;
}

static enum err named_fit(const struct roofline *roofline, const struct freq_target *target,
                          struct roofline_fit *out, struct error *why)
{
    size_t matches;
    const struct roofline_fit *fit = find_fit(roofline, target, &matches);
    if (matches == 1) {
        *out = *fit;
        return ERR_OK;
    }
    if (matches > 1)
        return err_set(why, ERR_USAGE,
                       "the model has %zu such applications: name GPU and application", matches);
    return err_set(why, ERR_NOT_FOUND,
                   "the model has no application '%.60s'%s%.40s: give probes of it",
                   text_or_empty(target->application), target->gpu && target->gpu[0] ? " on " : "",
                   text_or_empty(target->gpu));
}

static bool roofline_application(const void *state, size_t index, struct freq_curve *out,
                                 double *lowest_mhz)
{
    const struct roofline *roofline = state;
    if (index >= roofline->count)
        return false;
    const struct roofline_fit *fit = &roofline->fits[index];
    *out = (struct freq_curve){.fmax_mhz = fit->fmax_mhz, .idle_w = fit->power.idle_w};
    chars_copy(out->gpu, fit->gpu);
    chars_copy(out->application, fit->application);
    *lowest_mhz = fit->lowest_mhz;
    return true;
}

/* How much wider intervals are on a GPU that none of the applications ran on: these differ in fewer GPUs than curves. */
static double new_gpu_factor(const struct roofline *roofline, const char *gpu)
{
    size_t gpus = 0;
    for (size_t i = 0; i < roofline->count; i++) {
        bool is_first = true;
        if (matches_name(roofline->fits[i].gpu, gpu))
            return 1;
        for (size_t k = 0; k < i; k++)
            is_first &= !str_equal_nocase(roofline->fits[k].gpu, roofline->fits[i].gpu);
        gpus += is_first;
    }
    return gpus ? freq_curves_factor(gpus) : 1;
}

static enum err probed_fit(const struct roofline *roofline, const struct freq_target *target,
                           struct roofline_fit *out, struct error *why)
{
    *out = (struct roofline_fit){.fmax_mhz = target->fmax_mhz};
    for (size_t i = 0; i < target->probe_count; i++) {
        const struct freq_sample *probe = &target->probes[i];
        if (!(probe->freq_mhz > 0) || !(probe->power_w > 0))
            return err_set(why, ERR_BAD_VALUE, "probe %zu: frequency and power must be above 0",
                           i + 1);
        if (!(target->fmax_mhz > 0))
            out->fmax_mhz = fmax(known_or(out->fmax_mhz, 0), probe->freq_mhz);
    }
    enum err err =
        fit_samples(target->probes, target->probe_count, target->idle_w, &roofline->prior, out);
    size_t row = (target->probe_count < PROBE_COUNTS ? target->probe_count : PROBE_COUNTS) - 1;
    for (size_t k = 0; k < FREQ_FIGURES && target->probe_count < POWER_SWEEP_MIN; k++)
        out->error[k] = roofline->probe_error[row][k] * new_gpu_factor(roofline, target->gpu);
    return err_explain(why, err);
}

static enum err roofline_predict(const void *state, const struct freq_target *target,
                                 const double *mhz, size_t count, struct freq_prediction *out,
                                 struct error *why)
{
    const struct roofline *roofline = state;
    struct roofline_fit fit = {0};
    enum err err = target->probe_count ? probed_fit(roofline, target, &fit, why)
                                       : named_fit(roofline, target, &fit, why);
    for (size_t i = 0; !err && i < count; i++)
        predict_one(&fit, mhz[i], &out[i]);
    if (target->probe_count) /* else the model's */
        free(fit.sweep);
    return err;
}

/* For the number of probes that other models are calibrated with. */
static void roofline_errors(const void *state, double *error)
{
    const struct roofline *roofline = state;
    memcpy(error, roofline->probe_error[FREQ_PROBES - 1], FREQ_FIGURES * sizeof *error);
}

const struct freq_model_kind freq_model_roofline = {
    .name = "roofline",
    .summary = "knee of time and cubic of power, re-anchored by probes",
    .has_probes = true,
    .fit = roofline_fit,
    .predict = roofline_predict,
    .errors = roofline_errors,
    .application = roofline_application,
    .fields = ROOFLINE_FIELDS,
    .size = sizeof(struct roofline),
    .check = roofline_check,
};
