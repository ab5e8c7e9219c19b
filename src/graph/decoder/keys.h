/* The numbers of a decoder that stand in the keys of a GGUF file, "llama.block_count" and the like.
 * Nothing is kept. */
#ifndef IPW_GRAPH_DECODER_KEYS_H
#define IPW_GRAPH_DECODER_KEYS_H

#include "graph/decoder.h"

/* Fills what keys tell: the architecture and all sizes but those that only tensors show (vocabulary,
 * feed-forward widths, parts).  Allocates the layers. */
enum err keys_read(const struct gguf *gguf, struct decoder *out, struct error *why) MUST_USE;

#endif
