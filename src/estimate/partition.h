/* A graph cut into subgraphs: what runs as one kernel, with what it reads and writes at its border.
 * Subgraphs stand in an order in which each comes after those that it needs, and the edges between them
 * are those of the graph, through views too: nothing is cut at a residual addition.
 *
 * Ownership: partition_make fills a struct that partition_release takes back; it points into the graph,
 * which must last as long. */
#ifndef IPW_ESTIMATE_PARTITION_H
#define IPW_ESTIMATE_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/count.h"
#include "graph/graph.h"

struct subgraph {
    const char *name; /* of the node that decides: "layer1.0.conv1" */
    char pattern[48]; /* "conv+batch_norm+relu" */
    enum graph_op op; /* of that node: the one with most MACs, else the first */
    int32_t layer;    /* GRAPH_NONE outside */
    enum decoder_component component;
    uint32_t first_node, node_count; /* in partition.nodes */
    uint32_t first_before,
        before_count; /* in partition.before: subgraphs that must be done first */
    struct graph_cost
        cost; /* operations of all its nodes; in, out and weights at its border only, each
                               tensor once */
    struct graph_amount inside; /* that fusion saves: written and read again otherwise */
    double outputs; /* numbers that its deciding node makes: how much there is to deal out */
    uint32_t level; /* the longest way from the start, in subgraphs */
};

struct partition {
    const struct graph *graph;
    struct subgraph *subgraphs;
    size_t count;
    node_id *nodes;
    uint32_t *before;
    size_t before_count;
    struct graph_cost total; /* the sum over subgraphs */
};

enum partition_fusion {
    PARTITION_FUSED, /* convolution + norm + activation, linear + activation, attention, qkv, ... */
    PARTITION_PLAIN, /* every node that does something is its own */
};

enum err partition_make(const struct graph *graph, enum partition_fusion fusion,
                        struct partition *out, struct error *why) MUST_USE;
void partition_release(struct partition *partition);

#endif
