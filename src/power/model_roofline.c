/* roofline: for each application a time curve with a knee and a cubic power curve (power/curve_fit.h).  A new
 * application is predicted from its own probes, with the shape of the power curve learned from the others:
 * everything is relative to fmax and to the power there, so that it transfers to another GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_bind.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "power/curve_fit.h"
#include "power/freq_model.h"
#include "stats/descriptive.h"

/* The fit of one application, or of the probes of one. */
struct roofline_fit {
    char gpu[40], application[64];
    double fmax_mhz, lowest_mhz, highest_mhz;
    bool has_time;
    struct time_fit time, window;
    struct power_fit power;
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

static void predict_one(const struct roofline_fit *fit, double mhz, struct freq_prediction *out)
{
    double u = fit->fmax_mhz / mhz, power = power_fit_at(&fit->power, 1 / u);
    double time = fit->has_time ? time_fit_at(&fit->time, u) : UNKNOWN;
    double energy = fit->has_time ? power * time_fit_at(&fit->window, u) : UNKNOWN;
    const double values[FREQ_FIGURES] = {power, time, energy};
    *out = (struct freq_prediction){.freq_mhz = mhz};
    out->is_extrapolated = mhz < 0.999 * fit->lowest_mhz || mhz > 1.001 * fit->highest_mhz;
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        out->figures[k] = freq_value_within(values[k], fit->error[k]);
}

/* Half-widths from the residuals, with a correction for the degrees of freedom. */
static void set_errors(const struct freq_sample *samples, size_t count, struct roofline_fit *fit)
{
    enum { PARAMETERS = 4 };
    double *errors = xmalloc((count + 1) * sizeof *errors);
    double widen =
        count > PARAMETERS ? sqrt((double)count / (double)(count - PARAMETERS)) : UNKNOWN;
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
    if (!err && count >= POWER_SWEEP_MIN)
        set_errors(samples, count, fit);
    return err;
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
        for (size_t k = 0; !err && k < curve->count; k++) {
            struct freq_prediction at;
            predict_one(&fit, curve->samples[k].freq_mhz, &at);
            freq_errors_add(&errors, &curve->samples[k], &at);
        }
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
    if (target->probe_count < POWER_SWEEP_MIN) /* a sweep has the interval of its residuals */
        memcpy(out->error, roofline->probe_error[row], sizeof out->error);
    return err_explain(why, err);
}

static enum err roofline_predict(const void *state, const struct freq_target *target,
                                 const double *mhz, size_t count, struct freq_prediction *out,
                                 struct error *why)
{
    const struct roofline *roofline = state;
    struct roofline_fit fit;
    enum err err = target->probe_count ? probed_fit(roofline, target, &fit, why)
                                       : named_fit(roofline, target, &fit, why);
    for (size_t i = 0; !err && i < count; i++)
        predict_one(&fit, mhz[i], &out[i]);
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
