/* Graphs for the tests of what works on graphs: random ones, and a generator of random numbers that gives
 * the same on every machine.  The caller releases each graph; a failure to make one aborts. */
#ifndef TESTS_SUPPORT_GRAPHS_H
#define TESTS_SUPPORT_GRAPHS_H

#include <stdint.h>

#include "graph/graph.h"

struct chance {
    uint64_t state; /* any */
};

uint32_t chance_below(struct chance *chance, uint32_t limit); /* 0 to limit - 1 */

/* So many nodes of many kinds: chains, branches that meet again, views, several readers, outputs in the
 * middle, weights that two nodes share, integers, a cache. */
void graphs_random(struct chance *chance, uint32_t nodes, struct graph *out);

#endif
