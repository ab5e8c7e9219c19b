/* Times of components, undisturbed, out of windows that were disturbed by being watched. */
#ifndef IPW_RUNNER_LAYERS_TIMES_H
#define IPW_RUNNER_LAYERS_TIMES_H

#include "runner/layers.h"
#include "runner/layers/replay.h"

/* Fills the slowdown of a setting by its stops: of a computation, the lowest tenth with them against
 * that without, since what else runs on the machine only ever slows. */
void times_overhead(struct layers_setting *setting, const struct replay_times *times);

/* Fills the times of a setting's columns, and adds those of its slots to the shares of the model.
 *
 * Each stop costs the same, and its cost is in the segment that it ends: what a watched pass takes
 * longer than an undisturbed one, shared by the stops, is taken off.  What is then
 * left is scaled to the undisturbed pass less the host's part. */
void times_settle(struct layers_model *model, struct layers_setting *setting,
                  const struct replay_times *times);

#endif
