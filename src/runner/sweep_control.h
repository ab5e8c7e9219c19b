/* The knobs of a sweep that are the GPU's own: gpu-clock and mem-clock in MHz, power-limit in W.  Each attempt is made
 * with the values of its point, and the GPU is watched meanwhile.  The value "default" leaves a knob as it was found. */
#ifndef IPW_RUNNER_SWEEP_CONTROL_H
#define IPW_RUNNER_SWEEP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "rundir/sweep.h"

struct sweep_control;

/* Whether the values are numbers, of at least one such knob.  ERR_USAGE names what is wrong; touches no GPU. */
enum err sweep_control_check(const struct sweep *sweep, struct error *why) MUST_USE;

/* What sweep_control_begin checks, by queries alone: nothing is locked or set. */
enum err sweep_control_plan(const struct sweep *sweep, struct error *why) MUST_USE;

/* ERR_USAGE, with those there are, when --devices names a GPU that is not there. */
enum err sweep_control_devices(const char *devices, struct error *why) MUST_USE;

/* Takes control of the GPU that the sweep's --devices option selects, and checks that it supports the values (ERR_USAGE
 * names the nearest ones) and that they may be set: one of each knob is, for a moment.  Other errors are those of gpu_control_begin. */
enum err sweep_control_begin(const struct sweep *sweep, struct sweep_control **out,
                             struct error *why) MUST_USE;

/* The graphics clocks that the GPU supports at its highest memory clock and that are at least `least` MHz, highest first.
 * The caller frees *out.  The GPU, which --devices selects, is not changed. */
enum err sweep_control_clocks(const char *devices, double least, double **out, size_t *count,
                              struct error *why) MUST_USE;

/* Degrees Celsius of that GPU, UNKNOWN where it does not report them. */
enum err sweep_control_temperature(struct sweep_control *control, const struct sweep *sweep,
                                   double *celsius, struct error *why) MUST_USE;

/* Whether that error leaves measuring without control, which sweep_control_forgo prepares: the knobs keep the one value
 * "default", and points that then are the same are dropped. */
bool sweep_control_is_refused(enum err err);
enum err sweep_control_forgo(struct sweep *sweep, const struct error *reason) MUST_USE;

/* The device, as messages name it. */
const char *sweep_control_device(const struct sweep_control *control);

/* Sets the values of a point. */
enum err sweep_control_set(struct sweep_control *control, const struct sweep *sweep, size_t point,
                           struct error *why) MUST_USE;

/* Watches the GPU until sweep_control_unwatch, which returns a flag of the attempt, NULL for none: "throttled",
 * "off_target_clock", "gpu_idle" (it had nothing to do) or "gpu_lost". */
enum err sweep_control_watch(struct sweep_control *control, struct error *why) MUST_USE;
const char *sweep_control_unwatch(struct sweep_control *control);

/* Restores the GPU; NULL does nothing. */
enum err sweep_control_end(struct sweep_control *control, struct error *why) MUST_USE;

/* What gpu_control_restore does, for commands. */
enum err sweep_control_restore(unsigned *restored, unsigned *held, struct error *why) MUST_USE;

#endif
