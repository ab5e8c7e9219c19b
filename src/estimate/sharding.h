/* Tensor parallelism: what each of several devices holds of the tensors of a model (Megatron's scheme).  The
 * first matrices of a block are column-parallel: a device has some heads or columns of their results.  The
 * second ones are row-parallel: a device has some of their rows, and its results are partial sums.  Partial
 * sums are scaled and added locally as long as that distributes over the addends (weighted answers of experts
 * do), and are all-reduced once, where the complete sum is read.
 *
 * A tensor is sharded when it leads only into row-parallel matrices or into attention.  What weights answers
 * (a router) does not, and is replicated on every device, as norms and embeddings are.
 *
 * Ownership: sharding_make fills a struct that sharding_release frees; it points into the dataflow. */
#ifndef IPW_ESTIMATE_SHARDING_H
#define IPW_ESTIMATE_SHARDING_H

#include <stdbool.h>

#include "core/err.h"
#include "estimate/dataflow.h"

/* How much of a tensor is sharded, as shares of it; the rest is replicated. */
struct sharding_split {
    double columns;     /* columns and query heads: divided by the number of devices */
    double heads_kv;    /* KV heads: divided by at most their own number */
    bool is_replicated; /* some reader needs all of it, so that nothing is sharded */
};

struct sharding {
    const struct dataflow *flow;
    bool is_decoder;  /* otherwise the role of a matrix is unknown, and every product is gathered */
    bool *is_partial; /* by root: it holds partial sums */
    struct sharding_split *split; /* by root */
};

enum err sharding_make(const struct dataflow *flow, bool is_decoder, struct sharding *out) MUST_USE;
void sharding_release(struct sharding *sharding);

/* Is it the second matrix of a block, of which each device has some rows? */
bool sharding_is_row_parallel(const struct graph_node *node);

/* Is any part of its result sharded?  Is it a matrix that is sharded? */
bool sharding_is_sharded(const struct sharding *sharding, const struct graph_node *node);
bool sharding_is_sharded_matrix(const struct sharding *sharding, const struct graph_node *node);

/* Elements of its results that are all-reduced; 0: none. */
double sharding_all_reduced(const struct sharding *sharding, const struct graph_node *node);

#endif
