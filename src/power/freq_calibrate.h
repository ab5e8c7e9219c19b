/* How wide the intervals of a model must be, for applications that it was not fitted to.
 *
 * They are conformal: the model is fitted again without each application, and the interval is as wide as FREQ_LEVEL of
 * the relative errors on the one left out.  That assumes nothing of the model, and `ipw power validate` reports how many
 * measurements the intervals really cover. */
#ifndef IPW_POWER_FREQ_CALIBRATE_H
#define IPW_POWER_FREQ_CALIBRATE_H

#include "power/freq_model.h"

/* error[FREQ_FIGURES]: relative half-widths; UNKNOWN with fewer than two curves.  By the kind's own way where it has
 * one. */
enum err freq_calibrate(const struct freq_model_kind *kind, const void *state,
                        const struct freq_curves *curves, const struct freq_model_options *options,
                        double *error, struct error *why) MUST_USE;

/* Relative errors of predictions, by figure, as they are collected. */
struct freq_errors {
    double *items[FREQ_FIGURES];
    size_t count[FREQ_FIGURES];
};
/* With capacity for every sample of the curves. */
enum err freq_errors_init(struct freq_errors *errors, const struct freq_curves *curves) MUST_USE;
void freq_errors_add(struct freq_errors *errors, const struct freq_sample *measured,
                     const struct freq_prediction *predicted);
/* The half-widths; releases the errors. */
void freq_errors_finish(struct freq_errors *errors, double *error);

/* The probes that a calibration imagines of a new application. */
enum { FREQ_PROBES = 3, FREQ_PROBE_NEAR = 5 };

/* The target of a curve that the model does not know: its probes, and its activities and times at fmax. */
struct freq_target freq_target_of(const struct freq_curve *curve, const struct freq_sample *probes,
                                  size_t probe_count);

#endif
