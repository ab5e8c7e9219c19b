/* Topological order of the nodes of any graph.  The caller owns the result. */
#ifndef IPW_GRAPH_ORDER_H
#define IPW_GRAPH_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { ORDER_NO_NODE = -1, ORDER_NO_MORE = -2 };

/* The node that produces input `index` of `node`: ORDER_NO_NODE when none does, ORDER_NO_MORE when the node
 * has no such input. */
typedef int64_t order_producer(const void *graph, uint32_t node, uint32_t index);

/* Puts into order[0..count) the nodes 0..count-1, each after the producers of its inputs; an order that is
 * already topological is left as it is.  ERR_BAD_VALUE: *in_cycle depends on itself. */
enum err order_nodes(size_t count, order_producer *producer, const void *graph, uint32_t *order,
                     uint32_t *in_cycle) MUST_USE;

#endif
