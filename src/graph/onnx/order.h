/* The order of the nodes of one graph, each after what it reads.  The caller frees the list. */
#ifndef IPW_GRAPH_ONNX_ORDER_H
#define IPW_GRAPH_ONNX_ORDER_H

#include <stdint.h>

#include "graph/onnx/file.h"

/* Nodes by number; as the file has them where that is an order.  ERR_BAD_VALUE names a node of a cycle. */
enum err order_nodes(const struct onnx_file *file, int32_t graph, uint32_t **out, struct error *why)
    MUST_USE;

#endif
