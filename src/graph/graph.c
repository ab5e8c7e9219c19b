/* Tensors and nodes are arrays; the inputs and outputs of a node are runs of tensor ids in one array of links. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"

static const struct {
    const char *name;
    enum graph_kind kind;
    double elementwise;
} OPS[] = {
#define OP(constant, name, kind, elementwise) {name, GRAPH_KIND_##kind, elementwise},
#include "graph/ops.def"
#undef OP
};

const char *graph_op_name(enum graph_op op)
{
    return OPS[op].name;
}

enum graph_kind graph_op_kind(enum graph_op op)
{
    return OPS[op].kind;
}

int graph_op_gates(enum graph_op op)
{
    if (op == GRAPH_LSTM)
        return 4;
    return op == GRAPH_GRU ? 3 : 1;
}

double graph_op_elementwise(enum graph_op op)
{
    return OPS[op].elementwise;
}

static const struct {
    const char *name;
    const char *label;
} COMPONENTS[DECODER_COMPONENT_COUNT] = {
#define DECODER_COMPONENT(constant, name, label) [DECODER_##constant] = {name, label},
#include "graph/decoder_components.def"
#undef DECODER_COMPONENT
};

const char *decoder_component_name(enum decoder_component component)
{
    return (unsigned)component < DECODER_COMPONENT_COUNT ? COMPONENTS[component].name : "unknown";
}

const char *decoder_component_label(enum decoder_component component)
{
    return (unsigned)component < DECODER_COMPONENT_COUNT ? COMPONENTS[component].label : "unknown";
}

void graph_release(struct graph *graph)
{
    free(graph->tensors);
    free(graph->nodes);
    free(graph->links);
    arena_release(&graph->names);
    *graph = (struct graph){0};
}

/* ---- building ---- */

static const char *copy_name(struct graph *graph, const char *string)
{
    if (str_is_plain(string))
        return arena_string(&graph->names, string, strlen(string));
    struct text plain = {0};
    text_add_plain(&plain, string);
    const char *kept = arena_string(&graph->names, text_get(&plain), plain.length);
    text_release(&plain);
    return kept;
}

tensor_id graph_add_tensor(struct graph *graph, const struct graph_tensor *tensor)
{
    XGROW(graph->tensors, graph->tensor_count, graph->tensor_capacity);
    struct graph_tensor *added = &graph->tensors[graph->tensor_count];
    *added = *tensor;
    added->name = copy_name(graph, tensor->name ? tensor->name : "");
    added->producer = GRAPH_NONE;
    return (tensor_id)graph->tensor_count++;
}

/* Returns the index of the first. */
static uint32_t add_links(struct graph *graph, const tensor_id *ids, size_t count)
{
    size_t first = graph->link_count;
    for (size_t i = 0; i < count; i++) {
        *XADD(graph->links, graph->link_count, graph->link_capacity) = ids[i];
    }
    return (uint32_t)first;
}

void graph_add_node(struct graph *graph, const struct graph_node *node, const tensor_id *inputs,
                    size_t input_count, const tensor_id *outputs, size_t output_count)
{
    XGROW(graph->nodes, graph->node_count, graph->node_capacity);
    struct graph_node added = *node;
    added.name = copy_name(graph, node->name ? node->name : "");
    added.label = node->label ? copy_name(graph, node->label) : graph_op_name(node->op);
    added.input_count = (uint32_t)input_count;
    added.output_count = (uint32_t)output_count;
    if (added.weight_fraction <= 0)
        added.weight_fraction = 1;
    added.first_input = add_links(graph, inputs, input_count);
    added.first_output = add_links(graph, outputs, output_count);
    for (size_t i = 0; i < output_count; i++)
        if (outputs[i] >= 0)
            graph->tensors[outputs[i]].producer = (node_id)graph->node_count;
    graph->unknown_count += node->op == GRAPH_UNKNOWN;
    graph->nodes[graph->node_count++] = added;
}

void graph_remove_nodes(struct graph *graph, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        graph->unknown_count -= graph->nodes[i].op == GRAPH_UNKNOWN;
    for (size_t i = 0; i < graph->tensor_count && count; i++) {
        node_id *producer = &graph->tensors[i].producer;
        if (*producer >= (node_id)(first + count))
            *producer -= (node_id)count;
        else if (*producer >= (node_id)first)
            *producer = GRAPH_NONE;
    }
    graph->node_count -= count;
    if (count)
        memmove(graph->nodes + first, graph->nodes + first + count,
                (graph->node_count - first) * sizeof *graph->nodes);
}

void graph_note(struct graph *graph, const char *format, ...)
{
    struct graph_notes *notes = &graph->notes;
    char text[sizeof notes->text[0]];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    for (size_t i = 0; i < notes->count; i++)
        if (str_equal(notes->text[i], text))
            return;
    if (notes->count < COUNT_OF(notes->text))
        str_copy(notes->text[notes->count++], sizeof text, text);
}

/* ---- reading ---- */

const tensor_id *graph_inputs(const struct graph *graph, const struct graph_node *node)
{
    return graph->links ? graph->links + node->first_input : NULL; /* no links at all */
}

const tensor_id *graph_outputs(const struct graph *graph, const struct graph_node *node)
{
    return graph->links ? graph->links + node->first_output : NULL;
}

const struct graph_tensor *graph_input(const struct graph *graph, const struct graph_node *node,
                                       size_t index)
{
    tensor_id id = index < node->input_count ? graph_inputs(graph, node)[index] : GRAPH_NONE;
    return id >= 0 ? &graph->tensors[id] : NULL;
}

const struct graph_tensor *graph_output(const struct graph *graph, const struct graph_node *node,
                                        size_t index)
{
    tensor_id id = index < node->output_count ? graph_outputs(graph, node)[index] : GRAPH_NONE;
    return id >= 0 ? &graph->tensors[id] : NULL;
}

double graph_elements(const struct graph_tensor *tensor)
{
    double elements = 1;
    for (unsigned i = 0; i < tensor->rank; i++)
        elements *= (double)tensor->dims[i];
    return elements;
}

double graph_parameters(const struct graph *graph)
{
    double sum = 0;
    for (size_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].role == GRAPH_PARAMETER)
            sum += graph_elements(&graph->tensors[i]);
    return sum;
}

/* ---- topological order ---- */

/* Iterative depth-first search from each node in the given order: a chain may be a million nodes long. */
enum state { UNVISITED, PENDING, ORDERED };

struct ordering {
    order_producer *producer;
    const void *graph;
    uint8_t *state;       /* enum state of each node */
    uint32_t *next_input; /* per node: the input to visit next */
    uint32_t *stack, *order;
    size_t depth, ordered;
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
    at->state[node] = PENDING;
    at->stack[at->depth++] = node;
}

/* The next producer of `node` without a position; ORDER_NO_MORE: all have one. */
static int64_t next_needed(struct ordering *at, uint32_t node)
{
    int64_t needed;
    do
        needed = at->producer(at->graph, node, at->next_input[node]++);
    while (needed == ORDER_NO_NODE || (needed >= 0 && at->state[needed] == ORDERED));
    return needed;
}

/* False if a node depends on itself. */
static bool visit(struct ordering *at, uint32_t root, uint32_t *in_cycle)
{
    push(at, root);
    while (at->depth) {
        uint32_t node = at->stack[at->depth - 1];
        int64_t needed = next_needed(at, node);
        if (needed == ORDER_NO_MORE) {
            at->state[node] = ORDERED;
            at->order[at->ordered++] = node;
            at->depth--;
        } else if (at->state[needed] == PENDING) {
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
                          .state = xcalloc(count, sizeof *at.state),
                          .next_input = xcalloc(count, sizeof *at.next_input),
                          .stack = xreallocarray(NULL, count, sizeof *at.stack),
                          .order = order};
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < count && !err; i++)
        if (at.state[i] == UNVISITED && !visit(&at, i, in_cycle))
            err = ERR_BAD_VALUE;
    free(at.state);
    free(at.next_input);
    free(at.stack);
    return err;
}

static int64_t producer(const void *data, uint32_t node, uint32_t index)
{
    const struct graph *graph = data;
    if (index >= graph->nodes[node].input_count)
        return ORDER_NO_MORE;
    const struct graph_tensor *tensor = graph_input(graph, &graph->nodes[node], index);
    return tensor && tensor->producer >= 0 ? tensor->producer : ORDER_NO_NODE;
}

static void rearrange(struct graph *graph, const uint32_t *order)
{
    size_t in_place = 0;
    while (in_place < graph->node_count && order[in_place] == in_place)
        in_place++;
    if (in_place == graph->node_count)
        return;
    struct graph_node *nodes = xreallocarray(NULL, graph->node_count + 1, sizeof *nodes);
    for (size_t i = 0; i < graph->node_count; i++) {
        nodes[i] = graph->nodes[order[i]];
        for (size_t k = 0; k < nodes[i].output_count; k++) {
            tensor_id id = graph_outputs(graph, &nodes[i])[k];
            if (id >= 0)
                graph->tensors[id].producer = (node_id)i;
        }
    }
    free(graph->nodes);
    graph->nodes = nodes;
    graph->node_capacity = graph->node_count + 1;
}

enum err graph_finish(struct graph *graph, struct error *why)
{
    uint32_t in_cycle, *order = xreallocarray(NULL, graph->node_count + 1, sizeof *order);
    enum err err = order_nodes(graph->node_count, producer, graph, order, &in_cycle);
    if (!err)
        rearrange(graph, order);
    free(order);
    if (err)
        return err_set(why, err,
                       "the graph has a cycle: node %u (%.100s) depends on its own output",
                       in_cycle, graph->nodes[in_cycle].name);
    return ERR_OK;
}

/* ---- options ---- */

/* Products of such sizes stay far below 2^63. */
enum { MAX_BATCH = 1 << 20, MAX_IMAGE = 100000, MAX_TOKENS = 1 << 28 };

enum err graph_options_complete(struct graph_options *options, const char *model_name,
                                bool has_phases, const struct graph_options *defaults,
                                struct error *why)
{
    const struct {
        const char *name;
        int64_t *value, otherwise, max;
    } SIZES[] = {
        {"batch", &options->batch, 1, MAX_BATCH},
        {"image size", &options->image, defaults->image, MAX_IMAGE},
        {"token count", &options->tokens, defaults->tokens, MAX_TOKENS},
        {"context", &options->context, defaults->context, MAX_TOKENS},
    };
    for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
        if (*SIZES[i].value == 0)
            *SIZES[i].value = SIZES[i].otherwise;
        if (*SIZES[i].value < 0 || *SIZES[i].value > SIZES[i].max)
            return err_set(why, ERR_USAGE, "%s: %s of %lld: must be 1 to %lld", model_name,
                           SIZES[i].name, (long long)*SIZES[i].value, (long long)SIZES[i].max);
    }
    if (options->image_width > 0 && options->image_width != options->image)
        return err_set(why, ERR_USAGE, "%s takes square images: give --image N, not HxW",
                       model_name);
    if (options->phase == GRAPH_DECODE && !has_phases)
        return err_set(why, ERR_UNSUPPORTED, "%s is not a decoder: it has no decode phase",
                       model_name);
    return ERR_OK;
}
