/* What the outputs of a model rest on: a runtime leaves out the rest when it loads the file. */
#ifndef IPW_GRAPH_ONNX_NEEDED_H
#define IPW_GRAPH_ONNX_NEEDED_H

#include "graph/onnx/work.h"

/* Marks the nodes and values that an output of the model needs, inside of graphs and functions too.  All are
 * needed in a file that names no output. */
enum err needed_mark(struct work *work) MUST_USE;

#endif
