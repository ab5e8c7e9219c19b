/* Who reads what, with views looked through: a view is another shape of the same numbers, so its readers
 * read what it shows.  Where kernels are fused, so is what is only rearranged: who reads a transposed tensor,
 * or a slice of one, can do so where it lies.  flow_make fills a struct that flow_release takes back; it points into the graph. */
#ifndef IPW_ESTIMATE_PARTITION_FLOW_H
#define IPW_ESTIMATE_PARTITION_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"

struct flow {
    const struct graph *graph;
    bool is_in_place;       /* what is rearranged is looked through too */
    tensor_id *root;        /* of each tensor: the one whose numbers it shows, itself mostly */
    bool *goes_out;         /* of each root: it, or a view of it, is an output of the model */
    uint32_t *first_reader; /* of each root, in `readers`; one more at the end */
    node_id *readers;       /* in the order of the graph, none twice; views are not among them */
};

enum err flow_make(const struct graph *graph, bool is_in_place, struct flow *out) MUST_USE;
void flow_release(struct flow *flow);

static inline uint32_t flow_reader_count(const struct flow *flow, tensor_id root)
{
    return flow->first_reader[root + 1] - flow->first_reader[root];
}

/* The root of an input; GRAPH_NONE when it is left out. */
tensor_id flow_input(const struct flow *flow, const struct graph_node *node, size_t index);

/* Is it computed or comes in (rather than of the model)?  False for one that is left out. */
bool flow_is_computed(const struct flow *flow, tensor_id root);

bool flow_is_view(const struct flow *flow, const struct graph_node *node);

#endif
