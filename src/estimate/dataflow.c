#include "estimate/dataflow.h"

#include <stdlib.h>
#include <string.h>

#include "graph/count.h"

/* An output of the model must be stored in its own order. */
static bool leaves_model(const struct graph *graph, const struct graph_node *node)
{
    for (size_t i = 0; i < node->output_count; i++)
        if (graph_output(graph, node, i) && graph_output(graph, node, i)->is_output)
            return true;
    return false;
}

/* All elements of one tensor in another order, moved slice by slice: a roll, space-to-depth. */
static bool is_reordered(const struct dataflow *flow, const struct graph_node *node)
{
    tensor_id root = dataflow_input(flow, node, 0);
    if (node->op != GRAPH_MOVE || node->input_count < 2 || node->output_count != 1 || root < 0)
        return false;
    for (size_t i = 1; i < node->input_count; i++)
        if (dataflow_input(flow, node, i) != root)
            return false;
    const struct graph_tensor *out = graph_output(flow->graph, node, 0);
    return out && graph_elements(out) == graph_elements(&flow->graph->tensors[root]) &&
           graph_inputs(flow->graph, node)[0] != root;
}

bool dataflow_is_view(const struct dataflow *flow, const struct graph_node *node)
{
    return graph_op_kind(node->op) == GRAPH_KIND_VIEW ||
           (flow->is_in_place && !leaves_model(flow->graph, node) &&
            (node->op == GRAPH_REARRANGE || is_reordered(flow, node)));
}

tensor_id dataflow_input(const struct dataflow *flow, const struct graph_node *node, size_t index)
{
    if (index >= node->input_count)
        return GRAPH_NONE;
    tensor_id id = graph_inputs(flow->graph, node)[index];
    return id >= 0 ? flow->root[id] : GRAPH_NONE;
}

bool dataflow_is_computed(const struct dataflow *flow, tensor_id root)
{
    return root >= 0 && !graph_is_static(&flow->graph->tensors[root]);
}

static void find_roots(struct dataflow *flow)
{
    const struct graph *graph = flow->graph;
    for (size_t i = 0; i < graph->tensor_count; i++)
        flow->root[i] = (tensor_id)i;
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        tensor_id shown = dataflow_is_view(flow, node) ? dataflow_input(flow, node, 0) : GRAPH_NONE;
        for (size_t k = 0; shown >= 0 && k < node->output_count; k++)
            if (graph_outputs(graph, node)[k] >= 0)
                flow->root[graph_outputs(graph, node)[k]] = shown;
    }
    for (size_t i = 0; i < graph->tensor_count; i++)
        flow->is_output[flow->root[i]] |= graph->tensors[i].is_output;
}

/* Runs twice over all inputs, to count readers and to fill them in; `last` keeps a node from being listed
 * twice for one root. */
static void find_readers(struct dataflow *flow, node_id *last, bool fills)
{
    const struct graph *graph = flow->graph;
    for (size_t i = 0; i < graph->tensor_count; i++)
        last[i] = GRAPH_NONE;
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        if (dataflow_is_view(flow, node))
            continue;
        for (size_t k = 0; k < node->input_count; k++) {
            tensor_id root = dataflow_input(flow, node, k);
            if (root < 0 || last[root] == (node_id)i)
                continue;
            last[root] = (node_id)i;
            if (fills)
                flow->readers[flow->first_reader[root]++] = (node_id)i;
            else
                flow->first_reader[root + 1]++;
        }
    }
}

static enum err link_readers(struct dataflow *flow)
{
    size_t count = flow->graph->tensor_count;
    node_id *last = malloc((count + 1) * sizeof *last);
    if (!last)
        return ERR_NO_MEMORY;
    find_readers(flow, last, false);
    for (size_t i = 0; i < count; i++)
        flow->first_reader[i + 1] += flow->first_reader[i];
    flow->readers = malloc((flow->first_reader[count] + 1) * sizeof *flow->readers);
    if (flow->readers) {
        find_readers(flow, last, true); /* moves each start to its end, the start of the next */
        memmove(flow->first_reader + 1, flow->first_reader, count * sizeof *flow->first_reader);
        flow->first_reader[0] = 0;
    }
    free(last);
    return flow->readers ? ERR_OK : ERR_NO_MEMORY;
}

enum err dataflow_make(const struct graph *graph, bool is_in_place, struct dataflow *out)
{
    size_t count = graph->tensor_count;
    *out = (struct dataflow){.graph = graph,
                             .is_in_place = is_in_place,
                             .root = malloc((count + 1) * sizeof *out->root),
                             .is_output = calloc(count + 1, sizeof *out->is_output),
                             .first_reader = calloc(count + 2, sizeof *out->first_reader)};
    enum err err = out->root && out->is_output && out->first_reader ? ERR_OK : ERR_NO_MEMORY;
    if (!err) {
        find_roots(out);
        err = link_readers(out);
    }
    if (err)
        dataflow_release(out);
    return err;
}

void dataflow_release(struct dataflow *flow)
{
    free(flow->root);
    free(flow->is_output);
    free(flow->first_reader);
    free(flow->readers);
    *flow = (struct dataflow){0};
}
