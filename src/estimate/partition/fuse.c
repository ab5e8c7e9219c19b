#include "estimate/partition/fuse.h"

#include <stdlib.h>

#include "estimate/partition/region.h"

enum {
    MOST_STEPS = 6,     /* of scale, mask and the like between two products of attention */
    MOST_SIBLINGS = 3,  /* queries, keys, values */
    MOST_DISTANCE = 64, /* nodes between siblings: those of other layers are none */
};

static const struct graph_node *node_at(const struct pieces *pieces, node_id node)
{
    return &pieces->flow->graph->nodes[node];
}

static bool is_pointwise(enum graph_op op)
{
    enum graph_kind kind = graph_op_kind(op);
    return kind == GRAPH_KIND_ACTIVATION ||
           (kind == GRAPH_KIND_ELEMENTWISE && op != GRAPH_ROTATION);
}

/* ---- attention, spelled out: matmul, scale, mask, softmax, matmul ---- */

/* The only node that reads what this one makes; GRAPH_NONE: several do, or it goes out. */
static node_id only_reader(const struct flow *flow, const struct graph_node *node)
{
    if (node->output_count != 1 || graph_outputs(flow->graph, node)[0] < 0)
        return GRAPH_NONE;
    tensor_id root = flow->root[graph_outputs(flow->graph, node)[0]];
    bool is_one = flow_reader_count(flow, root) == 1 && !flow->goes_out[root];
    return is_one ? flow->readers[flow->first_reader[root]] : GRAPH_NONE;
}

/* A scale or the like of one tensor, which the product then reads. */
static bool is_scaled(const struct pieces *pieces, const struct piece *piece)
{
    tensor_id source = GRAPH_NONE;
    if (piece->kind != PIECE_POINTWISE || piece->size > MOST_STEPS)
        return false;
    for (node_id node = piece->head; node >= 0; node = pieces->next[node])
        for (size_t i = 0; i < node_at(pieces, node)->input_count; i++) {
            tensor_id root = flow_input(pieces->flow, node_at(pieces, node), i);
            node_id maker = root >= 0 ? pieces->flow->graph->tensors[root].maker : GRAPH_NONE;
            bool is_inside = maker >= 0 && pieces->of[maker] == pieces->of[node];
            if (is_inside || root == source || !flow_is_computed(pieces->flow, root))
                continue;
            if (source >= 0)
                return false;
            source = root;
        }
    return true;
}

/* Exporters scale queries and keys before they multiply them. */
static void take_scales(struct pieces *pieces, struct piece *piece, node_id product)
{
    const struct graph_node *node = node_at(pieces, product);
    for (size_t i = 0; i < node->input_count && i < 2; i++) {
        struct piece *scale = pieces_before(pieces, flow_input(pieces->flow, node, i), product);
        if (scale && scale != piece && scale->size + piece->size <= PIECE_MOST_NODES &&
            is_scaled(pieces, scale))
            pieces_merge(pieces, piece, scale);
    }
}

struct chain {
    node_id nodes[MOST_STEPS + 2];
    size_t length;
};

/* Steps that branch and meet again, as what is no number after the softmax is replaced; false: none. */
static bool take_branches(const struct pieces *pieces, struct chain *chain, node_id node)
{
    const struct flow *flow = pieces->flow;
    tensor_id root = flow->root[graph_outputs(flow->graph, node_at(pieces, node))[0]];
    struct region region;
    if (flow_reader_count(flow, root) < 2 ||
        !region_find(pieces, root, flow->readers[flow->first_reader[root]], &region) ||
        !region.takes_all || region.has_means || region.has_parts ||
        chain->length + region.count > MOST_STEPS + 1)
        return false;
    for (uint32_t i = 0; i < region.count; i++)
        chain->nodes[chain->length++] = region.nodes[i];
    return true;
}

/* From the first product to the second. */
static bool find_attention(const struct pieces *pieces, node_id first, struct chain *chain)
{
    node_id at = first;
    bool has_softmax = false;
    while (chain->length < MOST_STEPS + 2) {
        chain->nodes[chain->length++] = at;
        const struct graph_node *node = node_at(pieces, at);
        if (node->output_count != 1 || graph_outputs(pieces->flow->graph, node)[0] < 0)
            return false;
        if (take_branches(pieces, chain, at))
            at = chain->nodes[chain->length - 1];
        at = only_reader(pieces->flow, node_at(pieces, at));
        if (at < 0 || pieces->of[at] >= 0)
            return false;
        enum graph_op op = node_at(pieces, at)->op;
        if (op == GRAPH_MATMUL && has_softmax && chain->length < MOST_STEPS + 2) {
            chain->nodes[chain->length++] = at;
            return true;
        }
        if (!is_pointwise(op) && (op != GRAPH_SOFTMAX || has_softmax))
            return false;
        has_softmax |= op == GRAPH_SOFTMAX;
    }
    return false;
}

static bool place_attention(struct pieces *pieces, node_id first)
{
    struct chain chain = {.length = 0};
    if (!find_attention(pieces, first, &chain))
        return false;
    struct piece *piece = pieces_begin(pieces, first);
    for (size_t i = 1; i < chain.length; i++)
        pieces_append(pieces, piece, chain.nodes[i]);
    piece->kind = PIECE_CLOSED;
    take_scales(pieces, piece, first);
    return true;
}

/* ---- what follows number by number ---- */

static bool may_follow(const struct pieces *pieces, const struct piece *piece, node_id node)
{
    enum graph_op op = node_at(pieces, node)->op;
    if (piece->kind == PIECE_CLOSED)
        return false;
    /* What is repeated to a larger shape is no end of the same loop. */
    if (pieces_outputs(pieces, node) != pieces_outputs(pieces, piece->tail))
        return false;
    if (op == GRAPH_BATCH_NORM)
        return piece->kind == PIECE_PRODUCT && !piece->has_norm;
    if (piece->kind == PIECE_NORM)
        return graph_op_kind(op) == GRAPH_KIND_ACTIVATION;
    return is_pointwise(op);
}

/* The region begins its own piece, or ends the one that makes what it starts from. */
static bool place_region(struct pieces *pieces, node_id node)
{
    struct region region;
    const struct flow *flow = pieces->flow;
    tensor_id start = GRAPH_NONE;
    for (size_t i = 0; start < 0 && i < node_at(pieces, node)->input_count; i++)
        if (flow_is_computed(flow, flow_input(flow, node_at(pieces, node), i)))
            start = flow_input(flow, node_at(pieces, node), i);
    if (start < 0 || !region_find(pieces, start, node, &region))
        return false;
    node_id maker = flow->graph->tensors[start].maker, last = region.nodes[region.count - 1];
    struct piece *piece =
        maker >= 0 && pieces->of[maker] >= 0 ? &pieces->items[pieces->of[maker]] : NULL;
    bool joins = piece && region.takes_all && !region.has_means && !region.has_parts &&
                 piece->tail == maker && node_at(pieces, maker)->output_count == 1 &&
                 piece->size + region.count <= PIECE_MOST_NODES && may_follow(pieces, piece, last);
    uint32_t first = joins ? 0 : 1;
    if (!joins)
        piece = pieces_begin(pieces, node);
    for (uint32_t i = first; i < region.count; i++)
        pieces_append(pieces, piece, region.nodes[i]);
    if (region.has_means)
        piece->kind = PIECE_NORM;
    if (region.has_parts) /* a rotation, as where it is one node */
        piece->kind = PIECE_CLOSED;
    return true;
}

/* activation(x A) x (x B): the product joins both, and they become one. */
static bool place_gate(struct pieces *pieces, node_id node)
{
    const struct graph_node *gate = node_at(pieces, node);
    if (gate->op != GRAPH_MUL || gate->input_count != 2)
        return false;
    struct piece *a = pieces_before(pieces, flow_input(pieces->flow, gate, 0), node);
    struct piece *b = pieces_before(pieces, flow_input(pieces->flow, gate, 1), node);
    bool fits = a && b && a != b && a->source >= 0 && a->source == b->source &&
                a->size + b->size < PIECE_MOST_NODES && may_follow(pieces, a, node) &&
                may_follow(pieces, b, node);
    if (!fits)
        return false;
    pieces_merge(pieces, a, b);
    pieces_append(pieces, a, node);
    return true;
}

static bool place_behind(struct pieces *pieces, node_id node)
{
    const struct graph_node *follower = node_at(pieces, node);
    for (size_t i = 0; i < follower->input_count && i < PIECE_MOST_NODES; i++) {
        struct piece *piece = pieces_before(pieces, flow_input(pieces->flow, follower, i), node);
        if (piece && may_follow(pieces, piece, node)) {
            pieces_append(pieces, piece, node);
            return true;
        }
    }
    return false;
}

static bool place(struct pieces *pieces, node_id node)
{
    enum graph_op op = node_at(pieces, node)->op;
    if (op == GRAPH_MATMUL)
        return place_attention(pieces, node);
    if (op == GRAPH_REDUCE)
        return place_region(pieces, node);
    if (op == GRAPH_BATCH_NORM)
        return place_behind(pieces, node);
    return is_pointwise(op) &&
           (place_region(pieces, node) || place_gate(pieces, node) || place_behind(pieces, node));
}

/* ---- siblings: linears of one tensor ---- */

static bool are_siblings(const struct pieces *pieces, const struct piece *a, const struct piece *b)
{
    const struct graph_node *first = node_at(pieces, a->head), *second = node_at(pieces, b->head);
    return a->products + b->products <= MOST_SIBLINGS && b->head - a->head <= MOST_DISTANCE &&
           first->layer == second->layer && first->weight_share == second->weight_share;
}

static enum err join_siblings(struct pieces *pieces)
{
    size_t tensors = pieces->flow->graph->tensor_count;
    int32_t *latest = malloc((tensors + 1) * sizeof *latest); /* of each source: its last piece */
    if (!latest)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < tensors; i++)
        latest[i] = GRAPH_NONE;
    for (size_t i = 0; i < pieces->count; i++) {
        struct piece *piece = &pieces->items[i];
        if (piece->size == 0 || piece->source < 0)
            continue;
        struct piece *elder =
            latest[piece->source] >= 0 ? &pieces->items[latest[piece->source]] : NULL;
        if (elder && are_siblings(pieces, elder, piece)) {
            elder->tail = GRAPH_NONE;
            elder->place = elder->head;
            pieces_merge(pieces, elder, piece);
        } else {
            latest[piece->source] = (int32_t)i;
        }
    }
    free(latest);
    return ERR_OK;
}

enum err fuse_nodes(const struct flow *flow, bool is_fused, struct pieces *out)
{
    enum err err = pieces_init(flow, out);
    for (size_t i = 0; !err && i < flow->graph->node_count; i++) {
        bool is_placed = out->of[i] >= 0 || flow_is_view(flow, &flow->graph->nodes[i]);
        if (!is_placed && !(is_fused && place(out, (node_id)i)))
            pieces_begin(out, (node_id)i);
    }
    if (!err && is_fused)
        err = join_siblings(out);
    if (err)
        pieces_release(out);
    return err;
}
