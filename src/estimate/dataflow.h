/* Data flow of a graph with views resolved: a view is another shape of the same elements, so reading a view reads the
 * tensor behind it, its root.  With kernel fusion, transposes and slices are resolved too: a fused kernel reads such an
 * operand in place.
 *
 * Ownership: dataflow_make, sharding_make and fusion_make fill structs that their release functions free; a dataflow
 * points into the graph, a sharding into the dataflow. */
#ifndef IPW_ESTIMATE_DATAFLOW_H
#define IPW_ESTIMATE_DATAFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"

struct dataflow {
    const struct graph *graph;
    bool is_in_place;       /* transposes and slices are resolved like views */
    bool *is_view;          /* by node */
    tensor_id *root;        /* by tensor: the tensor that holds its elements, mostly itself */
    bool *is_output;        /* by root: it, or a view of it, is an output of the model */
    uint32_t *first_reader; /* by root: index into readers; one entry more at the end */
    node_id *readers;       /* in graph order, each once; views are not among them */
};

void dataflow_make(const struct graph *graph, bool is_in_place, struct dataflow *out);
void dataflow_release(struct dataflow *flow);

static inline uint32_t dataflow_reader_count(const struct dataflow *flow, tensor_id root)
{
    return flow->first_reader[root + 1] - flow->first_reader[root];
}

/* The root of an input; GRAPH_NONE when the input is omitted. */
tensor_id dataflow_input(const struct dataflow *flow, const struct graph_node *node, size_t index);

/* Whether it is computed or an input, rather than a weight.  False for GRAPH_NONE. */
bool dataflow_is_computed(const struct dataflow *flow, tensor_id root);

bool dataflow_is_view(const struct dataflow *flow, const struct graph_node *node);

/* ---- blocked layout ---- */

/* Channels of a block: on x86 with AVX-512; half of it with AVX2. */
enum { BLOCK_CHANNELS = 16 };

/* The layout of ONNX Runtime on a CPU, which keeps the activations of two-dimensional convolutions in blocks of
 * channels (NCHWc), through operators that support it; others need the plain layout.  By node: elements converted for
 * it between the two (a tensor is converted once, for the first node that needs it), and whether it is folded into the
 * preceding convolution: an added or multiplied per-channel constant, a batch norm, a ReLU. */
void dataflow_find_layout(const struct dataflow *flow, double *reordered, bool *is_folded);

/* ---- sharding ---- */

/* Tensor parallelism (Megatron's scheme): the part of each tensor on each device.  The first matrices of a block are
 * column-parallel: a device has some heads or columns of their results.  The second ones are row-parallel: a device has
 * some of their rows, and its results are partial sums.  Partial sums are scaled and added locally as long as that
 * distributes over addition (it does for weighted expert outputs), and are all-reduced once, where the complete sum is
 * read.
 *
 * A tensor is sharded if it leads only into row-parallel matrices or attention.  Router weights do not, and are
 * replicated on every device, as are norms and embeddings. */

/* Sharded shares of a tensor; the remainder is replicated. */
struct sharding_split {
    double columns;     /* columns and query heads: divided by the number of devices */
    double heads_kv;    /* KV heads: divided by at most their own number */
    bool is_replicated; /* some reader needs the complete tensor, so nothing is sharded */
};

struct sharding {
    const struct dataflow *flow;
    bool is_decoder;  /* otherwise the role of a matrix is unknown, and every product is gathered */
    bool *is_partial; /* by root: it holds partial sums */
    struct sharding_split *split; /* by root */
};

void sharding_make(const struct dataflow *flow, bool is_decoder, struct sharding *out);
void sharding_release(struct sharding *sharding);

/* Whether it is the second matrix of a block, of which each device has some rows. */
bool sharding_is_row_parallel(const struct graph_node *node);

/* Whether any part of its result is sharded; whether it is a sharded matrix. */
bool sharding_is_sharded(const struct sharding *sharding, const struct graph_node *node);
bool sharding_is_sharded_matrix(const struct sharding *sharding, const struct graph_node *node);

/* Elements of its results that are all-reduced; 0: none. */
double sharding_all_reduced(const struct sharding *sharding, const struct graph_node *node);

/* ---- fusion (fusion.c) ---- */

/* Which nodes run as one kernel (docs/estimate.md, "Partition"). */
struct fusion {
    int32_t *kernel_of; /* by node: the number of its kernel; GRAPH_NONE for views */
    size_t count;       /* kernels, numbered so that each comes after those it depends on */
};

/* is_fused false: every node that is not a view is a separate kernel. */
void fusion_make(const struct dataflow *flow, bool is_fused, struct fusion *out);
/* A component of a layer is one kernel, or several where another component comes in between. */
void fusion_by_component(const struct dataflow *flow, struct fusion *out);
void fusion_release(struct fusion *fusion);

#endif
