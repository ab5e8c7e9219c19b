/* Roots and readers come from one pass over the nodes: a graph may exceed every cache, and its nodes are far larger than
 * the links between them.  Sharding needs two more: forward, to follow partial sums from the row-parallel matrices;
 * backward, to find the tensors that lead only into row-parallel matrices or attention, and are therefore sharded. */
#include "estimate/dataflow.h"

#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "graph/count.h"

/* ---- roots and readers ---- */

/* An output of the model must be stored in its own layout. */
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

static bool is_view(const struct dataflow *flow, const struct graph_node *node)
{
    return graph_op_kind(node->op) == GRAPH_KIND_VIEW ||
           (flow->is_in_place && (node->op == GRAPH_REARRANGE || is_reordered(flow, node)) &&
            !leaves_model(flow->graph, node));
}

bool dataflow_is_view(const struct dataflow *flow, const struct graph_node *node)
{
    return flow->is_view[node - flow->graph->nodes];
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

static void show_root(struct dataflow *flow, const struct graph_node *node)
{
    tensor_id shown = dataflow_input(flow, node, 0);
    for (size_t k = 0; shown >= 0 && k < node->output_count; k++)
        if (graph_outputs(flow->graph, node)[k] >= 0)
            flow->root[graph_outputs(flow->graph, node)[k]] = shown;
}

/* Readings in graph order, each node once for one root. */
struct readings {
    struct reading {
        tensor_id root;
        node_id reader;
    } *items;
    size_t count;
    node_id *last; /* by root: the last node that was added */
};

static void add_readings(struct dataflow *flow, node_id reader, struct readings *readings)
{
    const struct graph_node *node = &flow->graph->nodes[reader];
    for (size_t k = 0; k < node->input_count; k++) {
        tensor_id root = dataflow_input(flow, node, k);
        if (root < 0 || readings->last[root] == reader)
            continue;
        readings->last[root] = reader;
        readings->items[readings->count++] = (struct reading){root, reader};
        flow->first_reader[root + 1]++;
    }
}

/* In topological order, so the roots of all inputs of a node are known. */
static void read_nodes(struct dataflow *flow, struct readings *readings)
{
    const struct graph *graph = flow->graph;
    for (size_t i = 0; i < graph->tensor_count; i++)
        flow->root[i] = (tensor_id)i;
    for (size_t i = 0; i < graph->tensor_count; i++)
        readings->last[i] = GRAPH_NONE;
    for (size_t i = 0; i < graph->node_count; i++) {
        flow->is_view[i] = is_view(flow, &graph->nodes[i]);
        if (flow->is_view[i])
            show_root(flow, &graph->nodes[i]);
        else
            add_readings(flow, (node_id)i, readings);
    }
    for (size_t i = 0; i < graph->tensor_count; i++)
        flow->is_output[flow->root[i]] |= graph->tensors[i].is_output;
}

/* Sorts the readings by root. */
static void link_readers(struct dataflow *flow, const struct readings *readings)
{
    size_t count = flow->graph->tensor_count;
    for (size_t i = 0; i < count; i++)
        flow->first_reader[i + 1] += flow->first_reader[i];
    flow->readers = xmalloc((readings->count + 1) * sizeof *flow->readers);
    for (size_t i = 0; i < readings->count; i++) { /* advances each start to the next one's */
        const struct reading *reading = &readings->items[i];
        flow->readers[flow->first_reader[reading->root]++] = reading->reader;
    }
    memmove(flow->first_reader + 1, flow->first_reader, count * sizeof *flow->first_reader);
    flow->first_reader[0] = 0;
}

void dataflow_make(const struct graph *graph, bool is_in_place, struct dataflow *out)
{
    size_t count = graph->tensor_count;
    struct readings readings = {.items = xmalloc((graph->link_count + 1) * sizeof *readings.items),
                                .last = xmalloc((count + 1) * sizeof *readings.last)};
    *out = (struct dataflow){.graph = graph,
                             .is_in_place = is_in_place,
                             .is_view = xmalloc((graph->node_count + 1) * sizeof *out->is_view),
                             .root = xmalloc((count + 1) * sizeof *out->root),
                             .is_output = xcalloc(count + 1, sizeof *out->is_output),
                             .first_reader = xcalloc(count + 2, sizeof *out->first_reader)};
    read_nodes(out, &readings);
    link_readers(out, &readings);
    free(readings.items);
    free(readings.last);
}

void dataflow_release(struct dataflow *flow)
{
    free(flow->is_view);
    free(flow->root);
    free(flow->is_output);
    free(flow->first_reader);
    free(flow->readers);
    *flow = (struct dataflow){0};
}

/* ---- blocked layout ---- */

static const struct graph_tensor *image_of(const struct dataflow *flow, tensor_id root)
{
    const struct graph_tensor *tensor = root >= 0 ? &flow->graph->tensors[root] : NULL;
    return tensor && tensor->rank == 4 && dataflow_is_computed(flow, root) ? tensor : NULL;
}

static bool is_blocked_conv(const struct graph *graph, const struct graph_node *node)
{
    const struct graph_tensor *in = graph_input(graph, node, 0);
    const struct graph_tensor *out = graph_output(graph, node, 0);
    if (node->op != GRAPH_CONV || node->as.window.rank != 2 || !in || !out || out->rank != 4)
        return false;
    int64_t groups = node->as.window.groups > 1 ? node->as.window.groups : 1;
    bool is_depthwise = groups == in->dims[1] && groups == out->dims[1];
    return groups == 1 || in->dims[1] / (is_depthwise ? 1 : groups) % BLOCK_CHANNELS == 0;
}

struct layout {
    const struct dataflow *flow;
    bool *is_blocked, *is_converted; /* by root */
    bool *is_folded;                 /* by node */
};

/* All inputs are blocked tensors of the output's shape or, for a concatenation, of whole blocks. */
static bool has_blocked_inputs(const struct dataflow *flow, const struct graph_node *node,
                               const bool *is_blocked)
{
    const struct graph_tensor *out = graph_output(flow->graph, node, 0);
    for (size_t i = 0; i < node->input_count; i++) {
        const struct graph_tensor *in = image_of(flow, dataflow_input(flow, node, i));
        if (!in || !is_blocked[dataflow_input(flow, node, i)])
            return false;
        bool fits = node->op == GRAPH_MOVE ? in->dims[1] % BLOCK_CHANNELS == 0
                                           : out && graph_elements(in) == graph_elements(out);
        if (node->input_count > 1 && !fits)
            return false;
    }
    return node->input_count > 0;
}

static bool is_arithmetic(enum graph_op op)
{
    return op == GRAPH_ADD || op == GRAPH_MUL || op == GRAPH_DIV;
}

/* Whether it depends on an error function through at most `steps` sums and products. */
static bool follows_erf(const struct dataflow *flow, const struct graph_node *node, int steps)
{
    for (size_t i = 0; is_arithmetic(node->op) && steps > 0 && i < 2; i++) {
        tensor_id root = dataflow_input(flow, node, i);
        node_id from = root >= 0 ? flow->graph->tensors[root].producer : GRAPH_NONE;
        if (from >= 0 && (flow->graph->nodes[from].op == GRAPH_UNARY ||
                          follows_erf(flow, &flow->graph->nodes[from], steps - 1)))
            return true;
    }
    return false;
}

/* Whether it is part of GELU (x / sqrt(2), erf, + 1, times x, times 0.5), which is fused to one operator. */
static bool is_part_of_gelu(const struct dataflow *flow, const struct graph_node *node)
{
    tensor_id out = node->output_count ? graph_outputs(flow->graph, node)[0] : GRAPH_NONE;
    bool leads =
        out >= 0 && dataflow_reader_count(flow, flow->root[out]) == 1 &&
        flow->graph->nodes[flow->readers[flow->first_reader[flow->root[out]]]].op == GRAPH_UNARY;
    return leads || follows_erf(flow, node, 3);
}

/* The producer of an input without other readers; else NULL. */
static const struct graph_node *only_source(const struct dataflow *flow,
                                            const struct graph_node *node, size_t input)
{
    tensor_id root = dataflow_input(flow, node, input);
    bool is_single = dataflow_is_computed(flow, root) && dataflow_reader_count(flow, root) == 1;
    node_id from = is_single ? flow->graph->tensors[root].producer : GRAPH_NONE;
    return from >= 0 ? &flow->graph->nodes[from] : NULL;
}

/* Whether an input is a convolution's result, including nodes folded into it. */
static bool reads_conv(const struct layout *layout, const struct graph_node *node, size_t input)
{
    const struct graph_node *from = only_source(layout->flow, node, input);
    return from &&
           (from->op == GRAPH_CONV || (graph_op_kind(from->op) != GRAPH_KIND_ACTIVATION &&
                                       layout->is_folded[from - layout->flow->graph->nodes]));
}

/* A per-channel constant, applied to the result of a convolution. */
static bool is_folded_constant(const struct layout *layout, const struct graph_node *node)
{
    const struct dataflow *flow = layout->flow;
    for (size_t i = 0; i < 2 && node->input_count == 2; i++) {
        const struct graph_tensor *in = image_of(flow, dataflow_input(flow, node, i));
        tensor_id other = dataflow_input(flow, node, 1 - i);
        if (in && reads_conv(layout, node, i) && other >= 0 && !dataflow_is_computed(flow, other))
            return graph_elements(&flow->graph->tensors[other]) == (double)in->dims[1];
    }
    return false;
}

/* Includes a ReLU of a residual sum. */
static bool is_folded_node(const struct layout *layout, const struct graph_node *node)
{
    const struct graph_node *from = only_source(layout->flow, node, 0);
    bool is_relu = node->op == GRAPH_RELU || node->op == GRAPH_LEAKY_RELU;
    if (node->op == GRAPH_ADD || node->op == GRAPH_MUL)
        return is_folded_constant(layout, node);
    if ((is_relu || node->op == GRAPH_BATCH_NORM) && reads_conv(layout, node, 0))
        return true;
    return is_relu && from && from->op == GRAPH_ADD &&
           (reads_conv(layout, from, 0) || reads_conv(layout, from, 1));
}

/* Weights of a norm and bounds of a clip are not considered. */
static bool is_blocked_node(const struct layout *layout, const struct graph_node *node)
{
    const struct dataflow *flow = layout->flow;
    enum graph_kind kind = graph_op_kind(node->op);
    tensor_id first = dataflow_input(flow, node, 0);
    if (node->op == GRAPH_CONV)
        return is_blocked_conv(flow->graph, node);
    if (!image_of(flow, first) || !layout->is_blocked[first])
        return false;
    if (kind == GRAPH_KIND_ACTIVATION || kind == GRAPH_KIND_POOL || node->op == GRAPH_BATCH_NORM ||
        node->op == GRAPH_UNARY || layout->is_folded[node - flow->graph->nodes])
        return true;
    return (is_arithmetic(node->op) || node->op == GRAPH_MOVE) &&
           (has_blocked_inputs(flow, node, layout->is_blocked) || is_part_of_gelu(flow, node));
}

/* A convolution reads an image of few channels in the plain layout. */
static bool needs_reorder(const struct graph_node *node, const struct graph_tensor *in,
                          bool is_blocked, bool wants_blocks)
{
    return is_blocked != wants_blocks &&
           (is_blocked || node->op != GRAPH_CONV || in->dims[1] >= BLOCK_CHANNELS);
}

/* Elements converted for this node. */
static double reorder_inputs(struct layout *layout, const struct graph_node *node,
                             bool wants_blocks)
{
    size_t inputs = node->op == GRAPH_CONV ? 1 : node->input_count; /* weights may be computed */
    double elements = 0;
    for (size_t i = 0; i < inputs; i++) {
        tensor_id root = dataflow_input(layout->flow, node, i);
        const struct graph_tensor *in = image_of(layout->flow, root);
        if (!in || layout->is_converted[root] ||
            !needs_reorder(node, in, layout->is_blocked[root], wants_blocks))
            continue;
        layout->is_converted[root] = true;
        elements += graph_elements(in);
    }
    return elements;
}

void dataflow_find_layout(const struct dataflow *flow, double *reordered, bool *is_folded)
{
    const struct graph *graph = flow->graph;
    struct layout layout = {.flow = flow,
                            .is_blocked = xcalloc(graph->tensor_count + 1, sizeof(bool)),
                            .is_converted = xcalloc(graph->tensor_count + 1, sizeof(bool)),
                            .is_folded = is_folded};
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct graph_node *node = &graph->nodes[n];
        is_folded[n] = is_folded_node(&layout, node);
        reordered[n] = 0;
        if (dataflow_is_view(flow, node))
            continue;
        bool wants_blocks = is_blocked_node(&layout, node);
        reordered[n] = reorder_inputs(&layout, node, wants_blocks);
        for (size_t i = 0; i < node->output_count; i++)
            if (graph_outputs(graph, node)[i] >= 0)
                layout.is_blocked[flow->root[graph_outputs(graph, node)[i]]] = wants_blocks;
    }
    free(layout.is_blocked);
    free(layout.is_converted);
}

/* ---- sharding: matrices ---- */

bool sharding_is_row_parallel(const struct graph_node *node)
{
    return node->op == GRAPH_LINEAR &&
           (node->split == GRAPH_SPLIT_ROWS || node->component == DECODER_ATTN_OUT ||
            node->component == DECODER_FFN_DOWN);
}

/* ---- sharding: partial sums ---- */

static size_t count_partial(const struct sharding *sharding, const struct graph_node *node)
{
    size_t count = 0;
    for (size_t i = 0; i < node->input_count; i++) {
        tensor_id root = dataflow_input(sharding->flow, node, i);
        count += root >= 0 && sharding->is_partial[root];
    }
    return count;
}

/* Whether results are partial sums if the inputs are: the operation distributes over addition. */
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
    bool has_any = false;
    for (size_t i = 0; i < flow->graph->node_count; i++) {
        const struct graph_node *node = &flow->graph->nodes[i];
        bool is_partial =
            sharding_is_row_parallel(node) || (has_any && keeps_partial(sharding, node));
        has_any |= is_partial;
        for (size_t k = 0; is_partial && k < node->output_count; k++) {
            tensor_id id = graph_outputs(flow->graph, node)[k];
            if (id >= 0)
                sharding->is_partial[flow->root[id]] = true;
        }
    }
}

/* Whether any reader needs the complete sum. */
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

/* ---- sharding: tensors ---- */

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

enum { SCAN_MATRICES = 2 }; /* inputs of a selective scan that are shared by all features */

/* The split that a node needs of an input: rows of a row-parallel matrix match columns, attention is computed per head,
 * and any other node needs its input split like its output.  A column-parallel matrix needs its complete input, except
 * for per-head matrices.  Without attention a cache is the state of features. */
static struct sharding_split split_of_input(const struct sharding *sharding,
                                            const struct graph_node *node, size_t index,
                                            bool has_attention)
{
    bool is_row_parallel = sharding_is_row_parallel(node);
    if (node->op == GRAPH_LINEAR && node->split == GRAPH_SPLIT_HEADS)
        return (struct sharding_split){.columns = index == 0, .is_replicated = index > 0};
    if (node->op == GRAPH_LINEAR)
        return (struct sharding_split){.columns = index == 0 && is_row_parallel,
                                       .is_replicated = index > 0 || !is_row_parallel};
    if (node->op == GRAPH_ATTENTION)
        return (struct sharding_split){.columns = index == 0, .heads_kv = index > 0};
    if (node->split == GRAPH_SPLIT_NONE)
        return (struct sharding_split){.is_replicated = true};
    if (node->op == GRAPH_CACHE_WRITE) /* read by later passes, if not by this one */
        return (struct sharding_split){.heads_kv = has_attention, .columns = !has_attention};
    if (node->op == GRAPH_SCAN && index == SCAN_MATRICES)
        return (struct sharding_split){.is_replicated = true};
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
            struct sharding_split wanted = split_of_input(sharding, node, k, attention);
            sharding->split[root] = join(&sharding->split[root], &wanted, attention);
        }
    }
}

bool sharding_is_sharded(const struct sharding *sharding, const struct graph_node *node)
{
    struct sharding_split split = split_of_outputs(sharding, node);
    bool is_cache = sharding->is_decoder && node->op == GRAPH_CACHE_WRITE;
    if (node->split == GRAPH_SPLIT_NONE)
        return false;
    return split.columns > 0 || split.heads_kv > 0 || is_cache;
}

bool sharding_is_sharded_matrix(const struct sharding *sharding, const struct graph_node *node)
{
    return node->op == GRAPH_LINEAR &&
           (!sharding->is_decoder || node->component == DECODER_HEAD ||
            sharding_is_row_parallel(node) || sharding_is_sharded(sharding, node));
}

void sharding_make(const struct dataflow *flow, bool is_decoder, struct sharding *out)
{
    size_t tensors = flow->graph->tensor_count + 1;
    *out = (struct sharding){.flow = flow,
                             .is_decoder = is_decoder,
                             .is_partial = xcalloc(tensors, sizeof *out->is_partial),
                             .split = xcalloc(tensors, sizeof *out->split)};
    find_partial_sums(out);
    if (is_decoder)
        find_splits(out);
}

void sharding_release(struct sharding *sharding)
{
    free(sharding->is_partial);
    free(sharding->split);
    *sharding = (struct sharding){0};
}
