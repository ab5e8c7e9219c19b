/* The knobs of a sweep that are set on the GPU (core/knob.def).  Each attempt runs at the settings of its point, and the
 * GPU is monitored meanwhile.  "default" leaves a knob unchanged. */
#ifndef IPW_RUNNER_SWEEP_CONTROL_H
#define IPW_RUNNER_SWEEP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "rundir/sweep.h"

struct sweep_control;

/* Checks that the values are numbers, and that there is at least one such knob.  ERR_USAGE says why not.  Accesses no
 * GPU. */
enum err sweep_control_check(const struct sweep *sweep, struct error *why) MUST_USE;

/* The checks of sweep_control_begin by queries only: nothing is locked or set. */
enum err sweep_control_plan(const struct sweep *sweep, struct error *why) MUST_USE;

/* ERR_USAGE, listing the available ones, if --devices names a GPU that does not exist. */
enum err sweep_control_devices(const char *devices, struct error *why) MUST_USE;

/* Takes control of the GPU selected by the sweep's --devices option, and checks that it supports the values (ERR_USAGE
 * names the nearest ones) and that they may be set, by setting one value of each knob briefly.  Other errors:
 * gpu_control_begin. */
enum err sweep_control_begin(const struct sweep *sweep, struct sweep_control **out,
                             struct error *why) MUST_USE;

/* The graphics clocks supported at the highest memory clock that are at least `min` MHz, highest first. The caller
 * frees *out.  The GPU, selected by --devices, is not changed. */
enum err sweep_control_clocks(const char *devices, double min, double **out, size_t *count,
                              struct error *why) MUST_USE;

/* Temperature of that GPU in degrees Celsius; UNKNOWN if not reported. */
enum err sweep_control_temperature(struct sweep_control *control, const struct sweep *sweep,
                                   double *celsius, struct error *why) MUST_USE;

/* Whether measuring without control is possible after this error.  sweep_control_disable prepares it: the knobs keep
 * only the value "default", and points that become equal are dropped. */
bool sweep_control_is_refused(enum err err);
void sweep_control_disable(struct sweep *sweep, const struct error *reason);

/* Name of the device for messages. */
const char *sweep_control_device(const struct sweep_control *control);

/* Sets the values of a point. */
enum err sweep_control_set(struct sweep_control *control, const struct sweep *sweep, size_t point,
                           struct error *why) MUST_USE;

/* Monitors the GPU until sweep_control_unwatch, which returns a flag of the attempt; ATTEMPT_FLAGS: none. */
enum err sweep_control_watch(struct sweep_control *control, struct error *why) MUST_USE;
enum attempt_flag sweep_control_unwatch(struct sweep_control *control);

/* Restores the GPU; NULL does nothing. */
enum err sweep_control_end(struct sweep_control *control, struct error *why) MUST_USE;

/* gpu_control_restore for commands. */
enum err sweep_control_restore(unsigned *restored, unsigned *held, struct error *why) MUST_USE;

#endif
