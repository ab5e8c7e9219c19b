/* Graphs for the tests of what works on graphs: random ones, and a generator of random numbers that gives
 * the same on every machine.  The caller releases each graph; a failure to make one aborts. */
#ifndef TESTS_SUPPORT_GRAPHS_H
#define TESTS_SUPPORT_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

struct chance {
    uint64_t state; /* any */
};

uint32_t chance_below(struct chance *chance, uint32_t limit); /* 0 to limit - 1 */

/* So many nodes of many kinds: chains, branches that meet again, views, slices, several readers, outputs in the
 * middle, weights that two nodes share, integers, a cache. */
void graphs_random(struct chance *chance, uint32_t nodes, struct graph *out);

/* How many of so many random graphs to try: all, or a tenth under valgrind, where a graph takes thirty times as long. */
int graphs_tries(int all);

/* What the tests ask instead of the code that they test: where kernels are fused (in_place), what is only
 * rearranged is read where it lies, like a view, unless it goes out of the model. */
bool graphs_is_view(const struct graph *graph, const struct graph_node *node, bool in_place);
/* The tensor whose numbers this one shows: itself, unless views or the like made it. */
tensor_id graphs_shown_by(const struct graph *graph, bool in_place, tensor_id id);

#endif
