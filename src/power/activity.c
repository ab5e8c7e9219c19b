#include "power/activity.h"

#include <math.h>
#include <stdlib.h>

#include "core/xalloc.h"
#include "core/units.h"
#include "stats/descriptive.h"

enum { NEAR_FMAX = 5, PROBES_MAX = 64 };

void activity_rows_release(struct activity_rows *rows)
{
    free(rows->items);
    *rows = (struct activity_rows){0};
}

static void add_curve(const struct freq_curve *curve, struct activity_rows *out)
{
    double fp = freq_curve_activity(curve, FREQ_FP), dram = freq_curve_activity(curve, FREQ_DRAM);
    struct freq_sample at_fmax = {.time_s = UNKNOWN};
    if (!is_known(fp) || !is_known(dram))
        return;
    (void)freq_curve_probes(curve, 1, NEAR_FMAX, &at_fmax);
    for (size_t i = 0; i < curve->count; i++) {
        const struct freq_sample *s = &curve->samples[i];
        const double own_fp = s->activity[FREQ_FP], own_dram = s->activity[FREQ_DRAM];
        out->items[out->count++] =
            (struct activity_row){.features = {known_or(own_fp, fp), known_or(own_dram, dram),
                                               s->freq_mhz / curve->fmax_mhz},
                                  .fmax_mhz = curve->fmax_mhz,
                                  .power_w = s->power_w,
                                  .time_s = s->time_s,
                                  .fmax_time_s = at_fmax.time_s};
    }
}

enum err activity_rows_of(const struct freq_curves *curves, struct activity_rows *out,
                          struct error *why)
{
    size_t samples = 0;
    for (size_t i = 0; i < curves->count; i++)
        samples += curves->items[i].count;
    *out = (struct activity_rows){.items = xcalloc(samples + 1, sizeof *out->items)};
    for (size_t i = 0; i < curves->count; i++)
        add_curve(&curves->items[i], out);
    if (out->count)
        return ERR_OK;
    activity_rows_release(out);
    return err_set(why, ERR_NO_DATA, "no activities (fp, dram): this model needs them");
}

/* Features of a target at a clock; ERR_NO_DATA without its activities or fmax. */
static enum err activity_features(const struct freq_target *target, double mhz, double *features,
                                  struct error *why)
{
    double fmax_mhz = target->fmax_mhz;
    if (!(fmax_mhz > 0) && target->probe_count)
        fmax_mhz = target->probes[0].freq_mhz;
    features[ACTIVITY_FP] = target->activity[FREQ_FP];
    features[ACTIVITY_DRAM] = target->activity[FREQ_DRAM];
    features[ACTIVITY_CLOCK] = mhz / fmax_mhz;
    if (!is_known(features[ACTIVITY_FP]) || !is_known(features[ACTIVITY_DRAM]))
        return err_set(why, ERR_NO_DATA, "this model needs the activities fp and dram at fmax");
    if (!(fmax_mhz > 0))
        return err_set(why, ERR_NO_DATA, "this model needs fmax");
    return ERR_OK;
}

/* Ratio of measured to predicted watts, the median of the probes; 1 without probes. */
static double anchor_of(const struct freq_target *target, const double *at_probes)
{
    double ratios[PROBES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < target->probe_count && count < PROBES_MAX; i++)
        if (target->probes[i].power_w > 0 && at_probes[i] > 0)
            ratios[count++] = target->probes[i].power_w / at_probes[i];
    return count ? select_median(ratios, count) : 1;
}

/* Predictions from watts and relative times (UNKNOWN: none) at mhz[count].  With probes, watts are re-anchored:
 * scaled by the median ratio of measured to predicted watts; `at_probes` are the watts predicted there. */
static void activity_finish(const struct freq_target *target, const double *mhz,
                            const double *watts, const double *relative, size_t count,
                            const double *at_probes, struct freq_prediction *out)
{
    double anchor = anchor_of(target, at_probes);
    double time = target->fmax_time_s;
    double window = target->fmax_window_s;
    if (!(time > 0))
        time = target->probe_count ? target->probes[0].time_s : UNKNOWN;
    if (!(window > 0))
        window = target->probe_count ? target->probes[0].window_s : time;
    for (size_t i = 0; i < count; i++) {
        double power = fmax(anchor * watts[i], target->idle_w > 0 ? target->idle_w : 0);
        double slower = fmax(0, relative[i]);
        out[i] = (struct freq_prediction){.freq_mhz = mhz[i]};
        out[i].figures[FREQ_POWER_W] = freq_value_within(power, UNKNOWN);
        out[i].figures[FREQ_TIME_S] =
            freq_value_within(is_known(relative[i]) ? time * slower : UNKNOWN, UNKNOWN);
        out[i].figures[FREQ_ENERGY_J] =
            freq_value_within(is_known(relative[i]) ? power * window * slower : UNKNOWN, UNKNOWN);
    }
}

enum err activity_predict(activity_function *function, const void *state,
                          const struct freq_target *target, const double *mhz, size_t count,
                          struct freq_prediction *out, struct error *why)
{
    size_t all = count + target->probe_count;
    double(*features)[ACTIVITY_FEATURES] = xcalloc(all + 1, sizeof *features);
    double *watts = xcalloc(all + 1, sizeof *watts), *relative = xcalloc(all + 1, sizeof *relative);
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < all; i++)
        err = activity_features(target, i < count ? mhz[i] : target->probes[i - count].freq_mhz,
                                features[i], why);
    if (!err)
        err = function(state, target, (const double(*)[ACTIVITY_FEATURES])features, all, watts,
                       relative, why);
    if (!err)
        activity_finish(target, mhz, watts, relative, count, watts + count, out);
    free(features);
    free(watts);
    free(relative);
    return err;
}
