/* Depth first from each node in the given order, without recursion: a chain may be a million nodes long. */
#include "graph/order.h"

#include <stdbool.h>
#include <stdlib.h>

enum state { UNSEEN, WAITING, PLACED };

struct ordering {
    order_producer *producer;
    const void *graph;
    uint8_t *state;       /* enum state of each node */
    uint32_t *next_input; /* of each node: the input to visit next */
    uint32_t *stack, *order;
    size_t depth, placed;
};

static bool is_ordered(size_t count, order_producer *producer, const void *graph)
{
    for (uint32_t node = 0; node < count; node++) {
        int64_t needed;
        for (uint32_t i = 0; (needed = producer(graph, node, i)) != ORDER_NO_MORE; i++)
            if (needed >= (int64_t)node)
                return false;
    }
    return true;
}

static void push(struct ordering *at, uint32_t node)
{
    at->state[node] = WAITING;
    at->stack[at->depth++] = node;
}

/* The next producer that `node` still waits for; ORDER_NO_MORE: all are placed. */
static int64_t next_needed(struct ordering *at, uint32_t node)
{
    int64_t needed;
    do
        needed = at->producer(at->graph, node, at->next_input[node]++);
    while (needed == ORDER_NO_NODE || (needed >= 0 && at->state[needed] == PLACED));
    return needed;
}

/* False when a node depends on itself. */
static bool place(struct ordering *at, uint32_t root, uint32_t *in_cycle)
{
    push(at, root);
    while (at->depth) {
        uint32_t node = at->stack[at->depth - 1];
        int64_t needed = next_needed(at, node);
        if (needed == ORDER_NO_MORE) {
            at->state[node] = PLACED;
            at->order[at->placed++] = node;
            at->depth--;
        } else if (at->state[needed] == WAITING) {
            *in_cycle = (uint32_t)needed;
            return false;
        } else {
            push(at, (uint32_t)needed);
        }
    }
    return true;
}

enum err order_nodes(size_t count, order_producer *producer, const void *graph, uint32_t *order,
                     uint32_t *in_cycle)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (is_ordered(count, producer, graph))
        return ERR_OK;
    struct ordering at = {.producer = producer,
                          .graph = graph,
                          .state = calloc(count, sizeof *at.state),
                          .next_input = calloc(count, sizeof *at.next_input),
                          .stack = malloc(count * sizeof *at.stack),
                          .order = order};
    enum err err = at.state && at.next_input && at.stack ? ERR_OK : ERR_NO_MEMORY;
    for (uint32_t i = 0; i < count && !err; i++)
        if (at.state[i] == UNSEEN && !place(&at, i, in_cycle))
            err = ERR_BAD_VALUE;
    free(at.state);
    free(at.next_input);
    free(at.stack);
    return err;
}
