/* A graph of a decoder while it is made: what the parts of a layer share.  The decoder is the
 * caller's; the graph is the builder's (build.h). */
#ifndef IPW_GRAPH_DECODER_MAKING_H
#define IPW_GRAPH_DECODER_MAKING_H

#include "graph/build.h"
#include "graph/decoder.h"

struct making {
    struct build build;
    const struct decoder *decoder;
    const struct decoder_layer *layer;    /* NULL outside of the layers */
    const struct decoder_weight *weights; /* of the layer, or outside */
    int64_t sequences, tokens, before;    /* of one sequence: new ones, and those in the cache */
    tensor_id rotation; /* factors that all layers rotate by; GRAPH_NONE: the plain ones */
};

bool making_has(const struct making *making, enum decoder_tensor tensor);

/* The weight as a parameter: rows x columns, before them matrices where there are several. */
tensor_id making_weight(struct making *making, enum decoder_tensor tensor);

/* x times the matrix, with its bias where it has one; under the tensor's name and component. */
tensor_id making_linear(struct making *making, enum decoder_tensor tensor, tensor_id x);

/* x itself where the decoder has no such norm. */
tensor_id making_norm(struct making *making, enum decoder_tensor tensor, tensor_id x);

/* The first, second ... `size` numbers of each token: nothing is copied. */
tensor_id making_slice(struct making *making, const char *name, tensor_id x, int64_t size);

/* The factors of the rotation that these weights hold, read once; GRAPH_NONE without. */
tensor_id making_rotation(struct making *making);

/* ---- the parts of a layer (attention.c, feed_forward.c) ---- */

/* Queries, keys and values of `x`, the cache, scores, and the output matrix: (sequences, tokens, features). */
tensor_id making_attention(struct making *making, tensor_id x);

tensor_id making_feed_forward(struct making *making, tensor_id x);

#endif
