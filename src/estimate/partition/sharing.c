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

/* ---- what is divided ---- */

/* What is divided both ways is a matrix of queries, keys and values in one: of its columns, each has its own. */
static struct sharing_division join(const struct sharing_division *a,
                                    const struct sharing_division *b,
                                    const struct graph_attention *attention)
{
    bool columns = a->columns > 0 || b->columns > 0, heads = a->heads_kv > 0 || b->heads_kv > 0;
    bool is_whole = a->is_whole || b->is_whole;
    if (is_whole)
        return (struct sharing_division){.is_whole = true};
    if (!columns || !heads || !attention)
        return (struct sharing_division){.columns = columns, .heads_kv = heads};
    double kept = (double)(attention->heads_kv * (attention->key_size + attention->value_size));
    double all = kept + (double)(attention->heads * attention->key_size);
    return (struct sharing_division){.columns = 1 - kept / all, .heads_kv = kept / all};
}

static struct sharing_division division_of_outputs(const struct sharing *sharing,
                                                   const struct graph_node *node)
{
    const struct flow *flow = sharing->flow;
    struct sharing_division all = {0};
    for (size_t k = 0; k < node->output_count; k++) {
        tensor_id id = graph_outputs(flow->graph, node)[k];
        if (id >= 0)
            all = join(&all, &sharing->divided[flow->root[id]], NULL);
    }
    all.is_whole = !(all.columns > 0 || all.heads_kv > 0);
    return all;
}

/* What a node wants of its inputs: rows of a second matrix meet columns, attention is done head by head, and
 * whatever else makes something that is divided takes it so.  A first matrix takes it whole. */
static struct sharing_division division_of_input(const struct sharing *sharing,
                                                 const struct graph_node *node, size_t index)
{
    bool is_summed = sharing_is_summed(node);
    if (node->op == GRAPH_LINEAR)
        return (struct sharing_division){.columns = index == 0 && is_summed,
                                         .is_whole = index > 0 || !is_summed};
    if (node->op == GRAPH_ATTENTION)
        return (struct sharing_division){.columns = index == 0, .heads_kv = index > 0};
    if (node->op == GRAPH_CACHE_WRITE) /* for later passes, whether or not this one reads it */
        return (struct sharing_division){.heads_kv = 1};
    return division_of_outputs(sharing, node);
}

/* From the end to the start, so that it is known of what a node makes before its inputs are asked for. */
static void find_divided(struct sharing *sharing)
{
    const struct flow *flow = sharing->flow;
    const struct graph_attention *attention = NULL;
    for (size_t i = flow->graph->node_count; i-- > 0;) {
        const struct graph_node *node = &flow->graph->nodes[i];
        if (node->op == GRAPH_ATTENTION)
            attention = &node->as.attention;
        if (flow_is_view(flow, node))
            continue;
        for (size_t k = 0; k < node->input_count; k++) {
            tensor_id root = flow_input(flow, node, k);
            if (root < 0)
                continue;
            struct sharing_division wanted = division_of_input(sharing, node, k);
            sharing->divided[root] = join(&sharing->divided[root], &wanted, attention);
        }
    }
}

bool sharing_is_divided(const struct sharing *sharing, const struct graph_node *node)
{
    struct sharing_division made = division_of_outputs(sharing, node);
    bool is_kept = sharing->is_decoder && node->op == GRAPH_CACHE_WRITE;
    return made.columns > 0 || made.heads_kv > 0 || is_kept;
}

bool sharing_is_shared_matrix(const struct sharing *sharing, const struct graph_node *node)
{
    return node->op == GRAPH_LINEAR &&
           (!sharing->is_decoder || node->component == DECODER_HEAD || sharing_is_summed(node) ||
            sharing_is_divided(sharing, node));
}

/* ---- all ---- */

enum err sharing_make(const struct flow *flow, bool is_decoder, struct sharing *out)
{
    size_t tensors = flow->graph->tensor_count + 1;
    *out = (struct sharing){.flow = flow,
                            .is_decoder = is_decoder,
                            .is_part = calloc(tensors, sizeof *out->is_part),
                            .divided = calloc(tensors, sizeof *out->divided)};
    if (!out->is_part || !out->divided) {
        sharing_release(out);
        return ERR_NO_MEMORY;
    }
    find_parts(out);
    if (is_decoder)
        find_divided(out);
    return ERR_OK;
}

void sharing_release(struct sharing *sharing)
{
    free(sharing->is_part);
    free(sharing->divided);
    *sharing = (struct sharing){0};
}
