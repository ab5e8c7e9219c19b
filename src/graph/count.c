/* Operations follow from the operator and its shapes; elements read and written from the roles of the tensors. */
#include "graph/count.h"

#include <math.h>

/* Per element of the state. */
enum { LSTM_OPERATIONS = 14, GRU_OPERATIONS = 12, RNN_OPERATIONS = 4 };

/* ---- amounts ---- */

void graph_amount_add(struct graph_amount *sum, const struct graph_amount *more)
{
    sum->weights += more->weights;
    sum->activations += more->activations;
    sum->cached += more->cached;
    sum->quantized += more->quantized;
    sum->stored_weights += more->stored_weights;
    sum->stored_bytes += more->stored_bytes;
    sum->fixed_bytes += more->fixed_bytes;
}

void graph_amount_scale(struct graph_amount *amount, double factor)
{
    amount->weights *= factor;
    amount->activations *= factor;
    amount->cached *= factor;
    amount->quantized *= factor;
    amount->stored_weights *= factor;
    amount->stored_bytes *= factor;
    amount->fixed_bytes *= factor;
}

double graph_bytes(const struct graph_amount *amount, const struct precision_widths *widths)
{
    double stored =
        widths->keeps_stored ? amount->stored_bytes : amount->stored_weights * widths->weight;
    double quantized = amount->quantized * (widths->keeps_stored ? 1 : widths->activation);
    return stored + amount->weights * widths->weight + amount->activations * widths->activation +
           quantized + amount->cached * widths->cache + amount->fixed_bytes;
}

static double fixed_width(enum graph_dtype dtype)
{
    return dtype == GRAPH_INT64 ? 8 : dtype == GRAPH_INT32 ? 4 : 1;
}

bool graph_is_static(const struct graph_tensor *tensor)
{
    return tensor->role == GRAPH_PARAMETER || tensor->role == GRAPH_BUFFER ||
           tensor->role == GRAPH_CONSTANT;
}

/* Cost of this many elements of the tensor. */
static struct graph_amount amount_of(const struct graph_tensor *tensor, double elements)
{
    struct graph_amount amount = {0};
    double total = graph_elements(tensor);
    if (tensor->stored_bytes > 0 && total > 0) {
        amount.stored_weights = elements;
        amount.stored_bytes = tensor->stored_bytes * elements / total;
    } else if (tensor->dtype == GRAPH_QUANTIZED) {
        amount.quantized = elements;
    } else if (tensor->dtype != GRAPH_FLOAT) {
        amount.fixed_bytes = elements * fixed_width(tensor->dtype);
    } else if (graph_is_static(tensor)) {
        amount.weights = elements;
    } else if (tensor->role == GRAPH_CACHE) {
        amount.cached = elements;
    } else {
        amount.activations = elements;
    }
    return amount;
}

struct graph_amount graph_tensor_amount(const struct graph_tensor *tensor)
{
    return amount_of(tensor, graph_elements(tensor));
}

/* ---- operations ---- */

static double elements_or_none(const struct graph_tensor *tensor)
{
    return tensor ? graph_elements(tensor) : 0;
}

static double last_dimension(const struct graph_tensor *tensor)
{
    return tensor && tensor->rank ? (double)tensor->dims[tensor->rank - 1] : 0;
}

static double window_elements(const struct graph_window *window)
{
    double elements = 1;
    for (unsigned i = 0; i < window->rank; i++)
        elements *= window->kernel[i];
    return elements;
}

/* Every output element is a sum over one filter; for a transposed convolution, every input element is multiplied by
 * one. */
static double conv_macs(const struct graph *graph, const struct graph_node *node)
{
    const struct graph_tensor *weight = graph_input(graph, node, 1);
    if (!weight || weight->rank == 0 || weight->dims[0] == 0)
        return 0;
    const struct graph_tensor *over =
        node->op == GRAPH_CONV ? graph_output(graph, node, 0) : graph_input(graph, node, 0);
    return elements_or_none(over) * graph_elements(weight) / (double)weight->dims[0];
}

/* 1 + 2 + ... + n. */
static double triangle(double n)
{
    return n * (n + 1) / 2;
}

/* Attended pairs of the first n tokens with chunked attention. */
static double pairs_in_chunks(double n, double chunk)
{
    double whole = floor(n / chunk);
    return whole * triangle(chunk) + triangle(n - whole * chunk);
}

/* Pairs of a token and one that it attends to, including itself, for one head and sequence. */
static double attended_pairs(const struct graph_attention *attention)
{
    double tokens = (double)attention->tokens, cached = (double)attention->cached;
    double window = (double)attention->window;
    if (attention->cross_tokens > 0)
        return tokens * (double)attention->cross_tokens;
    if (!attention->is_causal) {
        double seen = cached + tokens;
        return tokens * (window > 0 && window < seen ? window : seen);
    }
    if (window == 0 || cached + tokens <= window)
        return triangle(cached + tokens) - triangle(cached);
    if (attention->is_chunked)
        return pairs_in_chunks(cached + tokens, window) - pairs_in_chunks(cached, window);
    double growing = cached < window ? window - cached : 0; /* tokens within the first window */
    return triangle(cached + growing) - triangle(cached) + (tokens - growing) * window;
}

static void count_attention(const struct graph_attention *attention, struct graph_cost *cost)
{
    double pairs =
        attended_pairs(attention) * (double)attention->heads * (double)attention->sequences;
    cost->macs = pairs * (double)(attention->key_size + attention->value_size);
    cost->elementwise = graph_op_elementwise(GRAPH_SOFTMAX) * pairs;
}

static double operations_of_state(enum graph_op op)
{
    if (op == GRAPH_LSTM)
        return LSTM_OPERATIONS;
    return op == GRAPH_GRU ? GRU_OPERATIONS : RNN_OPERATIONS;
}

static void count_recurrent(const struct graph *graph, const struct graph_node *node,
                            struct graph_cost *cost)
{
    const struct graph_recurrent *cell = &node->as.recurrent;
    const struct graph_tensor *in = graph_input(graph, node, 0);
    double features = last_dimension(in), gates = graph_op_gates(node->op);
    if (features <= 0)
        return;
    double states =
        elements_or_none(in) / features * (double)cell->hidden * (double)cell->directions;
    cost->macs = states * gates * (features + (double)cell->hidden);
    cost->elementwise = states * operations_of_state(node->op);
}

/* Token by token each output is a sum over its state.  In chunks the tokens of a chunk attend to each other, with a decay
 * per head, and the state enters and leaves by products of matrices. */
static void count_scan(const struct graph *graph, const struct graph_node *node,
                       struct graph_cost *cost)
{
    const double out = elements_or_none(graph_output(graph, node, 0));
    const double state = (double)node->as.recurrent.hidden;
    const double chunk = (double)node->as.recurrent.chunk;
    enum { STEPS = 1, MATRICES = 2 };
    if (chunk > 0) {
        double scores = elements_or_none(graph_input(graph, node, MATRICES)) / 2 * chunk;
        cost->macs = out * (2 * state + chunk) + scores;
        cost->elementwise = 2 * chunk * elements_or_none(graph_input(graph, node, STEPS));
        return;
    }
    cost->macs = out * state;
    cost->elementwise = cost->macs * graph_op_elementwise(GRAPH_SCAN);
}

static void count_product(const struct graph *graph, const struct graph_node *node,
                          struct graph_cost *cost)
{
    double out = elements_or_none(graph_output(graph, node, 0));
    if (node->op == GRAPH_ATTENTION) {
        count_attention(&node->as.attention, cost);
        return;
    }
    if (node->op == GRAPH_SCAN) {
        count_scan(graph, node, cost);
        return;
    }
    if (node->op == GRAPH_CONV || node->op == GRAPH_CONV_TRANSPOSE)
        cost->macs = conv_macs(graph, node);
    else
        cost->macs = out * last_dimension(graph_input(graph, node, 0));
    bool has_bias = node->op != GRAPH_MATMUL && graph_input(graph, node, 2);
    cost->elementwise = has_bias ? out : 0;
}

static void count_operations(const struct graph *graph, const struct graph_node *node,
                             struct graph_cost *cost)
{
    double out = elements_or_none(graph_output(graph, node, 0));
    switch (graph_op_kind(node->op)) {
    case GRAPH_KIND_PRODUCT:
        count_product(graph, node, cost);
        break;
    case GRAPH_KIND_RECURRENT:
        count_recurrent(graph, node, cost);
        break;
    case GRAPH_KIND_POOL:
        cost->elementwise = node->op == GRAPH_REDUCE ? elements_or_none(graph_input(graph, node, 0))
                                                     : out * window_elements(&node->as.window);
        break;
    default:
        cost->elementwise = out * graph_op_elementwise(node->op);
    }
}

/* ---- elements read and written ---- */

/* x * x reads x once.  Only nodes with few inputs repeat one; a concatenation of thousands must not be searched. */
static bool is_repeated(const tensor_id *ids, size_t index)
{
    for (size_t i = 0; i < index && index < 8; i++)
        if (ids[i] == ids[index])
            return true;
    return false;
}

struct graph_amount graph_input_amount(const struct graph *graph, const struct graph_node *node,
                                       size_t index)
{
    const struct graph_tensor *tensor = graph_input(graph, node, index);
    if (!tensor)
        return (struct graph_amount){0};
    double elements = graph_elements(tensor);
    double out = elements_or_none(graph_output(graph, node, 0));
    bool is_table = node->op == GRAPH_EMBEDDING && index == 1;
    /* A slice reads as much as it outputs, as does a cache write from a fused QKV.  A lookup reads rows of a table, at
     * most the whole table (two token types). */
    bool reads_part = graph_op_kind(node->op) == GRAPH_KIND_MOVE || is_table;
    if (reads_part && elements > out)
        elements = out;
    else if (graph_is_static(tensor))
        elements *= node->weight_fraction;
    return amount_of(tensor, elements);
}

static void count_inputs(const struct graph *graph, const struct graph_node *node,
                         struct graph_cost *cost)
{
    const tensor_id *ids = graph_inputs(graph, node);
    for (size_t i = 0; i < node->input_count; i++) {
        const struct graph_tensor *tensor = graph_input(graph, node, i);
        if (!tensor || is_repeated(ids, i))
            continue;
        struct graph_amount amount = graph_input_amount(graph, node, i);
        graph_amount_add(graph_is_static(tensor) ? &cost->weights : &cost->in, &amount);
    }
}

static void count_outputs(const struct graph *graph, const struct graph_node *node,
                          struct graph_cost *cost)
{
    for (size_t i = 0; i < node->output_count; i++) {
        const struct graph_tensor *tensor = graph_output(graph, node, i);
        if (!tensor)
            continue;
        struct graph_amount amount = graph_tensor_amount(tensor);
        graph_amount_add(&cost->out, &amount);
    }
}

struct graph_cost graph_node_cost(const struct graph *graph, const struct graph_node *node)
{
    struct graph_cost cost = {0};
    if (graph_op_kind(node->op) == GRAPH_KIND_VIEW)
        return cost;
    count_operations(graph, node, &cost);
    count_inputs(graph, node, &cost);
    count_outputs(graph, node, &cost);
    return cost;
}

/* ---- sums ---- */

void graph_cost_add(struct graph_cost *sum, const struct graph_cost *more)
{
    sum->macs += more->macs;
    sum->elementwise += more->elementwise;
    graph_amount_add(&sum->in, &more->in);
    graph_amount_add(&sum->out, &more->out);
    graph_amount_add(&sum->weights, &more->weights);
}

struct graph_cost graph_cost_total(const struct graph *graph)
{
    struct graph_cost sum = {0};
    for (size_t i = 0; i < graph->node_count; i++) {
        struct graph_cost one = graph_node_cost(graph, &graph->nodes[i]);
        graph_cost_add(&sum, &one);
    }
    return sum;
}

double graph_cost_bytes(const struct graph_cost *cost, const struct precision_widths *widths)
{
    return graph_bytes(&cost->in, widths) + graph_bytes(&cost->out, widths) +
           graph_bytes(&cost->weights, widths);
}

double graph_flops(const struct graph_cost *cost)
{
    return 2 * cost->macs + cost->elementwise;
}
