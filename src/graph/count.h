/* The cost of a node, counted from its shapes (docs/metrics.md, "Counting").
 * FLOPs are 2 x MACs for products plus the elementwise operations of ops.def.  Pure functions.
 *
 * Elements are counted, not bytes, so that the precision can change without counting again: graph_bytes converts
 * them. */
#ifndef IPW_GRAPH_COUNT_H
#define IPW_GRAPH_COUNT_H

#include "catalog/precision.h"
#include "graph/graph.h"

/* Elements of each kind; those whose size does not depend on the precision are counted in bytes. */
struct graph_amount {
    double weights, activations, cached;
    double quantized;                    /* activations of 8 bits in a quantized file */
    double stored_weights, stored_bytes; /* weights in a file's own dtype, and their bytes */
    double fixed_bytes;                  /* integers */
};

struct graph_cost {
    double macs;        /* multiply-accumulates of products */
    double elementwise; /* all other operations */
    /* Activations and KV cache that are read, outputs, and weights read by one pass: rows of an embedding, active
     * experts. */
    struct graph_amount in, out, weights;
};

struct graph_cost graph_node_cost(const struct graph *graph, const struct graph_node *node);
/* Elements read from one of its inputs; none for an omitted one.  A repeated input is counted each time here, and once
 * by graph_node_cost. */
struct graph_amount graph_input_amount(const struct graph *graph, const struct graph_node *node,
                                       size_t index);
/* Parameters, buffers and constants: loaded with the model. */
bool graph_is_static(const struct graph_tensor *tensor);
struct graph_cost graph_cost_total(const struct graph *graph); /* without fusion */

void graph_cost_add(struct graph_cost *sum, const struct graph_cost *more);
double graph_flops(const struct graph_cost *cost); /* 2 x macs + elementwise */
void graph_amount_add(struct graph_amount *sum, const struct graph_amount *more);
void graph_amount_scale(struct graph_amount *amount, double factor);
double graph_bytes(const struct graph_amount *amount, const struct precision_widths *widths);
/* Everything that is read and written. */
double graph_cost_bytes(const struct graph_cost *cost, const struct precision_widths *widths);

/* All elements of a tensor. */
struct graph_amount graph_tensor_amount(const struct graph_tensor *tensor);

#endif
