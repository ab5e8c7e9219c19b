/* What a node costs, counted from its shapes: one table, one meaning (docs/metrics.md, "Counting").
 * FLOPs are 2 x MACs for products plus the elementwise operations of ops.def.  Pure functions.
 *
 * Numbers are counted, not bytes, so that a precision can be changed without counting again:
 * graph_bytes makes bytes of them. */
#ifndef IPW_GRAPH_COUNT_H
#define IPW_GRAPH_COUNT_H

#include "catalog/precision.h"
#include "graph/graph.h"

/* How many numbers of each kind; what has its own size whatever the precision is in bytes. */
struct graph_amount {
    double weights, activations, cached;
    double stored_weights, stored_bytes; /* those with a format of their own, and their bytes */
    double fixed_bytes;                  /* integers */
};

struct graph_cost {
    double macs;        /* multiplications with an addition, on the units for matrices */
    double elementwise; /* all other operations */
    /* Numbers that go in (activations, cache), come out, and weights that are read.  `weights` of a
     * node are what one pass reads: rows of an embedding, woken experts. */
    struct graph_amount in, out, weights;
};

struct graph_cost graph_node_cost(const struct graph *graph, const struct graph_node *node);
/* What it reads of one of its inputs: rows of a table, a slice, woken experts; nothing of one that is left
 * out.  An input that stands twice is counted at each place; graph_node_cost counts it once. */
struct graph_amount graph_input_amount(const struct graph *graph, const struct graph_node *node,
                                       size_t index);
/* Parameters, buffers and constants: what is loaded with the model. */
bool graph_is_of_model(const struct graph_tensor *tensor);
struct graph_cost graph_cost_total(const struct graph *graph); /* every node alone, nothing fused */

void graph_cost_add(struct graph_cost *sum, const struct graph_cost *more);
double graph_flops(const struct graph_cost *cost); /* 2 x macs + elementwise */
void graph_amount_add(struct graph_amount *sum, const struct graph_amount *more);
void graph_amount_scale(struct graph_amount *amount, double factor);
double graph_bytes(const struct graph_amount *amount, const struct precision_widths *widths);

/* One tensor whole, as an amount: what it takes in memory. */
struct graph_amount graph_tensor_amount(const struct graph_tensor *tensor);

#endif
