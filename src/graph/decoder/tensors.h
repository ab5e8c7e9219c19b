/* The tensors of a decoder: each goes to its component, after its shape was compared with what the
 * keys say.  Nothing is kept. */
#ifndef IPW_GRAPH_DECODER_TENSORS_H
#define IPW_GRAPH_DECODER_TENSORS_H

#include "graph/decoder.h"

/* Fills the parts, the widths that only tensors show, and the sums; *out has been through keys_read. */
enum err decoder_tensors_read(const struct gguf *gguf, struct decoder *out, struct error *why)
    MUST_USE;

#endif
