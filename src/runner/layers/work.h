/* The work of the components, counted from the model's shape: FLOPs and bytes of a pass of the
 * workload, beside which the measured joules can be put. */
#ifndef IPW_RUNNER_LAYERS_WORK_H
#define IPW_RUNNER_LAYERS_WORK_H

#include "runner/layers.h"

/* Reads the shape; a model whose shape is not known gets the reason. */
void work_read(struct layers_model *model);

/* Fills model->work.  ubatch: tokens that the engine computes in one graph. */
void work_count(struct layers_model *model, unsigned batch, unsigned generate, uint32_t ubatch);

#endif
