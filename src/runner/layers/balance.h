/* The account of a model: powers of its components out of the windows, joules of its layers, and the
 * checks on both.  Works on what was measured; measures nothing. */
#ifndef IPW_RUNNER_LAYERS_BALANCE_H
#define IPW_RUNNER_LAYERS_BALANCE_H

#include "core/err.h"
#include "runner/layers.h"

/* Sensor updates that a window needs before its energy counts. */
enum { BALANCE_UPDATES = 10 };

/* Wall time and joules of a pass of each setting, by the undisturbed windows; and the slowdown of the
 * workload, out of the settings'.  Comes before the times are settled. */
void balance_settings(struct layers_model *model);

/* The rest, once the times are there.  A model whose energy is unknown gets the reason, not an error. */
enum err balance_energy(struct layers_model *model, unsigned seed) MUST_USE;

#endif
