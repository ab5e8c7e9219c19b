/* Two walks over the graph: forward, to follow partial sums from the row-parallel matrices; backward, to find
 * out which tensors lead only into row-parallel matrices or attention, and are therefore sharded. */
#include "estimate/sharding.h"

#include <stdlib.h>

bool sharding_is_row_parallel(const struct graph_node *node)
{
    return node->op == GRAPH_LINEAR &&
           (node->component == DECODER_ATTN_OUT || node->component == DECODER_FFN_DOWN);
}

/* ---- partial sums ---- */

static size_t count_partial(const struct sharding *sharding, const struct graph_node *node)
{
    size_t count = 0;
    for (size_t i = 0; i < node->input_count; i++) {
        tensor_id root = dataflow_input(sharding->flow, node, i);
        count += root >= 0 && sharding->is_partial[root];
    }
    return count;
}

/* Are its results partial sums when its inputs are: does the operation distribute over addends? */
static bool keeps_partial(const struct sharding *sharding, const struct graph_node *node)
{
    size_t partial = count_partial(sharding, node);
    switch (node->op) {
    case GRAPH_MUL:
        return partial == 1;
    case GRAPH_ADD:
        return partial > 0 && partial == node->input_count;
    case GRAPH_REDUCE: /* in a decoder: the sum over experts */
    case GRAPH_MOVE:
        return partial > 0;
    default:
        return false;
    }
}

static void find_partial_sums(struct sharding *sharding)
{
    const struct dataflow *flow = sharding->flow;
    for (size_t i = 0; i < flow->graph->node_count; i++) {
        const struct graph_node *node = &flow->graph->nodes[i];
        bool is_partial = sharding_is_row_parallel(node) || keeps_partial(sharding, node);
        for (size_t k = 0; is_partial && k < node->output_count; k++) {
            tensor_id id = graph_outputs(flow->graph, node)[k];
            if (id >= 0)
                sharding->is_partial[flow->root[id]] = true;
        }
    }
}

/* Does a reader need the complete sum? */
static bool is_read_complete(const struct sharding *sharding, tensor_id root)
{
    const struct dataflow *flow = sharding->flow;
    uint32_t first = flow->first_reader[root], count = dataflow_reader_count(flow, root);
    for (uint32_t r = 0; r < count; r++)
        if (!keeps_partial(sharding, &flow->graph->nodes[flow->readers[first + r]]))
            return true;
    return flow->is_output[root] || count == 0;
}

double sharding_all_reduced(const struct sharding *sharding, const struct graph_node *node)
{
    const struct graph *graph = sharding->flow->graph;
    double elements = 0;
    for (size_t k = 0; k < node->output_count; k++) {
        tensor_id id = graph_outputs(graph, node)[k];
        if (id >= 0 && sharding->flow->root[id] == id && sharding->is_partial[id] &&
            is_read_complete(sharding, id))
            elements += graph_elements(&graph->tensors[id]);
    }
    return elements;
}

/* ---- sharded tensors ---- */

/* A tensor that is split both ways is a fused QKV matrix: each of its columns has its own split. */
static struct sharding_split join(const struct sharding_split *a, const struct sharding_split *b,
                                  const struct graph_attention *attention)
{
    bool columns = a->columns > 0 || b->columns > 0, heads = a->heads_kv > 0 || b->heads_kv > 0;
    bool is_replicated = a->is_replicated || b->is_replicated;
    if (is_replicated)
        return (struct sharding_split){.is_replicated = true};
    if (!columns || !heads || !attention)
        return (struct sharding_split){.columns = columns, .heads_kv = heads};
    double kv = (double)(attention->heads_kv * (attention->key_size + attention->value_size));
    double all = kv + (double)(attention->heads * attention->key_size);
    return (struct sharding_split){.columns = 1 - kv / all, .heads_kv = kv / all};
}

static struct sharding_split split_of_outputs(const struct sharding *sharding,
                                              const struct graph_node *node)
{
    const struct dataflow *flow = sharding->flow;
    struct sharding_split all = {0};
    for (size_t k = 0; k < node->output_count; k++) {
        tensor_id id = graph_outputs(flow->graph, node)[k];
        if (id >= 0)
            all = join(&all, &sharding->split[flow->root[id]], NULL);
    }
    all.is_replicated = !(all.columns > 0 || all.heads_kv > 0);
    return all;
}

/* The split that a node needs of an input: rows of a row-parallel matrix meet columns, attention is computed
 * head by head, and any other node takes its input split like its output.  A column-parallel matrix needs all
 * of its input. */
static struct sharding_split split_of_input(const struct sharding *sharding,
                                            const struct graph_node *node, size_t index)
{
    bool is_row_parallel = sharding_is_row_parallel(node);
    if (node->op == GRAPH_LINEAR)
        return (struct sharding_split){.columns = index == 0 && is_row_parallel,
                                       .is_replicated = index > 0 || !is_row_parallel};
    if (node->op == GRAPH_ATTENTION)
        return (struct sharding_split){.columns = index == 0, .heads_kv = index > 0};
    if (node->op == GRAPH_CACHE_WRITE) /* read by later passes, if not by this one */
        return (struct sharding_split){.heads_kv = 1};
    return split_of_outputs(sharding, node);
}

/* Backward, so that the split of the outputs of a node is known before that of its inputs. */
static void find_splits(struct sharding *sharding)
{
    const struct dataflow *flow = sharding->flow;
    const struct graph_attention *attention = NULL;
    for (size_t i = flow->graph->node_count; i-- > 0;) {
        const struct graph_node *node = &flow->graph->nodes[i];
        if (node->op == GRAPH_ATTENTION)
            attention = &node->as.attention;
        if (dataflow_is_view(flow, node))
            continue;
        for (size_t k = 0; k < node->input_count; k++) {
            tensor_id root = dataflow_input(flow, node, k);
            if (root < 0)
                continue;
            struct sharding_split wanted = split_of_input(sharding, node, k);
            sharding->split[root] = join(&sharding->split[root], &wanted, attention);
        }
    }
}

bool sharding_is_sharded(const struct sharding *sharding, const struct graph_node *node)
{
    struct sharding_split split = split_of_outputs(sharding, node);
    bool is_cache = sharding->is_decoder && node->op == GRAPH_CACHE_WRITE;
    return split.columns > 0 || split.heads_kv > 0 || is_cache;
}

bool sharding_is_sharded_matrix(const struct sharding *sharding, const struct graph_node *node)
{
    return node->op == GRAPH_LINEAR &&
           (!sharding->is_decoder || node->component == DECODER_HEAD ||
            sharding_is_row_parallel(node) || sharding_is_sharded(sharding, node));
}

/* ---- public ---- */

enum err sharding_make(const struct dataflow *flow, bool is_decoder, struct sharding *out)
{
    size_t tensors = flow->graph->tensor_count + 1;
    *out = (struct sharding){.flow = flow,
                             .is_decoder = is_decoder,
                             .is_partial = calloc(tensors, sizeof *out->is_partial),
                             .split = calloc(tensors, sizeof *out->split)};
    if (!out->is_partial || !out->split) {
        sharding_release(out);
        return ERR_NO_MEMORY;
    }
    find_partial_sums(out);
    if (is_decoder)
        find_splits(out);
    return ERR_OK;
}

void sharding_release(struct sharding *sharding)
{
    free(sharding->is_partial);
    free(sharding->split);
    *sharding = (struct sharding){0};
}
