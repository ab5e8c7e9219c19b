#include "power/freq_model.h"

#include <math.h>
#include <stdlib.h>

#include "core/xalloc.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

struct freq_target freq_target_of(const struct freq_curve *curve, const struct freq_sample *probes,
                                  size_t probe_count)
{
    struct freq_target target = {.gpu = curve->gpu,
                                 .fmax_mhz = curve->fmax_mhz,
                                 .idle_w = curve->idle_w,
                                 .probes = probes,
                                 .probe_count = probe_count};
    struct freq_sample at_fmax = {.time_s = UNKNOWN, .window_s = UNKNOWN};
    (void)freq_curve_probes(curve, 1, FREQ_PROBE_NEAR, &at_fmax);
    target.fmax_time_s = at_fmax.time_s;
    target.fmax_window_s = at_fmax.window_s;
    for (size_t i = 0; i < FREQ_ACTIVITIES; i++)
        target.activity[i] = freq_curve_activity(curve, (enum freq_activity)i);
    return target;
}

/* ---- errors ---- */

void freq_errors_init(struct freq_errors *errors, const struct freq_curves *curves)
{
    size_t samples = 0;
    *errors = (struct freq_errors){0};
    for (size_t i = 0; i < curves->count; i++)
        samples += curves->items[i].count;
    for (size_t k = 0; k < FREQ_FIGURES; k++)
        errors->items[k] = xcalloc(samples, sizeof(double));
}

void freq_errors_add(struct freq_errors *errors, const struct freq_curve *curve,
                     const struct freq_prediction *predicted)
{
    for (size_t i = 0; i < curve->count; i++) {
        const struct freq_sample *measured = &curve->samples[i];
        const double values[FREQ_FIGURES] = {measured->power_w, measured->time_s,
                                             measured->energy_j};
        for (size_t k = 0; k < FREQ_FIGURES; k++) {
            double error = fabs(values[k] / predicted[i].figures[k].value - 1);
            if (is_known(error))
                errors->items[k][errors->count[k]++] = error;
        }
    }
    errors->curves++;
}

double freq_curves_factor(size_t curves)
{
    const double LEVEL_Z = 1.645; /* the limit for many curves */
    return curves ? student_quantile(1 - FREQ_LEVEL, (double)curves) / LEVEL_Z : UNKNOWN;
}

void freq_errors_finish(struct freq_errors *errors, double *error)
{
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        error[k] = conformal_quantile(errors->items[k], errors->count[k], FREQ_LEVEL) *
                   freq_curves_factor(errors->curves);
        free(errors->items[k]);
    }
    *errors = (struct freq_errors){0};
}

/* ---- leave-one-application-out ---- */

static enum err collect(const struct freq_model_kind *kind, const void *state,
                        const struct freq_curve *curve, struct freq_errors *errors,
                        struct error *why)
{
    struct freq_sample probes[FREQ_PROBES] = {0};
    size_t wanted = kind->has_probes ? FREQ_PROBES : 0;
    size_t count = freq_curve_probes(curve, wanted, FREQ_PROBE_NEAR, probes);
    struct freq_target target = freq_target_of(curve, probes, count);
    struct freq_prediction *out = xcalloc(curve->count + 1, sizeof *out);
    double *mhz = xcalloc(curve->count + 1, sizeof *mhz);
    for (size_t i = 0; i < curve->count; i++)
        mhz[i] = curve->samples[i].freq_mhz;
    enum err err = kind->predict(state, &target, mhz, curve->count, out, why);
    if (!err)
        freq_errors_add(errors, curve, out);
    free(out);
    free(mhz);
    /* An application without activities is not used for activity models. */
    return err == ERR_NO_DATA ? ERR_OK : err;
}

/* The curves except those of one fold; the samples are shared. */
static struct freq_curves without(const struct freq_curves *curves, size_t fold, size_t folds,
                                  struct freq_curve *scratch)
{
    struct freq_curves rest = {.items = scratch};
    for (size_t i = 0; i < curves->count; i++)
        if (i % folds != fold)
            scratch[rest.count++] = curves->items[i];
    return rest;
}

enum err freq_calibrate(const struct freq_model_kind *kind, const void *state,
                        const struct freq_curves *curves, const struct freq_model_options *options,
                        double *error, struct error *why)
{
    enum { SLOW_FOLDS = 4 };
    size_t folds = kind->is_slow && curves->count > SLOW_FOLDS ? SLOW_FOLDS : curves->count;
    struct freq_errors errors;
    if (kind->errors) {
        kind->errors(state, error);
        return ERR_OK;
    }
    struct freq_curve *scratch = xcalloc(curves->count + 1, sizeof *scratch);
    enum err err = ERR_OK;
    freq_errors_init(&errors, curves);
    for (size_t fold = 0; !err && curves->count > 1 && fold < folds; fold++) {
        struct freq_curves rest = without(curves, fold, folds, scratch);
        struct error unable = {0};
        void *other = NULL;
        /* Too few applications remain: the interval stays unknown. */
        if (kind->fit(&rest, options, &other, &unable))
            continue;
        for (size_t i = fold; !err && i < curves->count; i += folds)
            err = collect(kind, other, &curves->items[i], &errors, why);
        freq_state_free(kind->fields, other);
    }
    freq_errors_finish(&errors, error);
    free(scratch);
    return err;
}
