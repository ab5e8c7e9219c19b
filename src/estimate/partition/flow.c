#include "estimate/partition/flow.h"

#include <stdlib.h>
#include <string.h>

#include "graph/count.h"

bool flow_is_view(const struct graph_node *node)
{
    return graph_op_kind(node->op) == GRAPH_KIND_VIEW;
}

tensor_id flow_input(const struct flow *flow, const struct graph_node *node, size_t index)
{
    if (index >= node->input_count)
        return GRAPH_NONE;
    tensor_id id = graph_inputs(flow->graph, node)[index];
    return id >= 0 ? flow->root[id] : GRAPH_NONE;
}

bool flow_is_computed(const struct flow *flow, tensor_id root)
{
    return root >= 0 && !graph_is_of_model(&flow->graph->tensors[root]);
}

static void find_roots(struct flow *flow)
{
    const struct graph *graph = flow->graph;
    for (size_t i = 0; i < graph->tensor_count; i++)
        flow->root[i] = (tensor_id)i;
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        tensor_id shown = flow_is_view(node) ? flow_input(flow, node, 0) : GRAPH_NONE;
        for (size_t k = 0; shown >= 0 && k < node->output_count; k++)
            if (graph_outputs(graph, node)[k] >= 0)
                flow->root[graph_outputs(graph, node)[k]] = shown;
    }
    for (size_t i = 0; i < graph->tensor_count; i++)
        flow->goes_out[flow->root[i]] |= graph->tensors[i].is_output;
}

/* Twice over the inputs: once to count, once to fill; `last` keeps a node from standing twice. */
static void find_readers(struct flow *flow, node_id *last, bool fills)
{
    const struct graph *graph = flow->graph;
    for (size_t i = 0; i < graph->tensor_count; i++)
        last[i] = GRAPH_NONE;
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        if (flow_is_view(node))
            continue;
        for (size_t k = 0; k < node->input_count; k++) {
            tensor_id root = flow_input(flow, node, k);
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

static enum err link_readers(struct flow *flow)
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
        find_readers(flow, last, true); /* moves each start to its end: the start of the next */
        memmove(flow->first_reader + 1, flow->first_reader, count * sizeof *flow->first_reader);
        flow->first_reader[0] = 0;
    }
    free(last);
    return flow->readers ? ERR_OK : ERR_NO_MEMORY;
}

enum err flow_make(const struct graph *graph, struct flow *out)
{
    size_t count = graph->tensor_count;
    *out = (struct flow){.graph = graph,
                         .root = malloc((count + 1) * sizeof *out->root),
                         .goes_out = calloc(count + 1, sizeof *out->goes_out),
                         .first_reader = calloc(count + 2, sizeof *out->first_reader)};
    enum err err = out->root && out->goes_out && out->first_reader ? ERR_OK : ERR_NO_MEMORY;
    if (!err) {
        find_roots(out);
        err = link_readers(out);
    }
    if (err)
        flow_release(out);
    return err;
}

void flow_release(struct flow *flow)
{
    free(flow->root);
    free(flow->goes_out);
    free(flow->first_reader);
    free(flow->readers);
    *flow = (struct flow){0};
}
