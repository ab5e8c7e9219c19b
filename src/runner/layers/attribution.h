/* The account of a model: component times, powers from the windows, joules of its layers, and the checks
 * on them.  Works on what was measured; measures and owns nothing. */
#ifndef IPW_RUNNER_LAYERS_ATTRIBUTION_H
#define IPW_RUNNER_LAYERS_ATTRIBUTION_H

#include "core/err.h"
#include "runner/layers/layers.h"
#include "runner/layers/workload.h"

/* Sensor updates that a window needs before its energy is usable. */
enum { ATTRIBUTION_UPDATES = 10 };

/* Fills the instrumentation overhead of a setting: of a computation, the lowest decile with stops against
 * that without, since other load on the machine only lengthens. */
void attribution_overhead(struct layers_setting *setting, const struct replay_times *times);

/* Fills wall time and joules of a pass of each setting, from the plain windows, and the overhead of the
 * whole workload.  Comes before attribution_times. */
void attribution_settings(struct layers_model *model);

/* Fills the times of a setting's columns, and adds those of its slots to the shares of the model. */
void attribution_times(struct layers_model *model, struct layers_setting *setting,
                       const struct replay_times *times);

/* Fills everything else, once the times are there.  A model whose energy is unknown gets the reason, not
 * an error. */
enum err attribution_energy(struct layers_model *model, unsigned seed) MUST_USE;

#endif
