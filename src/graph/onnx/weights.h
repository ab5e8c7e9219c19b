/* Weights that are turned, cut or put together before they are used, and all else that no input has a part
 * in: a runtime does that once, when it loads the model, so no node of the graph is left of it, and the
 * parameters stay those of the file.  Works on the
 * caller's step. */
#ifndef IPW_GRAPH_ONNX_WEIGHTS_H
#define IPW_GRAPH_ONNX_WEIGHTS_H

#include "graph/onnx/operators.h"

/* True when the node only does that: its outputs then lead to their weights. */
bool weights_follow(struct step *step);
/* True when all that it reads is the same at every pass, so that what it makes is too. */
bool weights_are_fixed(struct step *step);
/* Is what goes in first a weight of numbers that are not integers? */
bool weights_are_real(const struct step *step);

#endif
