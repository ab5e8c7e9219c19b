#include "estimate/partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimate/partition/describe.h"
#include "estimate/partition/flow.h"
#include "estimate/partition/fuse.h"
#include "estimate/partition/kinds.h"
#include "estimate/partition/sharing.h"

struct making {
    struct partition *out;
    const struct flow *flow;
    const struct sharing *sharing;
    int32_t *of;   /* of each node: its subgraph; GRAPH_NONE of views */
    int32_t *seen; /* of each tensor: the last subgraph that counted it */
    double *part;  /* of each root: how much of it that subgraph has counted */
};

static const struct graph_node *node_of(const struct partition *partition,
                                        const struct subgraph *subgraph, uint32_t index)
{
    return &partition->graph->nodes[partition->nodes[subgraph->first_node + index]];
}

/* ---- nodes into subgraphs ---- */

/* Pieces in the order of their places, their nodes in the order of the graph.  Both orders come from one
 * walk over the nodes each, so no sorting is needed. */
static void arrange(struct making *making, const struct pieces *pieces)
{
    struct partition *out = making->out;
    size_t nodes = out->graph->node_count;
    uint32_t used = 0;
    for (size_t i = 0; i < nodes; i++) {
        const struct piece *piece = pieces->of[i] >= 0 ? &pieces->items[pieces->of[i]] : NULL;
        if (!piece || piece->place != (node_id)i)
            continue;
        out->subgraphs[out->count] = (struct subgraph){.first_node = used};
        used += piece->size;
        for (node_id node = piece->head; node >= 0; node = pieces->next[node])
            making->of[node] = (int32_t)out->count;
        out->count++;
    }
    for (size_t i = 0; i < nodes; i++) {
        if (making->of[i] < 0)
            continue;
        struct subgraph *subgraph = &out->subgraphs[making->of[i]];
        out->nodes[subgraph->first_node + subgraph->node_count++] = (node_id)i;
    }
}

/* ---- edges ---- */

/* The subgraph that makes what an input shows; GRAPH_NONE: it comes from outside, or from this one. */
static int32_t needed_of(const struct making *making, const struct graph_node *node, size_t input,
                         int32_t self)
{
    tensor_id root = flow_input(making->flow, node, input);
    node_id maker = root >= 0 ? making->out->graph->tensors[root].maker : GRAPH_NONE;
    int32_t needed = maker >= 0 ? making->of[maker] : GRAPH_NONE;
    return needed == self ? GRAPH_NONE : needed;
}

static void find_edges(struct making *making, int32_t *last)
{
    struct partition *out = making->out;
    for (size_t i = 0; i < out->count; i++)
        last[i] = GRAPH_NONE;
    for (size_t i = 0; i < out->count; i++) {
        struct subgraph *subgraph = &out->subgraphs[i];
        subgraph->first_before = (uint32_t)out->before_count;
        for (uint32_t n = 0; n < subgraph->node_count; n++) {
            const struct graph_node *node = node_of(out, subgraph, n);
            for (size_t k = 0; k < node->input_count; k++) {
                int32_t needed = needed_of(making, node, k, (int32_t)i);
                if (needed < 0 || last[needed] == (int32_t)i)
                    continue;
                last[needed] = (int32_t)i;
                out->before[out->before_count++] = (uint32_t)needed;
                uint32_t level = out->subgraphs[needed].level + 1;
                if (level > subgraph->level)
                    subgraph->level = level;
            }
        }
        subgraph->before_count = (uint32_t)out->before_count - subgraph->first_before;
    }
}

/* ---- what goes over the border ---- */

static bool is_made_inside(const struct making *making, tensor_id root, int32_t self)
{
    node_id maker = making->out->graph->tensors[root].maker;
    return maker >= 0 && making->of[maker] == self;
}

/* Of a tensor, what one that shows it has: less of a slice. */
static double share_of(const struct graph *graph, tensor_id id, tensor_id root)
{
    double shown = graph_elements(&graph->tensors[id]);
    double whole = graph_elements(&graph->tensors[root]);
    return whole > shown ? shown / whole : 1;
}

/* What a node reads through a view is of the kind of what the view shows, and as large a part of it. */
static struct graph_amount read_amount(const struct making *making, const struct graph_node *node,
                                       size_t index, tensor_id root)
{
    static const struct precision_widths ONE = {.weight = 1, .activation = 1, .cache = 1};
    const struct graph *graph = making->out->graph;
    tensor_id id = graph_inputs(graph, node)[index];
    struct graph_amount read = graph_input_amount(graph, node, index);
    if (id == root)
        return read;
    struct graph_amount shown = graph_tensor_amount(&graph->tensors[id]);
    double all = graph_bytes(&shown, &ONE), part = all > 0 ? graph_bytes(&read, &ONE) / all : 1;
    bool is_weight = graph_is_of_model(&graph->tensors[root]);
    struct graph_amount amount = graph_tensor_amount(&graph->tensors[root]);
    graph_amount_scale(&amount,
                       part * (is_weight ? node->weight_share : share_of(graph, id, root)));
    return amount;
}

/* Of a tensor that a subgraph reads in several slices, what this one adds as a part of itself: all of it,
 * unless they are more than the whole together, or it was counted before. */
static double unread_part(struct making *making, const struct graph_node *node, tensor_id id,
                          tensor_id root, int32_t self)
{
    bool is_first = making->seen[root] != self, is_cut = node->weight_share < 1;
    bool is_repeated = !is_first && id != root && making->seen[id] == self;
    bool is_weight = !flow_is_computed(making->flow, root);
    if (is_first)
        making->part[root] = 0;
    making->seen[root] = making->seen[id] = self;
    double share =
        is_weight && is_cut ? node->weight_share : share_of(making->out->graph, id, root);
    double left = 1 - making->part[root], taken = share < left ? share : left;
    if (is_repeated || share <= 0)
        return 0;
    making->part[root] += taken;
    return taken / share;
}

static void count_inputs(struct making *making, struct subgraph *subgraph,
                         const struct graph_node *node, int32_t self)
{
    const struct graph *graph = making->out->graph;
    for (size_t k = 0; k < node->input_count; k++) {
        tensor_id root = flow_input(making->flow, node, k);
        if (root < 0 || is_made_inside(making, root, self))
            continue;
        struct graph_amount amount = read_amount(making, node, k, root);
        bool is_weight = !flow_is_computed(making->flow, root);
        graph_amount_scale(&amount,
                           unread_part(making, node, graph_inputs(graph, node)[k], root, self));
        graph_amount_add(is_weight ? &subgraph->cost.weights : &subgraph->cost.in, &amount);
    }
}

static void count_outputs(struct making *making, struct subgraph *subgraph,
                          const struct graph_node *node, int32_t self)
{
    const struct flow *flow = making->flow;
    for (size_t k = 0; k < node->output_count; k++) {
        tensor_id id = graph_outputs(flow->graph, node)[k];
        if (id < 0)
            continue;
        tensor_id root = flow->root[id];
        struct graph_amount amount = graph_tensor_amount(&flow->graph->tensors[root]);
        uint32_t inside = 0, readers = flow_reader_count(flow, root);
        for (uint32_t r = 0; r < readers; r++)
            inside += making->of[flow->readers[flow->first_reader[root] + r]] == self;
        bool leaves = flow->goes_out[root] || inside < readers || readers == 0;
        if (leaves)
            graph_amount_add(&subgraph->cost.out, &amount);
        else
            graph_amount_add(&subgraph->inside, &amount);
        for (uint32_t r = 0; r < inside; r++)
            graph_amount_add(&subgraph->inside, &amount);
    }
}

static void count_borders(struct making *making)
{
    struct partition *out = making->out;
    for (size_t i = 0; i < out->graph->tensor_count; i++)
        making->seen[i] = GRAPH_NONE;
    for (size_t i = 0; i < out->count; i++) {
        struct subgraph *subgraph = &out->subgraphs[i];
        for (uint32_t n = 0; n < subgraph->node_count; n++) {
            const struct graph_node *node = node_of(out, subgraph, n);
            struct graph_cost cost = graph_node_cost(out->graph, node);
            subgraph->cost.macs += cost.macs;
            subgraph->cost.elementwise += cost.elementwise;
            count_inputs(making, subgraph, node, (int32_t)i);
            count_outputs(making, subgraph, node, (int32_t)i);
        }
        graph_cost_add(&out->total, &subgraph->cost);
        describe_subgraph(out, making->sharing, subgraph);
        out->shared_macs += subgraph->is_shared ? subgraph->cost.macs : 0;
    }
}

/* ---- what lies in memory ---- */

/* Devices share the matrices of linears; everything else of the model each has whole. */
static bool is_shared_weight(const struct making *making, tensor_id root)
{
    const struct flow *flow = making->flow;
    uint32_t first = flow->first_reader[root], count = flow_reader_count(flow, root);
    for (uint32_t r = 0; r < count; r++)
        if (sharing_is_shared_matrix(making->sharing,
                                     &flow->graph->nodes[flow->readers[first + r]]))
            return flow->graph->tensors[root].rank > 1;
    return false;
}

static void place_activation(struct making *making, tensor_id root)
{
    struct partition *out = making->out;
    const struct flow *flow = making->flow;
    const struct graph_tensor *tensor = &out->graph->tensors[root];
    int32_t from = tensor->maker >= 0 ? making->of[tensor->maker] : 0, to = from;
    uint32_t first = flow->first_reader[root], count = flow_reader_count(flow, root);
    bool is_read_outside = tensor->maker < 0 || flow->goes_out[root] || count == 0;
    for (uint32_t r = 0; r < count; r++) {
        int32_t reader = making->of[flow->readers[first + r]];
        is_read_outside |= reader != from;
        to = reader > to ? reader : to;
    }
    if (from < 0 || !is_read_outside || (tensor->maker < 0 && count == 0))
        return;
    if (flow->goes_out[root])
        to = (int32_t)out->count - 1;
    out->tensors[out->tensor_count++] = (struct partition_tensor){
        .tensor = root,
        .from = (uint32_t)from,
        .to = (uint32_t)to,
        .amount = graph_tensor_amount(tensor),
        .columns = making->sharing->divided[root].columns,
        .heads_kv = making->sharing->divided[root].heads_kv,
    };
}

static void place_tensors(struct making *making)
{
    struct partition *out = making->out;
    for (size_t i = 0; i < out->graph->tensor_count; i++) {
        const struct graph_tensor *tensor = &out->graph->tensors[i];
        if (making->flow->root[i] != (tensor_id)i)
            continue;
        struct graph_amount amount = graph_tensor_amount(tensor);
        if (graph_is_of_model(tensor)) {
            graph_amount_add(&out->model, &amount);
            if (is_shared_weight(making, (tensor_id)i))
                graph_amount_add(&out->model_shared, &amount);
        } else if (tensor->role == GRAPH_CACHE) {
            graph_amount_add(&out->cache, &amount);
        } else {
            place_activation(making, (tensor_id)i);
        }
    }
}

static void add_alive(struct partition_alive *to, const struct partition_tensor *tensor, int sign)
{
    double numbers = sign * tensor->amount.activations;
    double columns = round(numbers * tensor->columns), heads = round(numbers * tensor->heads_kv);
    to->activations += numbers - columns - heads;
    to->columns += columns;
    to->heads_kv += heads;
    to->fixed_bytes += sign * tensor->amount.fixed_bytes;
}

/* What a tensor adds where it is made, it takes away after its last use; the sums in between are what is alive.
 * Counts of numbers are whole, so that nothing is lost on the way. */
static void sum_alive(struct partition *out)
{
    for (size_t i = 0; i < out->tensor_count; i++) {
        const struct partition_tensor *tensor = &out->tensors[i];
        add_alive(&out->alive[tensor->from], tensor, 1);
        add_alive(&out->alive[tensor->to + 1], tensor, -1);
    }
    for (size_t i = 1; i < out->count; i++) {
        out->alive[i].activations += out->alive[i - 1].activations;
        out->alive[i].columns += out->alive[i - 1].columns;
        out->alive[i].heads_kv += out->alive[i - 1].heads_kv;
        out->alive[i].fixed_bytes += out->alive[i - 1].fixed_bytes;
    }
}

/* ---- all of it ---- */

static void look_at_nodes(struct partition *out)
{
    for (size_t i = 0; i < out->graph->node_count; i++) {
        const struct graph_node *node = &out->graph->nodes[i];
        out->is_decoder |= node->component != DECODER_COMPONENT_COUNT;
        if (node->op != GRAPH_ATTENTION)
            continue;
        int64_t heads = node->as.attention.heads_kv;
        if (heads > 0 && (out->heads_kv == 0 || heads < out->heads_kv))
            out->heads_kv = heads;
    }
}

static enum err assemble(const struct flow *flow, const struct sharing *sharing,
                         const struct pieces *pieces, struct partition *out)
{
    size_t nodes = flow->graph->node_count + 1, tensors = flow->graph->tensor_count + 1;
    struct making making = {.out = out,
                            .flow = flow,
                            .sharing = sharing,
                            .of = malloc(nodes * sizeof *making.of),
                            .seen = malloc((tensors + nodes) * sizeof *making.seen),
                            .part = malloc(tensors * sizeof *making.part)};
    out->subgraphs = malloc(nodes * sizeof *out->subgraphs);
    out->nodes = malloc(nodes * sizeof *out->nodes);
    out->before = malloc((flow->graph->link_count + 1) * sizeof *out->before);
    out->tensors = malloc(tensors * sizeof *out->tensors);
    out->alive = calloc(nodes + 1, sizeof *out->alive);
    bool has_room = making.of && making.seen && making.part && out->subgraphs && out->nodes &&
                    out->before && out->tensors && out->alive;
    if (has_room) {
        for (size_t i = 0; i < nodes; i++)
            making.of[i] = GRAPH_NONE;
        arrange(&making, pieces);
        find_edges(&making, making.seen);
        count_borders(&making);
        place_tensors(&making);
        sum_alive(out);
    }
    free(making.of);
    free(making.seen);
    free(making.part);
    return has_room ? find_kinds(out) : ERR_NO_MEMORY;
}

static enum err share_and_assemble(const struct flow *flow, const struct pieces *pieces,
                                   struct partition *out)
{
    struct sharing sharing;
    enum err err = sharing_make(flow, out->is_decoder, &sharing);
    if (!err) {
        err = assemble(flow, &sharing, pieces, out);
        sharing_release(&sharing);
    }
    return err;
}

enum err partition_make(const struct graph *graph, enum partition_fusion fusion,
                        struct partition *out, struct error *why)
{
    struct flow flow;
    struct pieces pieces;
    *out = (struct partition){.graph = graph, .parameters = graph_parameters(graph)};
    enum err err = flow_make(graph, fusion == PARTITION_FUSED, &flow);
    if (!err) {
        look_at_nodes(out);
        err = fuse_nodes(&flow, fusion == PARTITION_FUSED, &pieces);
        if (!err) {
            err = share_and_assemble(&flow, &pieces, out);
            pieces_release(&pieces);
        }
        flow_release(&flow);
    }
    if (err) {
        partition_release(out);
        return err_set(why, err, "%s", err_text(err));
    }
    return ERR_OK;
}

void partition_release(struct partition *partition)
{
    free(partition->subgraphs);
    free(partition->nodes);
    free(partition->before);
    free(partition->tensors);
    free(partition->alive);
    free(partition->kinds);
    free(partition->kind_of);
    *partition = (struct partition){0};
}
