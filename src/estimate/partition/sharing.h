/* What devices that share a model by tensor parallelism each have of its tensors.  They have some heads and
 * some columns of the first matrices of a block, and with them some rows of the second, whose results are
 * *parts*: every number is the sum of what all devices have.  Parts are weighed and added up on each device
 * as long as that can be done to addends (the answers of experts are, and those of experts that all tokens
 * share), and go around the ring once, where the whole sum is needed.
 *
 * *Divided* is what leads into a second matrix or into attention and nowhere else: columns, heads.  What
 * weighs answers (a router) does not, and is whole on every device, as norms and embeddings are.
 *
 * sharing_make fills a struct that sharing_release takes back; it points into the flow. */
#ifndef IPW_ESTIMATE_PARTITION_SHARING_H
#define IPW_ESTIMATE_PARTITION_SHARING_H

#include <stdbool.h>

#include "core/err.h"
#include "estimate/partition/flow.h"

struct sharing {
    const struct flow *flow;
    bool is_decoder; /* else no matrix says which of a block it is, and every product is gathered */
    bool *is_part;   /* of each root */
    struct sharing_division *divided; /* of each root */
};

/* How much of a tensor devices divide, as shares of it; the rest each has whole. */
struct sharing_division {
    double columns;  /* and heads of queries: by their number */
    double heads_kv; /* heads of keys and values: by no more than there are */
    bool is_whole;   /* somebody reads all of it, so that nothing is divided */
};

enum err sharing_make(const struct flow *flow, bool is_decoder, struct sharing *out) MUST_USE;
void sharing_release(struct sharing *sharing);

/* Is it a second matrix of a block, of which each device has some rows? */
bool sharing_is_summed(const struct graph_node *node);

/* Is what it makes divided, in any way?  Is it a matrix that is? */
bool sharing_is_divided(const struct sharing *sharing, const struct graph_node *node);
bool sharing_is_shared_matrix(const struct sharing *sharing, const struct graph_node *node);

/* Numbers of a node that go around the ring to be added up; 0: none. */
double sharing_summed(const struct sharing *sharing, const struct graph_node *node);

#endif
