#include "estimate/partition/pieces.h"

#include <stdlib.h>

void pieces_release(struct pieces *pieces)
{
    free(pieces->items);
    free(pieces->of);
    free(pieces->next);
    *pieces = (struct pieces){0};
}

enum err pieces_init(const struct flow *flow, struct pieces *out)
{
    size_t count = flow->graph->node_count;
    *out = (struct pieces){.flow = flow,
                           .items = malloc((count + 1) * sizeof *out->items),
                           .of = malloc((count + 1) * sizeof *out->of),
                           .next = malloc((count + 1) * sizeof *out->next)};
    if (!out->items || !out->of || !out->next) {
        pieces_release(out);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++)
        out->of[i] = GRAPH_NONE;
    return ERR_OK;
}

static const struct graph_node *node_at(const struct pieces *pieces, node_id node)
{
    return &pieces->flow->graph->nodes[node];
}

double pieces_outputs(const struct pieces *pieces, node_id node)
{
    const struct graph_tensor *out = graph_output(pieces->flow->graph, node_at(pieces, node), 0);
    return out ? graph_elements(out) : 0;
}

/* ---- building ---- */

static enum piece_kind kind_of(enum graph_op op)
{
    switch (graph_op_kind(op)) {
    case GRAPH_KIND_PRODUCT:
        return op == GRAPH_ATTENTION ? PIECE_CLOSED : PIECE_PRODUCT;
    case GRAPH_KIND_NORM:
        return op == GRAPH_BATCH_NORM ? PIECE_POINTWISE : PIECE_NORM;
    case GRAPH_KIND_ACTIVATION:
        return PIECE_POINTWISE;
    case GRAPH_KIND_ELEMENTWISE: /* a rotation mixes pairs of numbers */
        return op == GRAPH_ROTATION ? PIECE_CLOSED : PIECE_POINTWISE;
    default:
        return PIECE_CLOSED;
    }
}

struct piece *pieces_begin(struct pieces *pieces, node_id node)
{
    const struct graph_node *begun = node_at(pieces, node);
    struct piece *piece = &pieces->items[pieces->count];
    bool is_linear = begun->op == GRAPH_LINEAR;
    tensor_id source = is_linear ? flow_input(pieces->flow, begun, 0) : GRAPH_NONE;
    for (size_t i = 1; is_linear && i < begun->input_count; i++)
        if (flow_is_computed(pieces->flow, flow_input(pieces->flow, begun, i)))
            source = GRAPH_NONE;
    *piece = (struct piece){.kind = kind_of(begun->op),
                            .head = node,
                            .tail = node,
                            .place = node,
                            .last = node,
                            .source = flow_is_computed(pieces->flow, source) ? source : GRAPH_NONE,
                            .size = 1,
                            .products = is_linear};
    pieces->of[node] = (int32_t)pieces->count++;
    pieces->next[node] = GRAPH_NONE;
    return piece;
}

void pieces_append(struct pieces *pieces, struct piece *piece, node_id node)
{
    const struct graph_node *added = node_at(pieces, node);
    const struct flow *flow = pieces->flow;
    for (size_t i = 0; i < added->input_count; i++) {
        tensor_id root = flow_input(flow, added, i);
        node_id maker = root >= 0 ? flow->graph->tensors[root].maker : GRAPH_NONE;
        bool is_inside = maker >= 0 && pieces->of[maker] == (int32_t)(piece - pieces->items);
        if (!is_inside && flow_is_computed(flow, root))
            piece->source = GRAPH_NONE;
    }
    pieces->next[piece->last] = node;
    pieces->next[node] = GRAPH_NONE;
    pieces->of[node] = (int32_t)(piece - pieces->items);
    piece->last = piece->tail = node;
    if (node > piece->place)
        piece->place = node;
    piece->size++;
    piece->has_norm |= graph_op_kind(added->op) == GRAPH_KIND_NORM;
}

void pieces_merge(struct pieces *pieces, struct piece *into, struct piece *from)
{
    for (node_id node = from->head; node >= 0; node = pieces->next[node])
        pieces->of[node] = (int32_t)(into - pieces->items);
    pieces->next[into->last] = from->head;
    into->last = from->last;
    into->size += from->size;
    into->products += from->products;
    into->has_norm |= from->has_norm;
    from->size = 0;
}

struct piece *pieces_before(const struct pieces *pieces, tensor_id root, node_id reader)
{
    const struct flow *flow = pieces->flow;
    if (root < 0 || flow->goes_out[root] || flow_reader_count(flow, root) != 1 ||
        flow->readers[flow->first_reader[root]] != reader)
        return NULL;
    node_id maker = flow->graph->tensors[root].maker;
    if (maker < 0 || pieces->of[maker] < 0 || node_at(pieces, maker)->output_count != 1)
        return NULL;
    struct piece *piece = &pieces->items[pieces->of[maker]];
    return piece->tail == maker && piece->size < PIECE_MOST_NODES ? piece : NULL;
}
