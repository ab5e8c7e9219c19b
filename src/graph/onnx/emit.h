/* From a step, once its shapes are known, to nodes and tensors of the graph.  The graph is the work's. */
#ifndef IPW_GRAPH_ONNX_EMIT_H
#define IPW_GRAPH_ONNX_EMIT_H

#include "graph/onnx/operators.h"

/* A tensor that comes from outside. */
enum err emit_input(struct work *work, int32_t value) MUST_USE;
enum err emit_node(struct step *step) MUST_USE;

#endif
