/* The order of the nodes: each after what it reads.  Depth first from each node in the given order, so
 * that an order which already is one stays as it was. */
#include <stdlib.h>

#include "graph/graph.h"

struct ordering {
    const struct graph *graph;
    uint8_t *state; /* of each node: 0 not seen, 1 waits for what it reads, 2 placed */
    uint32_t *next; /* of each node: the input to look at next */
    node_id *stack, *order;
    size_t depth, placed;
};

static bool is_ordered(const struct graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        for (size_t k = 0; k < graph->nodes[i].input_count; k++) {
            const struct graph_tensor *tensor = graph_input(graph, &graph->nodes[i], k);
            if (tensor && tensor->maker >= (node_id)i)
                return false;
        }
    return true;
}

/* The next node that the one on top of the stack still needs; GRAPH_NONE: it needs no more. */
static node_id next_needed(struct ordering *ordering, node_id top)
{
    const struct graph_node *node = &ordering->graph->nodes[top];
    while (ordering->next[top] < node->input_count) {
        const struct graph_tensor *tensor =
            graph_input(ordering->graph, node, ordering->next[top]++);
        if (tensor && tensor->maker >= 0 && ordering->state[tensor->maker] != 2)
            return tensor->maker;
    }
    return GRAPH_NONE;
}

static enum err place(struct ordering *ordering, node_id root, struct error *why)
{
    if (ordering->state[root])
        return ERR_OK;
    ordering->stack[ordering->depth++] = root;
    ordering->state[root] = 1;
    while (ordering->depth) {
        node_id top = ordering->stack[ordering->depth - 1];
        node_id needed = next_needed(ordering, top);
        if (needed == GRAPH_NONE) {
            ordering->state[top] = 2;
            ordering->order[ordering->placed++] = top;
            ordering->depth--;
        } else if (ordering->state[needed] == 1) {
            return err_set(why, ERR_BAD_VALUE,
                           "the graph runs in a circle: node %d (%.100s) needs its own result",
                           needed, ordering->graph->nodes[needed].name);
        } else {
            ordering->state[needed] = 1;
            ordering->stack[ordering->depth++] = needed;
        }
    }
    return ERR_OK;
}

static enum err rearrange(struct graph *graph, const node_id *order)
{
    struct graph_node *nodes = malloc((graph->node_count + 1) * sizeof *nodes);
    if (!nodes)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < graph->node_count; i++) {
        nodes[i] = graph->nodes[order[i]];
        for (size_t k = 0; k < nodes[i].output_count; k++) {
            tensor_id id = graph_outputs(graph, &nodes[i])[k];
            if (id >= 0)
                graph->tensors[id].maker = (node_id)i;
        }
    }
    free(graph->nodes);
    graph->nodes = nodes;
    graph->node_room = graph->node_count + 1;
    return ERR_OK;
}

enum err graph_finish(struct graph *graph, struct error *why)
{
    if (is_ordered(graph))
        return ERR_OK;
    size_t count = graph->node_count;
    struct ordering ordering = {.graph = graph,
                                .state = calloc(count, 1),
                                .next = calloc(count, sizeof *ordering.next),
                                .stack = malloc(count * sizeof *ordering.stack),
                                .order = malloc(count * sizeof *ordering.order)};
    enum err err = ordering.state && ordering.next && ordering.stack && ordering.order
                       ? ERR_OK
                       : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < count; i++)
        err = place(&ordering, (node_id)i, why);
    if (!err)
        err = rearrange(graph, ordering.order);
    if (err == ERR_NO_MEMORY)
        err_set(why, err, "%s", err_text(err));
    free(ordering.state);
    free(ordering.next);
    free(ordering.stack);
    free(ordering.order);
    return err;
}
