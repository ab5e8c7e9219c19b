/* Graphs for the tests of graph algorithms: random ones, and a random number generator that gives
 * the same on every machine. The caller releases each graph; a failure to build one aborts. */
#ifndef TESTS_SUPPORT_GRAPHS_H
#define TESTS_SUPPORT_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

struct rng {
    uint64_t state; /* any */
};

uint32_t rng_below(struct rng *rng, uint32_t limit); /* 0 to limit - 1 */

/* That many nodes of many kinds: chains, branches that join, views, slices, several readers,
 * intermediate outputs, shared weights, integers, a KV cache. */
void graphs_random(struct rng *rng, uint32_t nodes, struct graph *out);

/* References, independent of the tested code: where kernels are fused (in_place), a tensor that is
 * only rearranged is read in place, like a view, unless it is an output of the model. */
bool graphs_is_view(const struct graph *graph, const struct graph_node *node, bool in_place);
/* The tensor whose data this one is a view of: itself, unless views or the like made it. */
tensor_id graphs_view_base(const struct graph *graph, bool in_place, tensor_id id);

#endif
