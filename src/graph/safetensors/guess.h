/* The shape of a decoder out of the names and shapes of its tensors, where no config.json tells: heads, experts
 * used by a token, windows and the activation do not show, and are guessed.  Nothing is kept. */
#ifndef IPW_GRAPH_SAFETENSORS_GUESS_H
#define IPW_GRAPH_SAFETENSORS_GUESS_H

#include "graph/decoder_shape.h"
#include "graph/safetensors.h"

/* False when these are not the tensors of a decoder that is known.  The name is the caller's to set. */
bool safetensors_guess(const struct safetensors *tensors, struct decoder_shape *out);

#endif
