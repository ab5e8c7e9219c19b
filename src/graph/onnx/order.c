#include "graph/onnx/order.h"

#include <stdlib.h>

/* The node of the same graph that makes an input, from 0; -1: none. */
static int64_t maker_of(const struct onnx_file *file, const struct onnx_graph *graph, uint32_t link)
{
    int32_t value = file->links[link];
    int64_t maker = value == ONNX_NONE ? -1 : file->values[value].maker;
    if (maker < graph->first_node || maker >= (int64_t)graph->first_node + graph->node_count)
        return -1;
    return maker - graph->first_node;
}

static bool is_ordered(const struct onnx_file *file, const struct onnx_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct onnx_node *node = &file->nodes[graph->first_node + i];
        for (uint32_t k = 0; k < node->input_count; k++)
            if (maker_of(file, graph, node->first_input + k) >= (int64_t)i)
                return false;
    }
    return true;
}

/* Depth first, without recursion: a node is placed when all that it reads is. */
struct ordering {
    const struct onnx_file *file;
    const struct onnx_graph *graph;
    uint8_t *state; /* 0: not seen, 1: waits, 2: placed */
    uint32_t *next; /* the input of each to look at next */
    uint32_t *stack, *order;
    size_t depth, placed;
};

static bool place(struct ordering *at, uint32_t *in_cycle)
{
    while (at->depth) {
        uint32_t node = at->stack[at->depth - 1];
        const struct onnx_node *what = &at->file->nodes[at->graph->first_node + node];
        int64_t needed = -1;
        while (at->next[node] < what->input_count && needed < 0) {
            needed = maker_of(at->file, at->graph, what->first_input + at->next[node]++);
            needed = needed >= 0 && at->state[needed] == 2 ? -1 : needed;
        }
        if (needed < 0) {
            at->state[node] = 2;
            at->order[at->placed++] = at->graph->first_node + node;
            at->depth--;
        } else if (at->state[needed] == 1) {
            *in_cycle = (uint32_t)needed;
            return false;
        } else {
            at->state[needed] = 1;
            at->stack[at->depth++] = (uint32_t)needed;
        }
    }
    return true;
}

static enum err cycle_at(const struct ordering *at, uint32_t node, struct error *why)
{
    const struct onnx_node *what = &at->file->nodes[at->graph->first_node + node];
    struct slice name = what->name;
    if (name.length == 0 && what->output_count && at->file->links[what->first_output] != ONNX_NONE)
        name = at->file->values[at->file->links[what->first_output]].name;
    return err_set(why, ERR_BAD_VALUE,
                   "%.160s: node '%s' (%s) reads what is made of its own output: the graph has a "
                   "cycle",
                   at->file->path, onnx_words(name).text, onnx_words(what->op).text);
}

static enum err order_all(struct ordering *at, struct error *why)
{
    uint32_t in_cycle;
    for (uint32_t i = 0; i < at->graph->node_count; i++) {
        if (at->state[i])
            continue;
        at->state[i] = 1;
        at->stack[at->depth++] = i;
        if (!place(at, &in_cycle))
            return cycle_at(at, in_cycle, why);
    }
    return ERR_OK;
}

enum err order_nodes(const struct onnx_file *file, int32_t graph, uint32_t **out, struct error *why)
{
    const struct onnx_graph *which = &file->graphs[graph];
    size_t count = which->node_count;
    struct ordering at = {.file = file, .graph = which};
    at.order = malloc((count + 1) * sizeof *at.order);
    *out = at.order;
    if (!at.order)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    for (uint32_t i = 0; i < which->node_count; i++)
        at.order[i] = which->first_node + i;
    if (is_ordered(file, which))
        return ERR_OK;
    at.state = calloc(count + 1, sizeof *at.state);
    at.next = calloc(count + 1, sizeof *at.next);
    at.stack = malloc((count + 1) * sizeof *at.stack);
    enum err err = at.state && at.next && at.stack
                       ? order_all(&at, why)
                       : err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    free(at.state);
    free(at.next);
    free(at.stack);
    if (err) {
        free(at.order);
        *out = NULL;
    }
    return err;
}
