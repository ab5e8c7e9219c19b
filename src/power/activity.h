/* Common code of the activity models, which predict power and relative time, T / T(fmax), from the activities of an
 * application at fmax and the relative clock, f / fmax: the rows they are fitted to, and their predictions.
 *
 * Ownership: activity_rows_release frees rows. */
#ifndef IPW_POWER_ACTIVITY_H
#define IPW_POWER_ACTIVITY_H

#include <stddef.h>

#include "core/err.h"
#include "power/freq_model.h"

enum activity_feature { ACTIVITY_FP, ACTIVITY_DRAM, ACTIVITY_CLOCK, ACTIVITY_FEATURES };

struct activity_row {
    double features[ACTIVITY_FEATURES];
    double fmax_mhz;
    double power_w;
    double time_s, fmax_time_s; /* UNKNOWN: no time */
};

struct activity_rows {
    struct activity_row *items;
    size_t count;
};

/* One row per sample with its own activities; applications without any are excluded.  ERR_NO_DATA if all are. */
enum err activity_rows_of(const struct freq_curves *curves, struct activity_rows *out,
                          struct error *why) MUST_USE;
void activity_rows_release(struct activity_rows *rows);

/* A model: computes watts and relative times from a row of features. */
typedef enum err activity_function(const void *state, const struct freq_target *target,
                                   const double (*features)[ACTIVITY_FEATURES], size_t count,
                                   double *watts, double *relative, struct error *why);
enum err activity_predict(activity_function *function, const void *state,
                          const struct freq_target *target, const double *mhz, size_t count,
                          struct freq_prediction *out, struct error *why) MUST_USE;

#endif
