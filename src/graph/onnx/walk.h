/* The walk over the nodes of an ONNX file, each after what it reads: shapes, small numbers, and the nodes of
 * the graph.  Of If one branch is walked (the one that is taken where that is known, else the first), of
 * Loop and Scan the body once.  The file, the setting and the graph are the
 * caller's. */
#ifndef IPW_GRAPH_ONNX_WALK_H
#define IPW_GRAPH_ONNX_WALK_H

#include "core/err.h"
#include "graph/onnx/file.h"
#include "graph/reader.h"

/* Fills an empty graph and finishes it; batch and tokens are written back to the setting. */
enum err onnx_graph(const struct onnx_file *file, struct graph_setting *setting, struct graph *out,
                    struct error *why) MUST_USE;

#endif
