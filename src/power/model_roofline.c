/* roofline: for each application a time curve with a knee and a cubic power curve (power/curve_fit.h).  A new
 * application is predicted from its own probes, with the shape of the power curve learned from the others:
 * everything is relative to fmax and to the power there, so that it transfers to another GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"
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
    double *u = malloc((count + 1) * sizeof *u), *t = malloc((count + 1) * sizeof *t);
    enum err err = u && t ? ERR_OK : ERR_NO_MEMORY;
    size_t known = err ? 0 : times_of(samples, count, fit->fmax_mhz, false, u, t);
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
static enum err set_errors(const struct freq_sample *samples, size_t count,
                           struct roofline_fit *fit)
{
    enum { PARAMETERS = 4 };
    double *errors = malloc((count + 1) * sizeof *errors);
    double widen =
        count > PARAMETERS ? sqrt((double)count / (double)(count - PARAMETERS)) : UNKNOWN;
    if (!errors)
        return ERR_NO_MEMORY;
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
    return ERR_OK;
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
        err = set_errors(samples, count, fit);
    return err;
}

static void roofline_release(void *state)
{
    struct roofline *roofline = state;
    free(roofline->fits);
    free(roofline);
}

/* Predicts each application from that many of its probes and the shapes of the others. */
static enum err calibrate_probes(struct roofline *roofline, const struct freq_curves *curves,
                                 const struct power_shape *shapes, size_t wanted)
{
    struct freq_errors errors;
    enum err err = freq_errors_init(&errors, curves);
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
    for (size_t i = 0; !err && i < curves->count; i++)
        err = power_shape(&curves->items[i], &shapes[i]);
    roofline->prior = power_prior_of(shapes, curves->count, curves->count);
    for (size_t i = 0; !err && i < curves->count; i++) {
        const struct freq_curve *curve = &curves->items[i];
        struct roofline_fit *fit = &roofline->fits[roofline->count];
        if (curve->count == 0)
            continue;
        (void)str_copy(fit->gpu, sizeof fit->gpu, curve->gpu);
        (void)str_copy(fit->application, sizeof fit->application, curve->application);
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
    struct roofline *roofline = calloc(1, sizeof *roofline);
    struct power_shape *shapes = calloc(curves->count + 1, sizeof *shapes);
    enum err err = ERR_NO_MEMORY;
    (void)options;
    *state = NULL;
    if (roofline && shapes) {
        roofline->fits = calloc(curves->count + 1, sizeof *roofline->fits);
        err = roofline->fits ? fit_all(roofline, curves, shapes) : ERR_NO_MEMORY;
    }
    free(shapes);
    if (err && roofline)
        roofline_release(roofline);
    else
        *state = roofline;
    return err_explain(why, err);
}

/* ---- predicting ---- */

static bool is_named(const char *name, const char *wanted)
{
    return !wanted || !wanted[0] || str_equal_nocase(name, wanted);
}

static const struct roofline_fit *find_fit(const struct roofline *roofline,
                                           const struct freq_target *target, size_t *matches)
{
    const struct roofline_fit *found = NULL;
    *matches = 0;
    for (size_t i = 0; i < roofline->count; i++)
        if (is_named(roofline->fits[i].gpu, target->gpu) &&
            is_named(roofline->fits[i].application, target->application)) {
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
                   target->application ? target->application : "",
                   target->gpu && target->gpu[0] ? " on " : "", target->gpu ? target->gpu : "");
}

static bool roofline_application(const void *state, size_t index, struct freq_curve *out,
                                 double *lowest_mhz)
{
    const struct roofline *roofline = state;
    if (index >= roofline->count)
        return false;
    const struct roofline_fit *fit = &roofline->fits[index];
    *out = (struct freq_curve){.fmax_mhz = fit->fmax_mhz, .idle_w = fit->power.idle_w};
    (void)str_copy(out->gpu, sizeof out->gpu, fit->gpu);
    (void)str_copy(out->application, sizeof out->application, fit->application);
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
            out->fmax_mhz = fmax(is_known(out->fmax_mhz) ? out->fmax_mhz : 0, probe->freq_mhz);
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
static enum err roofline_calibrate(const void *state, const struct freq_curves *curves,
                                   const struct freq_model_options *options, double *error,
                                   struct error *why)
{
    const struct roofline *roofline = state;
    (void)curves, (void)options, (void)why;
    memcpy(error, roofline->probe_error[FREQ_PROBES - 1], FREQ_FIGURES * sizeof *error);
    return ERR_OK;
}

/* ---- files ---- */

static void time_to_json(const struct time_fit *fit, const char *key, struct json *json)
{
    json_object(json, key);
    json_number(json, "t0_s", fit->t0);
    json_number(json, "t1_s", fit->t1);
    json_number(json, "knee", fit->knee);
    json_object_end(json);
}

static void roofline_save(const void *state, struct json *json)
{
    const struct roofline *roofline = state;
    json_array(json, "applications");
    for (size_t i = 0; i < roofline->count; i++) {
        const struct roofline_fit *fit = &roofline->fits[i];
        json_object(json, NULL);
        json_string(json, "gpu", fit->gpu);
        json_string(json, "application", fit->application);
        json_number(json, "fmax_mhz", fit->fmax_mhz);
        json_number(json, "lowest_mhz", fit->lowest_mhz);
        json_number(json, "highest_mhz", fit->highest_mhz);
        if (fit->has_time) {
            time_to_json(&fit->time, "time", json);
            time_to_json(&fit->window, "window", json);
        }
        json_numbers(json, "power_w", fit->power.c, POWER_TERMS);
        json_number(json, "idle_w", fit->power.idle_w);
        json_number(json, "lowest", fit->power.lowest);
        json_numbers(json, "relative_error_90", fit->error, FREQ_FIGURES);
        json_object_end(json);
    }
    json_array_end(json);
    json_numbers(json, "probe_error_90", roofline->probe_error[0], PROBE_COUNTS * FREQ_FIGURES);
    json_object(json, "prior");
    json_integer(json, "curves", (int64_t)roofline->prior.curves);
    json_numbers(json, "mean", roofline->prior.mean, POWER_TERMS);
    json_numbers(json, "covariance", roofline->prior.covariance[0], POWER_TERMS * POWER_TERMS);
    json_object_end(json);
}

static bool time_from_json(const struct jv *object, struct time_fit *out)
{
    *out = (struct time_fit){jv_number(jv_get(object, "t0_s")), jv_number(jv_get(object, "t1_s")),
                             jv_number(jv_get(object, "knee"))};
    return is_known(out->t0) && is_known(out->t1) && is_known(out->knee);
}

static bool fit_from_json(const struct jv *object, struct roofline_fit *out)
{
    const char *gpu = jv_text(jv_get(object, "gpu"));
    const char *application = jv_text(jv_get(object, "application"));
    (void)str_copy(out->gpu, sizeof out->gpu, gpu ? gpu : "");
    (void)str_copy(out->application, sizeof out->application, application ? application : "");
    str_plain(out->gpu, sizeof out->gpu);
    str_plain(out->application, sizeof out->application);
    out->fmax_mhz = jv_number(jv_get(object, "fmax_mhz"));
    out->lowest_mhz = jv_number(jv_get(object, "lowest_mhz"));
    out->highest_mhz = jv_number(jv_get(object, "highest_mhz"));
    out->power.idle_w = jv_number(jv_get(object, "idle_w"));
    out->power.lowest = jv_number(jv_get(object, "lowest"));
    out->has_time = time_from_json(jv_get(object, "time"), &out->time) &&
                    time_from_json(jv_get(object, "window"), &out->window);
    return jv_numbers(jv_get(object, "power_w"), out->power.c, POWER_TERMS) &&
           jv_numbers(jv_get(object, "relative_error_90"), out->error, FREQ_FIGURES) &&
           out->fmax_mhz > 0 && is_known(out->power.c[0]) && is_known(out->power.idle_w) &&
           out->power.lowest > 0;
}

static enum err roofline_load(const struct jv *object, void **state, struct error *why)
{
    const struct jv *list = jv_get(object, "applications"), *prior = jv_get(object, "prior");
    struct roofline *roofline = calloc(1, sizeof *roofline);
    if (!roofline)
        return err_no_memory(why);
    roofline->fits = calloc(jv_count(list) + 1, sizeof *roofline->fits);
    if (!roofline->fits) {
        roofline_release(roofline);
        return err_no_memory(why);
    }
    bool is_valid = jv_numbers(jv_get(object, "probe_error_90"), roofline->probe_error[0],
                               PROBE_COUNTS * FREQ_FIGURES) &&
                    jv_numbers(jv_get(prior, "mean"), roofline->prior.mean, POWER_TERMS) &&
                    jv_numbers(jv_get(prior, "covariance"), roofline->prior.covariance[0],
                               POWER_TERMS * POWER_TERMS);
    for (const struct jv *item = jv_first(list); is_valid && item; item = jv_next(item))
        is_valid = fit_from_json(item, &roofline->fits[roofline->count++]);
    double curves = jv_number(jv_get(prior, "curves"));
    roofline->prior.curves = curves > 0 && curves < 1e9 ? (size_t)curves : 0;
    if (!is_valid) {
        roofline_release(roofline);
        return err_set(why, ERR_BAD_VALUE, "damaged state of model roofline");
    }
    *state = roofline;
    return ERR_OK;
}

const struct freq_model_kind freq_model_roofline = {
    .name = "roofline",
    .summary = "knee of time and cubic of power, re-anchored by probes",
    .has_probes = true,
    .fit = roofline_fit,
    .predict = roofline_predict,
    .calibrate = roofline_calibrate,
    .application = roofline_application,
    .save = roofline_save,
    .load = roofline_load,
    .release = roofline_release,
};
