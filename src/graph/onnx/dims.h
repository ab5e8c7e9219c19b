/* Sizes of what comes in: those of the file, and for dimensions that it leaves open those of the setting.
 * Works on the caller's work and setting. */
#ifndef IPW_GRAPH_ONNX_DIMS_H
#define IPW_GRAPH_ONNX_DIMS_H

#include "graph/onnx/work.h"
#include "graph/reader.h"

/* Gives every input of the model its shape, and writes back batch and tokens.  ERR_USAGE names the
 * dimensions that are open and how to give them, or a name that was given and is none. */
enum err dims_bind(struct work *work, struct graph_setting *setting) MUST_USE;

/* What the file says of a value, where its dimensions are all known; false otherwise.  The type is told
 * whenever the file does. */
bool dims_told(struct work *work, int32_t value, int32_t *type, struct shape *out);

/* After the walk: with a batch that the file does not have, do the outputs follow it?  A shape that is
 * written into the graph would not. */
enum err dims_check_batch(struct work *work, const struct graph_setting *setting) MUST_USE;

#endif
