#include "estimate/partition/sharing.h"

#include <stdlib.h>

bool sharing_is_summed(const struct graph_node *node)
{
    return node->op == GRAPH_LINEAR &&
           (node->component == DECODER_ATTN_OUT || node->component == DECODER_FFN_DOWN);
}

/* ---- parts of sums ---- */

static size_t count_parts(const struct sharing *sharing, const struct graph_node *node)
{
    size_t count = 0;
    for (size_t i = 0; i < node->input_count; i++) {
        tensor_id root = flow_input(sharing->flow, node, i);
        count += root >= 0 && sharing->is_part[root];
    }
    return count;
}

/* Does it give parts for parts: can what it does be done to each addend? */
static bool keeps_parts(const struct sharing *sharing, const struct graph_node *node)
{
    size_t parts = count_parts(sharing, node);
    switch (node->op) {
    case GRAPH_MUL:
        return parts == 1;
    case GRAPH_ADD:
        return parts > 0 && parts == node->input_count;
    case GRAPH_REDUCE: /* of a decoder: the sum over experts */
    case GRAPH_MOVE:
        return parts > 0;
    default:
        return false;
    }
}

static void find_parts(struct sharing *sharing)
{
    const struct flow *flow = sharing->flow;
    for (size_t i = 0; i < flow->graph->node_count; i++) {
        const struct graph_node *node = &flow->graph->nodes[i];
        bool is_part = sharing_is_summed(node) || keeps_parts(sharing, node);
        for (size_t k = 0; is_part && k < node->output_count; k++) {
            tensor_id id = graph_outputs(flow->graph, node)[k];
            if (id >= 0)
                sharing->is_part[flow->root[id]] = true;
        }
    }
}

/* Does somebody need the whole sum? */
static bool is_needed_whole(const struct sharing *sharing, tensor_id root)
{
    const struct flow *flow = sharing->flow;
    uint32_t first = flow->first_reader[root], count = flow_reader_count(flow, root);
    for (uint32_t r = 0; r < count; r++)
        if (!keeps_parts(sharing, &flow->graph->nodes[flow->readers[first + r]]))
            return true;
    return flow->goes_out[root] || count == 0;
}

double sharing_summed(const struct sharing *sharing, const struct graph_node *node)
{
    const struct graph *graph = sharing->flow->graph;
    double numbers = 0;
    for (size_t k = 0; k < node->output_count; k++) {
        tensor_id id = graph_outputs(graph, node)[k];
        if (id >= 0 && sharing->flow->root[id] == id && sharing->is_part[id] &&
            is_needed_whole(sharing, id))
            numbers += graph_elements(&graph->tensors[id]);
    }
    return numbers;
}

/* ---- all ---- */

enum err sharing_make(const struct flow *flow, bool is_decoder, struct sharing *out)
{
    *out = (struct sharing){.flow = flow,
                            .is_decoder = is_decoder,
                            .is_part = calloc(flow->graph->tensor_count + 1, sizeof *out->is_part)};
    if (!out->is_part)
        return ERR_NO_MEMORY;
    find_parts(out);
    return ERR_OK;
}

void sharing_release(struct sharing *sharing)
{
    free(sharing->is_part);
    *sharing = (struct sharing){0};
}
