/* A graph cut into subgraphs: what runs as one kernel, with what it reads and writes at its border.
 * Subgraphs stand in an order in which each comes after those that it needs, and the edges between them
 * are those of the graph, through views too: nothing is cut at a residual addition.
 *
 * Ownership: partition_make fills a struct that partition_release takes back; it points into the graph,
 * which must last as long. */
#ifndef IPW_ESTIMATE_PARTITION_H
#define IPW_ESTIMATE_PARTITION_H

#include <stdbool.h>
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
    double outputs; /* numbers that its deciding nodes make: how much there is to deal out */
    double rows;  /* of the matrix that they are: its columns are the last dimension or channels */
    double steps; /* that wait for each other, of a recurrent layer; 1 of anything else */
    double link_summed;   /* numbers that devices which share it must add up; 0: none */
    double link_gathered; /* numbers of which each has some, and all are needed */
    bool is_shared;       /* devices may share it: products with weights, attention */
    bool is_summed;       /* and each then has a part of every sum, not all of some */
    uint32_t level;       /* the longest way from the start, in subgraphs */
};

/* A tensor that lies in memory between subgraphs, or comes in or goes out: once, whatever views it has. */
struct partition_tensor {
    tensor_id tensor;
    uint32_t from, to; /* subgraphs that make it and use it last; count - 1 for what goes out */
    struct graph_amount amount;
    double columns, heads_kv; /* shares of it that devices divide, see partition_alive */
};

/* What lies in memory between subgraphs while one of them runs. */
struct partition_alive {
    double activations; /* numbers that each device has */
    double columns;     /* numbers that devices which share the model divide by their count */
    double heads_kv;    /* numbers that they divide by no more than the heads of keys and values */
    double fixed_bytes; /* integers */
};

struct partition {
    const struct graph *graph;
    struct subgraph *subgraphs;
    size_t count;
    node_id *nodes;
    uint32_t *before;
    size_t before_count;
    struct graph_cost total; /* the sum over subgraphs */
    double shared_macs;      /* of it, what devices may share */
    struct partition_tensor *tensors;
    size_t tensor_count;
    struct partition_alive *alive;    /* while each subgraph runs */
    struct graph_amount model;        /* parameters, buffers, constants, each whole and once */
    struct graph_amount model_shared; /* of it, what devices may share */
    struct graph_amount cache;        /* keys and values of earlier tokens and of this pass */
    int64_t heads_kv;  /* the fewest of an attention: the cache can be shared by no more devices */
    bool is_decoder;   /* its nodes say which component they are of */
    double parameters; /* of the graph */
    /* Subgraphs of one kind differ in nothing that time or joules depend on: kinds has the first of each,
     * kind_of the kind of every subgraph. */
    uint32_t *kinds, *kind_of;
    size_t kind_count;
};

enum partition_fusion {
    PARTITION_FUSED, /* convolution + norm + activation, linear + activation, attention, qkv, ... */
    PARTITION_PLAIN, /* every node that does something is its own */
};

enum err partition_make(const struct graph *graph, enum partition_fusion fusion,
                        struct partition *out, struct error *why) MUST_USE;
void partition_release(struct partition *partition);

#endif
