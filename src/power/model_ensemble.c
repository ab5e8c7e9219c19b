/* ensemble: the mean of roofline, poly2 and fgcs, each weighted by the inverse square of its error on applications that
 * it was not fitted to.  A member that cannot be fitted (no activities) or does not predict the figure is skipped. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "port/json_read.h"
#include "power/freq_model.h"

extern const struct freq_model_kind freq_model_roofline, freq_model_poly2, freq_model_fgcs;

static const struct freq_model_kind *const MEMBERS[] = {&freq_model_roofline, &freq_model_poly2,
                                                        &freq_model_fgcs};
enum { COUNT = 3 };

struct ensemble {
    void *states[COUNT]; /* NULL: skipped */
    double weights[COUNT];
    double errors[COUNT][FREQ_FIGURES]; /* half-widths of their intervals, while fitting */
};

static void ensemble_release(void *state)
{
    struct ensemble *ensemble = state;
    for (size_t i = 0; i < COUNT; i++)
        if (ensemble->states[i])
            MEMBERS[i]->release(ensemble->states[i]);
    free(ensemble);
}

/* ---- fitting ---- */

/* From the half-widths of the member's own intervals; 1 if they are unknown. */
static enum err set_weights(struct ensemble *ensemble, size_t i, const struct freq_curves *curves,
                            const struct freq_model_options *options, struct error *why)
{
    double *error = ensemble->errors[i];
    enum err err = freq_calibrate(MEMBERS[i], ensemble->states[i], curves, options, error, why);
    ensemble->weights[i] =
        error[FREQ_POWER_W] > 0 ? 1 / (error[FREQ_POWER_W] * error[FREQ_POWER_W]) : 1;
    return err;
}

static enum err ensemble_fit(const struct freq_curves *curves,
                             const struct freq_model_options *options, void **state,
                             struct error *why)
{
    struct ensemble *ensemble = calloc(1, sizeof *ensemble);
    size_t fitted = 0;
    *state = NULL;
    if (!ensemble)
        return err_no_memory(why);
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < COUNT; i++) {
        if (MEMBERS[i]->fit(curves, options, &ensemble->states[i], why)) {
            ensemble->states[i] = NULL;
            continue;
        }
        err = set_weights(ensemble, i, curves, options, why);
        fitted++;
    }
    if (!err && !fitted)
        err = ERR_NO_DATA; /* *why is the last member's */
    if (err)
        ensemble_release(ensemble);
    else
        *state = ensemble;
    return err;
}

/* The error of a weighted mean is at most the weighted mean of the errors. */
static enum err ensemble_calibrate(const void *state, const struct freq_curves *curves,
                                   const struct freq_model_options *options, double *error,
                                   struct error *why)
{
    const struct ensemble *ensemble = state;
    (void)curves, (void)options, (void)why;
    for (size_t k = 0; k < FREQ_FIGURES; k++) {
        double sum = 0, weights = 0;
        for (size_t i = 0; i < COUNT; i++)
            if (ensemble->states[i] && is_known(ensemble->errors[i][k])) {
                sum += ensemble->weights[i] * ensemble->errors[i][k];
                weights += ensemble->weights[i];
            }
        error[k] = weights > 0 ? sum / weights : UNKNOWN;
    }
    return ERR_OK;
}

/* ---- predicting ---- */

static void add_member(const struct freq_prediction *of, double weight, size_t count,
                       struct freq_prediction *out, double (*sums)[FREQ_FIGURES])
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            if (is_known(of[i].figures[k].value)) {
                out[i].figures[k].value += weight * of[i].figures[k].value;
                out[i].is_extrapolated |= of[i].is_extrapolated;
                sums[i][k] += weight;
            }
}

static enum err ensemble_predict(const void *state, const struct freq_target *target,
                                 const double *mhz, size_t count, struct freq_prediction *out,
                                 struct error *why)
{
    const struct ensemble *ensemble = state;
    struct freq_prediction *one = calloc(count + 1, sizeof *one);
    double(*sums)[FREQ_FIGURES] = calloc(count + 1, sizeof *sums);
    enum err err = one && sums ? ERR_NO_DATA : err_no_memory(why);
    for (size_t i = 0; i < count; i++)
        out[i] = (struct freq_prediction){.freq_mhz = mhz[i]};
    for (size_t m = 0; err != ERR_NO_MEMORY && m < COUNT; m++) {
        if (!ensemble->states[m] ||
            MEMBERS[m]->predict(ensemble->states[m], target, mhz, count, one, why))
            continue;
        add_member(one, ensemble->weights[m], count, out, sums);
        err = ERR_OK;
    }
    for (size_t i = 0; !err && i < count; i++)
        for (size_t k = 0; k < FREQ_FIGURES; k++)
            out[i].figures[k] = freq_value_within(
                sums[i][k] > 0 ? out[i].figures[k].value / sums[i][k] : UNKNOWN, UNKNOWN);
    free(one);
    free(sums);
    return err;
}

/* ---- files ---- */

static void ensemble_save(const void *state, struct json *json)
{
    const struct ensemble *ensemble = state;
    json_array(json, "members");
    for (size_t i = 0; i < COUNT; i++) {
        if (!ensemble->states[i])
            continue;
        json_object(json, NULL);
        json_string(json, "model", MEMBERS[i]->name);
        json_number(json, "weight", ensemble->weights[i]);
        json_object(json, "state");
        MEMBERS[i]->save(ensemble->states[i], json);
        json_object_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

static enum err ensemble_load(const struct jv *object, void **state, struct error *why)
{
    struct ensemble *ensemble = calloc(1, sizeof *ensemble);
    enum err err = ensemble ? ERR_OK : err_no_memory(why);
    size_t loaded = 0;
    const struct jv *item = jv_first(jv_get(object, "members"));
    for (; !err && item; item = jv_next(item)) {
        const char *name = jv_text(jv_get(item, "model"));
        size_t i = 0;
        while (i < COUNT && (!name || strcmp(MEMBERS[i]->name, name) != 0))
            i++;
        if (i == COUNT || ensemble->states[i]) {
            err = err_set(why, ERR_BAD_VALUE, "damaged state of model ensemble");
            break;
        }
        ensemble->weights[i] = jv_number(jv_get(item, "weight"));
        err = ensemble->weights[i] > 0
                  ? MEMBERS[i]->load(jv_get(item, "state"), &ensemble->states[i], why)
                  : err_set(why, ERR_BAD_VALUE, "damaged weights of model ensemble");
        loaded++;
    }
    if (!err && !loaded)
        err = err_set(why, ERR_BAD_VALUE, "model ensemble without members");
    if (err && ensemble)
        ensemble_release(ensemble);
    else
        *state = ensemble;
    return err;
}

const struct freq_model_kind freq_model_ensemble = {
    .name = "ensemble",
    .summary = "mean of roofline, poly2 and fgcs, weighted by their errors",
    .has_probes = true,
    .is_slow = true,
    .fit = ensemble_fit,
    .predict = ensemble_predict,
    .calibrate = ensemble_calibrate,
    .save = ensemble_save,
    .load = ensemble_load,
    .release = ensemble_release,
};
