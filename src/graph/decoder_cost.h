/* What one pass of a decoder costs: operations and bytes, by layer and component, counted from its
 * shape.  docs/metrics.md ("Counting a decoder") says what each figure means.  Plain functions of
 * numbers; nothing is kept or allocated.
 *
 * A pass (a step) computes `tokens` new tokens of each of `sequences` sequences, each after `before`
 * tokens that are in the cache.  A prompt of n tokens in one go is {.tokens = n, .logits = 1}; one
 * token of the answer is {.tokens = 1, .before = context so far, .logits = 1}.  A prompt that an
 * engine splits into several passes is the sum of those passes: each reads the weights again. */
#ifndef IPW_GRAPH_DECODER_COST_H
#define IPW_GRAPH_DECODER_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/decoder.h"

struct decoder_step {
    uint64_t tokens;    /* of each sequence */
    uint64_t before;    /* of each sequence, in the cache */
    uint64_t sequences; /* computed together, so that weights are read once; 0: one */
    uint64_t logits;    /* of the tokens of each sequence, the last so many get logits; 0: none */
    double activation_bytes; /* of one number between components; 0: 4 */
    double cache_bytes;      /* of one number in the cache; 0: 2 */
    /* Attention as separate operations, each of which writes its table of scores to memory and reads
     * it again; otherwise (flash attention) scores stay on the chip. */
    bool writes_scores;
    /* The last layer goes on after attention with the tokens that get logits only, as llama.cpp does. */
    bool prunes_last;
};

/* The elementwise operations of one number; an exponential or a division counts as one. */
enum {
    DECODER_RMS_NORM_FLOPS = 4,   /* square, sum, scale, weight */
    DECODER_LAYER_NORM_FLOPS = 7, /* sum, centre, square, sum, scale, weight, bias */
    DECODER_ROTATION_FLOPS = 3,   /* four multiplications and two additions a pair */
    DECODER_SOFTMAX_FLOPS = 5,    /* scale, less the largest, exponential, sum, divide */
    DECODER_SILU_FLOPS = 4,       /* negate, exponential, add, divide */
    DECODER_GELU_FLOPS = 8,       /* by way of tanh */
};

/* Doubles: exact as long as they are below 2^53. */
struct decoder_cost {
    double matrix_flops;      /* 2 x multiplications-with-addition of matrices, scores included */
    double elementwise_flops; /* the rest */
    double weight_bytes;      /* read */
    double activation_read_bytes, activation_write_bytes;
    double cache_read_bytes, cache_write_bytes;
};

#define DECODER_OUTSIDE (-1) /* in place of a layer: embedding, final norm and head */

/* One component of one layer.  A component that is not there (the head of a layer) costs nothing. */
struct decoder_cost decoder_cost(const struct decoder *decoder, const struct decoder_step *step,
                                 int layer, enum decoder_component component);

/* A component in all layers and outside of them; and everything. */
struct decoder_cost decoder_cost_component(const struct decoder *decoder,
                                           const struct decoder_step *step,
                                           enum decoder_component component);
struct decoder_cost decoder_cost_total(const struct decoder *decoder,
                                       const struct decoder_step *step);

void decoder_cost_add(struct decoder_cost *sum, const struct decoder_cost *more);
double decoder_cost_flops(const struct decoder_cost *cost); /* matrix and elementwise */
double decoder_cost_bytes(const struct decoder_cost *cost); /* all five */

#endif
