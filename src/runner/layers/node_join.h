/* The nodes that ONNX Runtime ran, beside the kernels of the estimate: joined by the names of nodes and of the tensors that
 * they produce, which the runtime keeps when it fuses some. */
#ifndef IPW_RUNNER_LAYERS_NODE_JOIN_H
#define IPW_RUNNER_LAYERS_NODE_JOIN_H

#include "engine/onnx_inputs.h"
#include "runner/layers/layers.h"
#include "runner/layers/node_trace.h"

struct node_question {
    const char *path;
    const struct onnx_facts *facts;
    const struct onnx_inputs *inputs;
    const struct candidate_options *device; /* NULL or without a device: this machine's processor */
};

/* The number of nodes of a file; 0: unknown, as without sizes of free dimensions. */
size_t nodes_in_file(const char *path, const struct params *dims);

/* Fills model->nodes, and the parameters of its facts.  Without an estimate the nodes are those of the trace, and
 * estimate_unknown says why. */
void nodes_join(const struct node_question *question, const struct node_trace *trace,
                struct layers_model *model);

#endif
