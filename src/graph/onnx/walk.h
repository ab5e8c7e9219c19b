/* The walk over the nodes of an ONNX file, each after what it reads: shapes, small numbers, and the nodes of
 * the graph.  Of If one branch is walked (the one that is taken where that is known, else the first), of
 * Loop and Scan the body once.  The work is the caller's. */
#ifndef IPW_GRAPH_ONNX_WALK_H
#define IPW_GRAPH_ONNX_WALK_H

#include "graph/onnx/work.h"

enum err walk(struct work *work) MUST_USE;

#endif
