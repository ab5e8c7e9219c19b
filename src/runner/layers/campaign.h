/* Measuring one model: rest, then rounds of windows until the ± is small enough. */
#ifndef IPW_RUNNER_LAYERS_CAMPAIGN_H
#define IPW_RUNNER_LAYERS_CAMPAIGN_H

#include <stdatomic.h>

#include "core/err.h"
#include "runner/layers.h"

struct session;

/* Fills *model, whose path is set, as far as it came; layers_model_release gives it back. */
enum err campaign_run(struct session *session, const struct layers_options *options,
                      const atomic_bool *cancel, struct layers_model *model, struct error *why)
    MUST_USE;

void layers_model_release(struct layers_model *model);

#endif
