/* Builds the partition: the kernel of each node (fusion.c); then one subgraph after the other its edges, traffic at the
 * boundary, name, sharding and equal ones (partition_unique.c); then live tensors.  A large graph exceeds every cache,
 * so nodes and subgraphs are passed over as rarely as possible. */
#include "estimate/partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "estimate/dataflow.h"

struct builder {
    struct partition *out;
    const struct dataflow *flow;
    const struct sharding *sharding;
    const int32_t *subgraph_of; /* by node: its subgraph; GRAPH_NONE for views */
    int32_t *needed_by;         /* by subgraph: the last one that needs it */
    int32_t *seen;              /* by tensor: the last subgraph that counted it */
    double *part;               /* by root: the share that this subgraph has counted */
    double *reordered;          /* by node, see dataflow_find_layout */
    bool *is_folded;
    bool *divides_weights; /* by node: tensor parallelism divides the weights that it reads */
    node_id first_layered; /* the first node of a layer */
};

static const struct graph_node *node_of(const struct partition *partition,
                                        const struct subgraph *subgraph, uint32_t index)
{
    return &partition->graph->nodes[partition->nodes[subgraph->first_node + index]];
}

/* ---- nodes into subgraphs ---- */

/* Sorts the nodes by subgraph; starts[i] is where those of a subgraph begin, starts[count] where the last ones end. */
static void assign_nodes(struct builder *builder, uint32_t *starts)
{
    struct partition *out = builder->out;
    size_t nodes = out->graph->node_count;
    for (size_t i = 0; i < nodes; i++)
        if (builder->subgraph_of[i] >= 0)
            starts[builder->subgraph_of[i] + 1]++;
    for (size_t i = 0; i < out->count; i++)
        starts[i + 1] += starts[i];
    for (size_t i = 0; i < nodes; i++) /* advances each start to its end, the start of the next */
        if (builder->subgraph_of[i] >= 0)
            out->nodes[starts[builder->subgraph_of[i]]++] = (node_id)i;
    memmove(starts + 1, starts, out->count * sizeof *starts);
    starts[0] = 0;
}

/* ---- edges ---- */

/* The subgraph that produces an input; GRAPH_NONE: none does, or this one itself. */
static int32_t needed_of(const struct builder *builder, const struct graph_node *node, size_t input,
                         int32_t self)
{
    tensor_id root = dataflow_input(builder->flow, node, input);
    node_id producer = root >= 0 ? builder->out->graph->tensors[root].producer : GRAPH_NONE;
    int32_t needed = producer >= 0 ? builder->subgraph_of[producer] : GRAPH_NONE;
    return needed == self ? GRAPH_NONE : needed;
}

static void find_edges(struct builder *builder, struct subgraph *subgraph, int32_t self)
{
    struct partition *out = builder->out;
    subgraph->first_before = (uint32_t)out->before_count;
    for (uint32_t n = 0; n < subgraph->node_count; n++) {
        const struct graph_node *node = node_of(out, subgraph, n);
        for (size_t k = 0; k < node->input_count; k++) {
            int32_t needed = needed_of(builder, node, k, self);
            if (needed < 0 || builder->needed_by[needed] == self)
                continue;
            builder->needed_by[needed] = self;
            out->before[out->before_count++] = (uint32_t)needed;
            uint32_t level = out->subgraphs[needed].level + 1;
            if (level > subgraph->level)
                subgraph->level = level;
        }
    }
    subgraph->before_count = (uint32_t)out->before_count - subgraph->first_before;
}

/* ---- traffic at the boundary ---- */

static bool is_made_inside(const struct builder *builder, tensor_id root, int32_t self)
{
    node_id producer = builder->out->graph->tensors[root].producer;
    return producer >= 0 && builder->subgraph_of[producer] == self;
}

/* The share of a root that a view covers: below 1 for a slice. */
static double share_of(const struct graph *graph, tensor_id id, tensor_id root)
{
    double shown = graph_elements(&graph->tensors[id]);
    double whole = graph_elements(&graph->tensors[root]);
    return whole > shown ? shown / whole : 1;
}

/* Reads through a view count as the kind of the root, in proportion to the view. */
static struct graph_amount read_amount(const struct builder *builder, const struct graph_node *node,
                                       size_t index, tensor_id root)
{
    static const struct precision_widths ONE = {.weight = 1, .activation = 1, .cache = 1};
    const struct graph *graph = builder->out->graph;
    tensor_id id = graph_inputs(graph, node)[index];
    struct graph_amount read = graph_input_amount(graph, node, index);
    if (id == root)
        return read;
    struct graph_amount shown = graph_tensor_amount(&graph->tensors[id]);
    double all = graph_bytes(&shown, &ONE);
    double part = all > 0 ? graph_bytes(&read, &ONE) / all : 1;
    bool is_weight = graph_is_static(&graph->tensors[root]);
    struct graph_amount amount = graph_tensor_amount(&graph->tensors[root]);
    graph_amount_scale(&amount,
                       part * (is_weight ? node->weight_fraction : share_of(graph, id, root)));
    return amount;
}

/* For a tensor that a subgraph reads in several slices: the share of this slice that was not counted before.
 * Overlapping slices count once. */
static double unread_part(struct builder *builder, const struct graph_node *node, tensor_id id,
                          tensor_id root, int32_t self)
{
    bool is_first = builder->seen[root] != self, is_cut = node->weight_fraction < 1;
    bool is_repeated = !is_first && id != root && builder->seen[id] == self;
    bool is_weight = !dataflow_is_computed(builder->flow, root);
    if (is_first)
        builder->part[root] = 0;
    builder->seen[root] = builder->seen[id] = self;
    double share =
        is_weight && is_cut ? node->weight_fraction : share_of(builder->out->graph, id, root);
    double left = 1 - builder->part[root];
    double taken = share < left ? share : left;
    if (is_repeated || share <= 0)
        return 0;
    builder->part[root] += taken;
    return taken / share;
}

static void count_inputs(struct builder *builder, struct subgraph *subgraph,
                         const struct graph_node *node, int32_t self)
{
    const struct graph *graph = builder->out->graph;
    for (size_t k = 0; k < node->input_count; k++) {
        tensor_id root = dataflow_input(builder->flow, node, k);
        if (root < 0 || is_made_inside(builder, root, self))
            continue;
        struct graph_amount amount = read_amount(builder, node, k, root);
        bool is_weight = !dataflow_is_computed(builder->flow, root);
        graph_amount_scale(&amount,
                           unread_part(builder, node, graph_inputs(graph, node)[k], root, self));
        graph_amount_add(is_weight ? &subgraph->cost.weights : &subgraph->cost.in, &amount);
    }
}

static void count_outputs(struct builder *builder, struct subgraph *subgraph,
                          const struct graph_node *node, int32_t self)
{
    const struct dataflow *flow = builder->flow;
    for (size_t k = 0; k < node->output_count; k++) {
        tensor_id id = graph_outputs(flow->graph, node)[k];
        if (id < 0)
            continue;
        tensor_id root = flow->root[id];
        struct graph_amount amount = graph_tensor_amount(&flow->graph->tensors[root]);
        uint32_t inside = 0, readers = dataflow_reader_count(flow, root);
        for (uint32_t r = 0; r < readers; r++)
            inside += builder->subgraph_of[flow->readers[flow->first_reader[root] + r]] == self;
        bool leaves = flow->is_output[root] || inside < readers || readers == 0;
        if (leaves)
            graph_amount_add(&subgraph->cost.out, &amount);
        else
            graph_amount_add(&subgraph->inside, &amount);
        for (uint32_t r = 0; r < inside; r++)
            graph_amount_add(&subgraph->inside, &amount);
    }
}

/* ---- description of a subgraph ---- */

/* "linear x3", "conv+batch_norm+relu"; operations that do not fit are counted. */
static void write_pattern(const struct partition *partition, struct subgraph *subgraph)
{
    size_t used = 0, space = sizeof subgraph->pattern - sizeof "+15 more";
    for (uint32_t i = 0, run; i < subgraph->node_count; i += run) {
        enum graph_op op = node_of(partition, subgraph, i)->op;
        char part[48], times[16] = "";
        for (run = 1; i + run < subgraph->node_count; run++)
            if (node_of(partition, subgraph, i + run)->op != op)
                break;
        if (run > 1)
            chars_format(times, " x%u", run);
        str_join(part, sizeof part, used ? "+" : "", graph_op_name(op), times);
        if (used + strlen(part) > space) {
            str_format(subgraph->pattern + used, sizeof subgraph->pattern - used, "+%u more",
                       subgraph->node_count - i);
            return;
        }
        str_copy(subgraph->pattern + used, sizeof subgraph->pattern - used, part);
        used += strlen(part);
    }
}

/* Columns of the result of a product: channels of a convolution, otherwise the last dimension. */
static double columns_of(const struct graph_tensor *out, enum graph_op op)
{
    bool is_conv = op == GRAPH_CONV || op == GRAPH_CONV_TRANSPOSE;
    if (out->rank == 0)
        return 1;
    return (double)(is_conv && out->rank > 1 ? out->dims[1] : out->dims[out->rank - 1]);
}

static void measure_outputs(const struct partition *partition, struct subgraph *subgraph,
                            const struct graph_node *main_node)
{
    bool has_linears = main_node->op == GRAPH_LINEAR;
    for (uint32_t i = 0; i < subgraph->node_count; i++) {
        const struct graph_node *node = node_of(partition, subgraph, i);
        const struct graph_tensor *out = graph_output(partition->graph, node, 0);
        if (!out || !(node == main_node || (has_linears && node->op == GRAPH_LINEAR)))
            continue;
        double elements = graph_elements(out), columns = columns_of(out, node->op);
        subgraph->outputs += elements;
        if (columns > 0 && elements / columns > subgraph->rows)
            subgraph->rows = elements / columns;
    }
}

static void describe_window(const struct graph *graph, const struct graph_node *node,
                            struct subgraph_shape *shape)
{
    const struct graph_window *window = &node->as.window;
    const struct graph_tensor *in = graph_input(graph, node, 0);
    const struct graph_tensor *out = graph_output(graph, node, 0);
    shape->groups = (double)(window->groups > 0 ? window->groups : 1);
    shape->channels = in && in->rank > 1 ? (double)in->dims[1] : 0;
    shape->taps = shape->dilation = 1;
    shape->window_rank = window->rank;
    if (out && out->rank > 1 && graph_elements(out) > 0)
        shape->positions = graph_elements(out) / (double)(out->dims[0] * out->dims[1]);
    for (uint8_t i = 0; i < window->rank; i++) {
        shape->taps *= window->kernel[i];
        if (window->kernel[i] > 1)
            shape->dilation = fmax(shape->dilation, window->dilation[i]);
    }
    shape->has_bias = graph_input(graph, node, 2) != NULL;
}

static void describe_attention(const struct graph *graph, const struct graph_node *node,
                               struct subgraph_shape *shape)
{
    const struct graph_attention *attention = &node->as.attention;
    shape->heads = (double)attention->heads;
    shape->repeats = attention->heads_kv > 0 ? shape->heads / (double)attention->heads_kv : 1;
    shape->tokens = (double)attention->tokens;
    shape->sequences = (double)attention->sequences;
    shape->is_unfused = attention->is_unfused;
    shape->is_in_fp32 = attention->is_unfused && attention->is_in_fp32;
    shape->keys = (double)(attention->cross_tokens > 0 ? attention->cross_tokens
                                                       : attention->tokens + attention->cached);
    shape->has_windows = graph->tokens == 0 && shape->sequences > fmax(1, graph->batch);
}

static void describe_weight(const struct graph_tensor *weight, const struct graph_node *node,
                            struct subgraph_shape *shape)
{
    shape->stored_type = weight->stored_type;
    shape->experts = weight->rank == 3 ? (double)weight->dims[0] * node->weight_fraction : 0;
}

static bool is_read_by_conv(const struct dataflow *flow, const struct graph_node *node)
{
    if (node->output_count == 0 || graph_outputs(flow->graph, node)[0] < 0)
        return false;
    tensor_id root = flow->root[graph_outputs(flow->graph, node)[0]];
    for (uint32_t r = 0; r < dataflow_reader_count(flow, root); r++)
        if (flow->graph->nodes[flow->readers[flow->first_reader[root] + r]].op == GRAPH_CONV)
            return true;
    return false;
}

static bool is_broadcast(const struct graph *graph, const struct graph_node *node)
{
    double elements = graph_elements(graph_output(graph, node, 0));
    for (size_t i = 0; i < node->input_count; i++) {
        const struct graph_tensor *in = graph_input(graph, node, i);
        if (in && graph_elements(in) > 1 && graph_elements(in) < elements)
            return true;
    }
    return false;
}

static bool is_resized(const struct graph *graph, const struct graph_node *node)
{
    const struct graph_tensor *in = graph_input(graph, node, 0);
    const struct graph_tensor *out = graph_output(graph, node, 0);
    return node->op == GRAPH_MOVE && node->input_count == 1 && in && out && in->rank == 4 &&
           out->rank == 4 && in->dims[0] == out->dims[0] && in->dims[1] == out->dims[1] &&
           out->dims[2] * out->dims[3] > in->dims[2] * in->dims[3];
}

static bool is_over_channels(enum graph_op op)
{
    return op == GRAPH_GROUP_NORM || op == GRAPH_LRN;
}

static void describe_shape(const struct dataflow *flow, const struct graph_node *node,
                           struct subgraph_shape *shape)
{
    const struct graph_tensor *in = graph_input(flow->graph, node, 0);
    const struct graph_tensor *out = graph_output(flow->graph, node, 0);
    enum graph_kind kind = graph_op_kind(node->op);
    shape->is_resized = is_resized(flow->graph, node);
    shape->is_clamped = node->is_clamped;
    if (node->op == GRAPH_CONV || node->op == GRAPH_CONV_TRANSPOSE)
        describe_window(flow->graph, node, shape);
    else if (node->op == GRAPH_ATTENTION)
        describe_attention(flow->graph, node, shape);
    else if (node->op == GRAPH_LINEAR && graph_input(flow->graph, node, 1))
        describe_weight(graph_input(flow->graph, node, 1), node, shape);
    else if (node->op == GRAPH_SCAN)
        shape->is_chunked = node->as.recurrent.chunk > 0;
    else if (node->op == GRAPH_REARRANGE)
        shape->is_copied = is_read_by_conv(flow, node);
    else if (node->op == GRAPH_REDUCE && in && out && graph_elements(out) > 0)
        shape->inner = graph_elements(in) / graph_elements(out);
    else if (node->op == GRAPH_BATCH_NORM && out && out->rank > 1 && out->dims[0] > 0)
        shape->inner = graph_elements(out) / (double)out->dims[0];
    else if (kind == GRAPH_KIND_ELEMENTWISE && out)
        shape->is_broadcast = is_broadcast(flow->graph, node);
    else if (out && out->rank > 1 && (kind == GRAPH_KIND_NORM || kind == GRAPH_KIND_SOFTMAX))
        shape->inner = (double)out->dims[is_over_channels(node->op) ? 1 : out->rank - 1];
}

/* Products are sharded, and other operations on some heads or on some columns of a column-parallel matrix.
 * Row-parallel matrices are all-reduced, two per layer.  Logits are gathered; so is every product of a model that does
 * not state the role of its matrices. */
static void describe_sharding(const struct partition *partition, const struct sharding *sharding,
                              const struct graph_node *main_node, struct subgraph *subgraph)
{
    bool is_gathered = subgraph->op == GRAPH_LINEAR &&
                       (subgraph->component == DECODER_HEAD || !sharding->is_decoder);
    subgraph->is_sharded = sharding_is_sharded_matrix(sharding, main_node) ||
                           main_node->op == GRAPH_ATTENTION || main_node->op == GRAPH_MATMUL ||
                           sharding_is_sharded(sharding, main_node);
    subgraph->is_by_head = main_node->split == GRAPH_SPLIT_HEADS;
    subgraph->all_gathered = is_gathered ? subgraph->outputs : 0;
    for (uint32_t i = 0; i < subgraph->node_count; i++) {
        const struct graph_node *node = node_of(partition, subgraph, i);
        subgraph->is_row_parallel |= sharding_is_row_parallel(node);
        subgraph->all_reduced += sharding_all_reduced(sharding, node);
    }
}

/* Fills in everything that follows from the nodes of a subgraph. */
static void describe_subgraph(const struct builder *builder, const struct graph_node *main_node,
                              struct subgraph *subgraph)
{
    const struct partition *partition = builder->out;
    subgraph->name = main_node->name;
    subgraph->op = main_node->op;
    subgraph->layer = main_node->layer;
    subgraph->component = main_node->component;
    subgraph->has_precision = main_node->has_precision;
    subgraph->precision = main_node->precision;
    bool is_recurrent = graph_op_kind(main_node->op) == GRAPH_KIND_RECURRENT;
    int64_t steps = is_recurrent ? main_node->as.recurrent.steps : 1;
    subgraph->steps = steps > 1 ? (double)steps : 1;
    write_pattern(partition, subgraph);
    measure_outputs(partition, subgraph, main_node);
    describe_shape(builder->flow, main_node, &subgraph->shape);
    subgraph->shape.reordered = builder->reordered[main_node - partition->graph->nodes];
    subgraph->shape.is_folded = builder->is_folded[main_node - partition->graph->nodes];
    subgraph->shape.is_causal = partition->is_causal;
    if (main_node->op == GRAPH_LINEAR && main_node->component == DECODER_HEAD)
        subgraph->shape.tokens = partition->graph->tokens;
    describe_sharding(partition, builder->sharding, main_node, subgraph);
}

/* Matrices of linears and per-feature tensors of a state-space model are sharded; others are replicated. */
static bool divides_weights(const struct sharding *sharding, const struct graph_node *node)
{
    bool is_by_feature = sharding->is_decoder &&
                         (node->op == GRAPH_SCAN || node->op == GRAPH_CONV) &&
                         sharding_is_sharded(sharding, node);
    return is_by_feature || sharding_is_sharded_matrix(sharding, node);
}

/* Work and traffic of all nodes; returns the main node. */
static const struct graph_node *count_nodes(struct builder *builder, struct subgraph *subgraph,
                                            int32_t self)
{
    const struct graph *graph = builder->out->graph;
    const struct graph_node *main_node = node_of(builder->out, subgraph, 0);
    double max = 0;
    for (uint32_t n = 0; n < subgraph->node_count; n++) {
        const struct graph_node *node = node_of(builder->out, subgraph, n);
        struct graph_cost cost = graph_node_cost(graph, node);
        main_node = cost.macs > max ? node : main_node;
        max = fmax(max, cost.macs);
        subgraph->cost.macs += cost.macs;
        subgraph->cost.elementwise += cost.elementwise;
        count_inputs(builder, subgraph, node, self);
        count_outputs(builder, subgraph, node, self);
        builder->divides_weights[node - graph->nodes] = divides_weights(builder->sharding, node);
    }
    return main_node;
}

static void make_subgraphs(struct builder *builder, const uint32_t *starts)
{
    struct partition *out = builder->out;
    struct unique_table table = {.out = out};
    for (size_t i = 0; i < out->graph->tensor_count; i++)
        builder->seen[i] = GRAPH_NONE;
    for (size_t i = 0; i < out->count; i++)
        builder->needed_by[i] = GRAPH_NONE;
    for (size_t i = 0; i < out->count; i++) {
        struct subgraph *subgraph = &out->subgraphs[i];
        *subgraph =
            (struct subgraph){.first_node = starts[i], .node_count = starts[i + 1] - starts[i]};
        find_edges(builder, subgraph, (int32_t)i);
        const struct graph_node *main_node = count_nodes(builder, subgraph, (int32_t)i);
        graph_cost_add(&out->total, &subgraph->cost);
        describe_subgraph(builder, main_node, subgraph);
        out->sharded_macs += subgraph->is_sharded ? subgraph->cost.macs : 0;
        out->first_layered += out->first_layered == i && subgraph->layer < 0;
        unique_table_add(&table, (uint32_t)i);
    }
}

/* ---- memory ---- */

static bool is_sharded_weight(const struct builder *builder, tensor_id root)
{
    const struct dataflow *flow = builder->flow;
    uint32_t first = flow->first_reader[root], count = dataflow_reader_count(flow, root);
    for (uint32_t r = 0; r < count; r++)
        if (builder->divides_weights[flow->readers[first + r]])
            return flow->graph->tensors[root].rank > 1;
    return false;
}

/* Index in by_layer: of the node, or of the part before or after the layers. */
static size_t slot_of(const struct builder *builder, node_id node)
{
    const struct graph *graph = builder->out->graph;
    if (graph->nodes[node].layer >= 0)
        return (size_t)graph->nodes[node].layer + 1;
    return node < builder->first_layered ? 0 : (size_t)builder->out->layers + 1;
}

/* Adds the memory of a weight or cache tensor to every layer that uses it. */
static void place_in_layers(struct builder *builder, tensor_id root, bool is_sharded)
{
    const struct dataflow *flow = builder->flow;
    const struct graph_tensor *tensor = &flow->graph->tensors[root];
    struct graph_amount amount = graph_tensor_amount(tensor);
    uint32_t first = flow->first_reader[root], count = dataflow_reader_count(flow, root);
    bool is_cache = tensor->role == GRAPH_CACHE;
    size_t last = SIZE_MAX;
    for (uint32_t r = 0; builder->out->layers && r <= count; r++) {
        node_id node = r < count ? flow->readers[first + r] : tensor->producer;
        size_t slot = node >= 0 ? slot_of(builder, node) : last;
        if (slot == last) /* readers are in graph order */
            continue;
        struct partition_layer *layer = &builder->out->by_layer[slot];
        graph_amount_add(is_cache ? &layer->cache : &layer->model, &amount);
        if (is_sharded)
            graph_amount_add(&layer->model_sharded, &amount);
        last = slot;
    }
}

static void place_activation(struct builder *builder, tensor_id root)
{
    struct partition *out = builder->out;
    const struct dataflow *flow = builder->flow;
    const struct graph_tensor *tensor = &out->graph->tensors[root];
    int32_t from = tensor->producer >= 0 ? builder->subgraph_of[tensor->producer] : 0;
    int32_t to = from;
    uint32_t first = flow->first_reader[root], count = dataflow_reader_count(flow, root);
    bool is_read_outside = tensor->producer < 0 || flow->is_output[root] || count == 0;
    for (uint32_t r = 0; r < count; r++) {
        int32_t reader = builder->subgraph_of[flow->readers[first + r]];
        is_read_outside |= reader != from;
        to = reader > to ? reader : to;
    }
    if (from < 0 || !is_read_outside || (tensor->producer < 0 && count == 0))
        return;
    if (flow->is_output[root])
        to = (int32_t)out->count - 1;
    out->tensors[out->tensor_count++] = (struct partition_tensor){
        .from = (uint32_t)from,
        .to = (uint32_t)to,
        .amount = graph_tensor_amount(tensor),
        .columns = builder->sharding->split[root].columns,
        .heads_kv = builder->sharding->split[root].heads_kv,
    };
}

static void place_tensors(struct builder *builder)
{
    struct partition *out = builder->out;
    for (size_t i = 0; i < out->graph->tensor_count; i++) {
        const struct graph_tensor *tensor = &out->graph->tensors[i];
        if (builder->flow->root[i] != (tensor_id)i)
            continue;
        struct graph_amount amount = graph_tensor_amount(tensor);
        if (graph_is_static(tensor)) {
            bool is_sharded = is_sharded_weight(builder, (tensor_id)i);
            place_in_layers(builder, (tensor_id)i, is_sharded);
            graph_amount_add(&out->model, &amount);
            if (is_sharded)
                graph_amount_add(&out->model_sharded, &amount);
        } else if (tensor->role == GRAPH_CACHE) {
            place_in_layers(builder, (tensor_id)i, false);
            graph_amount_add(&out->cache, &amount);
        } else {
            place_activation(builder, (tensor_id)i);
        }
    }
}

static void add_live(struct partition_live *to, const struct partition_tensor *tensor, int sign)
{
    double elements = sign * tensor->amount.activations;
    double columns = round(elements * tensor->columns);
    double heads = round(elements * tensor->heads_kv);
    to->activations += elements - columns - heads;
    to->columns += columns;
    to->heads_kv += heads;
    to->quantized += sign * tensor->amount.quantized;
    to->fixed_bytes += sign * tensor->amount.fixed_bytes;
}

/* A tensor is added where it is produced and subtracted after its last use; the running sum is the live memory.  Counts
 * are rounded to integers, so the sums are exact. */
static void sum_live(struct partition *out)
{
    for (size_t i = 0; i < out->tensor_count; i++) {
        const struct partition_tensor *tensor = &out->tensors[i];
        add_live(&out->live[tensor->from], tensor, 1);
        add_live(&out->live[tensor->to + 1], tensor, -1);
    }
    for (size_t i = 1; i < out->count; i++) {
        out->live[i].activations += out->live[i - 1].activations;
        out->live[i].columns += out->live[i - 1].columns;
        out->live[i].heads_kv += out->live[i - 1].heads_kv;
        out->live[i].quantized += out->live[i - 1].quantized;
        out->live[i].fixed_bytes += out->live[i - 1].fixed_bytes;
    }
}

/* ---- the partition ---- */

/* The greatest common divisor; b if a is 0. */
static int64_t common_divisor(int64_t a, int64_t b)
{
    while (a > 0) {
        int64_t rest = b % a;
        b = a;
        a = rest;
    }
    return b;
}

static void inspect_node(const struct graph *graph, const struct graph_node *node,
                         struct partition *out)
{
    out->is_decoder |= node->component != DECODER_COMPONENT_COUNT;
    out->is_causal |=
        node->op == GRAPH_SCAN || (node->op == GRAPH_ATTENTION && node->as.attention.is_causal);
    if (node->op == GRAPH_CACHE_WRITE && node->split == GRAPH_SPLIT_NONE)
        out->heads_kv = 1;
    if (node->op == GRAPH_SCAN) {
        tensor_id made = graph->links[node->first_output];
        const struct graph_tensor *tensor = &graph->tensors[made];
        out->features = common_divisor(out->features, tensor->dims[tensor->rank - 1]);
    }
    if (node->op != GRAPH_ATTENTION)
        return;
    out->heads = common_divisor(out->heads, node->as.attention.heads);
    out->has_cross |= node->as.attention.cross_tokens > 0;
    int64_t heads = node->as.attention.heads_kv;
    if (heads > 0 && (out->heads_kv == 0 || heads < out->heads_kv))
        out->heads_kv = heads;
}

/* Also counts the layers, which must be consecutive; returns the first node of one. */
static node_id inspect_nodes(struct partition *out)
{
    int32_t last = GRAPH_NONE;
    node_id first = GRAPH_NONE;
    bool is_numbered = true;
    for (size_t i = 0; i < out->graph->node_count; i++) {
        const struct graph_node *node = &out->graph->nodes[i];
        inspect_node(out->graph, node, out);
        if (node->layer < 0 || node->layer == last)
            continue;
        is_numbered &= node->layer == last + 1;
        first = first < 0 ? (node_id)i : first;
        last = node->layer;
    }
    out->layers = is_numbered ? last + 1 : 0;
    return is_numbered ? first : GRAPH_NONE;
}

static void allocate(const struct graph *graph, size_t count, struct partition *out)
{
    out->count = count;
    out->subgraphs = xmalloc((count + 1) * sizeof *out->subgraphs);
    out->nodes = xmalloc((graph->node_count + 1) * sizeof *out->nodes);
    out->before = xmalloc((graph->link_count + 1) * sizeof *out->before);
    out->tensors = xmalloc((graph->tensor_count + 1) * sizeof *out->tensors);
    out->live = xcalloc(count + 2, sizeof *out->live);
    out->unique = xmalloc((count + 1) * sizeof *out->unique);
    out->unique_of = xmalloc((count + 1) * sizeof *out->unique_of);
}

static void assemble(const struct dataflow *flow, const struct sharding *sharding,
                     const struct fusion *fusion, node_id first_layered, struct partition *out)
{
    size_t nodes = flow->graph->node_count + 1, tensors = flow->graph->tensor_count + 1;
    uint32_t *starts = xcalloc(fusion->count + 2, sizeof *starts);
    struct builder builder = {
        .out = out,
        .flow = flow,
        .sharding = sharding,
        .subgraph_of = fusion->kernel_of,
        .needed_by = xmalloc((fusion->count + 1) * sizeof *builder.needed_by),
        .seen = xmalloc(tensors * sizeof *builder.seen),
        .part = xmalloc(tensors * sizeof *builder.part),
        .reordered = xmalloc(nodes * sizeof *builder.reordered),
        .is_folded = xmalloc(nodes * sizeof *builder.is_folded),
        .divides_weights = xcalloc(nodes, sizeof *builder.divides_weights),
        .first_layered = first_layered,
    };
    allocate(flow->graph, fusion->count, out);
    out->by_layer = xcalloc((size_t)out->layers + 2, sizeof *out->by_layer);
    dataflow_find_layout(flow, builder.reordered, builder.is_folded);
    assign_nodes(&builder, starts);
    make_subgraphs(&builder, starts);
    place_tensors(&builder);
    sum_live(out);
    free(starts);
    free(builder.needed_by);
    free(builder.seen);
    free(builder.part);
    free(builder.reordered);
    free(builder.is_folded);
    free(builder.divides_weights);
}

static void shard_and_assemble(const struct dataflow *flow, const struct fusion *fusion,
                               node_id first_layered, struct partition *out)
{
    struct sharding sharding;
    sharding_make(flow, out->is_decoder, &sharding);
    assemble(flow, &sharding, fusion, first_layered, out);
    sharding_release(&sharding);
}

void partition_make(const struct graph *graph, enum partition_fusion mode, struct partition *out)
{
    struct dataflow flow;
    struct fusion fusion;
    *out = (struct partition){.graph = graph, .parameters = graph_parameters(graph)};
    dataflow_make(graph, mode != PARTITION_PLAIN, &flow);
    node_id first_layered = inspect_nodes(out);
    if (mode == PARTITION_BY_COMPONENT)
        fusion_by_component(&flow, &fusion);
    else
        fusion_make(&flow, mode == PARTITION_FUSED, &fusion);
    shard_and_assemble(&flow, &fusion, first_layered, out);
    fusion_release(&fusion);
    dataflow_release(&flow);
}

void partition_release(struct partition *partition)
{
    free(partition->subgraphs);
    free(partition->nodes);
    free(partition->before);
    free(partition->tensors);
    free(partition->live);
    free(partition->by_layer);
    free(partition->unique);
    free(partition->unique_of);
    free(partition->repeats);
    *partition = (struct partition){0};
}

/* ---- concurrency ---- */

struct level {
    size_t width;
    double largest; /* FLOPs of one subgraph */
};

static void add_to_level(struct level *level, double flops, struct partition_concurrency *out)
{
    level->width++;
    level->largest = flops > level->largest ? flops : level->largest;
    out->max_width = level->width > out->max_width ? level->width : out->max_width;
}

/* FLOPs of the longest path that ends with a subgraph; `until` has those of the ones before it. */
static double longest_path(const struct partition *partition, const struct subgraph *subgraph,
                           double flops, const double *until)
{
    double before = 0;
    for (uint32_t k = 0; k < subgraph->before_count; k++) {
        double one = until[partition->before[subgraph->first_before + k]];
        before = one > before ? one : before;
    }
    return before + flops;
}

static void sum_levels(const struct level *levels, double all, struct partition_concurrency *out)
{
    double largest = 0;
    for (size_t i = 0; i < out->levels; i++) {
        largest += levels[i].largest;
        out->wide_levels += levels[i].width > 1;
    }
    out->stage_parallelism = largest > 0 ? all / largest : 1;
}

struct partition_concurrency partition_concurrency(const struct partition *partition, double batch)
{
    struct partition_concurrency all = {0};
    double flops = graph_flops(&partition->total);
    double *until = xmalloc((partition->count + 1) * sizeof *until);
    struct level *levels = xcalloc(partition->count + 1, sizeof *levels);
    for (size_t i = 0; i < partition->count; i++) {
        const struct subgraph *subgraph = &partition->subgraphs[i];
        double own = graph_flops(&subgraph->cost);
        add_to_level(&levels[subgraph->level], own, &all);
        all.levels = subgraph->level + 1 > all.levels ? subgraph->level + 1 : all.levels;
        until[i] = longest_path(partition, subgraph, own, until);
        all.critical_path_flops = fmax(all.critical_path_flops, until[i]);
    }
    sum_levels(levels, flops, &all);
    all.parallelism = all.critical_path_flops > 0 ? flops / all.critical_path_flops : 1;
    all.batch_parallelism = all.parallelism * batch;
    free(until);
    free(levels);
    return all;
}
