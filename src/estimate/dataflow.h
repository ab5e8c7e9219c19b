/* Data flow of a graph with views resolved: a view is another shape of the same elements, so whatever reads a
 * view reads the tensor behind it, its root.  Where kernels are fused, transposes and slices are resolved too:
 * a fused kernel reads such an operand in place.
 *
 * Ownership: dataflow_make fills a struct that dataflow_release frees; it points into the graph. */
#ifndef IPW_ESTIMATE_DATAFLOW_H
#define IPW_ESTIMATE_DATAFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"

struct dataflow {
    const struct graph *graph;
    bool is_in_place;       /* rearranged tensors are resolved like views */
    tensor_id *root;        /* by tensor: the tensor that holds its elements, mostly itself */
    bool *is_output;        /* by root: it, or a view of it, is an output of the model */
    uint32_t *first_reader; /* by root: index into readers; one entry more at the end */
    node_id *readers;       /* in graph order, each once; views are not among them */
};

enum err dataflow_make(const struct graph *graph, bool is_in_place, struct dataflow *out) MUST_USE;
void dataflow_release(struct dataflow *flow);

static inline uint32_t dataflow_reader_count(const struct dataflow *flow, tensor_id root)
{
    return flow->first_reader[root + 1] - flow->first_reader[root];
}

/* The root of an input; GRAPH_NONE when the input is omitted. */
tensor_id dataflow_input(const struct dataflow *flow, const struct graph_node *node, size_t index);

/* Is it computed or an input, rather than a part of the model?  False for GRAPH_NONE. */
bool dataflow_is_computed(const struct dataflow *flow, tensor_id root);

bool dataflow_is_view(const struct dataflow *flow, const struct graph_node *node);

#endif
