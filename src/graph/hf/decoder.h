/* The numbers of a decoder in a config.json.  The decoder is the caller's. */
#ifndef IPW_GRAPH_HF_DECODER_H
#define IPW_GRAPH_HF_DECODER_H

#include "graph/decoder_shape.h"
#include "graph/hf/keys.h"

/* `shape` has what its kind has; the rest is read.  Failures are in keys->err. */
void hf_decoder_read(struct hf_keys *keys, struct decoder_shape *shape, struct decoder *out);

#endif
