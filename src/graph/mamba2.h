/* The mixer of Mamba-2: a short convolution and a selective scan whose decay is a scalar per head.  It replaces
 * attention in Mamba-2, and is parallel to it in Falcon-H1.  Pure; the graph belongs to the caller. */
#ifndef IPW_GRAPH_MAMBA2_H
#define IPW_GRAPH_MAMBA2_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/build.h"

struct mamba2_mixer {
    int64_t hidden, inner; /* features of the model, and of the state */
    int64_t heads;         /* 0: no mixer */
    int64_t groups, state; /* groups of heads that share the matrices of the state; its size */
    int64_t kernel;        /* of the convolution */
    int64_t chunk;         /* tokens of a prompt that are computed as products of matrices */
    bool has_bias, has_output_bias, has_no_conv_bias, has_norm;
};

struct mamba2_pass {
    int64_t batch, tokens;
    bool is_decode;
};

/* (batch, tokens, hidden) to the same; nodes are named after the modules of the layer. */
tensor_id mamba2_mixer(struct build *b, const struct mamba2_mixer *mixer,
                       const struct mamba2_pass *pass, tensor_id x);

/* Number of its weights. */
uint64_t mamba2_mixer_parameters(const struct mamba2_mixer *mixer);

#endif
