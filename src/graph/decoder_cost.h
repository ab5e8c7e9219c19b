/* The cost of one pass of a decoder: operations and bytes, by layer and component, counted from its shape
 * (docs/metrics.md, "Counting a decoder") with the elementwise operations of ops.def.  Pure functions.
 *
 * A pass computes `tokens` new tokens of each of `sequences` sequences, each after `cached` tokens in the KV cache.
 * Prefill of n tokens is {.tokens = n, .logits = 1}; one decoded token is {.tokens = 1, .cached = context so far,
 * .logits = 1}.  A prompt that an engine splits into several passes is the sum of those passes: each reads the weights
 * again. */
#ifndef IPW_GRAPH_DECODER_COST_H
#define IPW_GRAPH_DECODER_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/decoder.h"

struct decoder_step {
    uint64_t tokens;         /* per sequence */
    uint64_t cached;         /* per sequence, in the KV cache */
    uint64_t sequences;      /* batched, so weights are read once; 0: one */
    uint64_t logits;         /* per sequence, for the last tokens; 0: none */
    double activation_bytes; /* per element between components; 0: 4 */
    double cache_bytes;      /* per element of the KV cache; 0: 2 */
    /* Unfused attention, which writes the scores to memory and reads them again; otherwise (flash attention) scores
     * stay on chip. */
    bool writes_scores;
    /* After the last attention only tokens with logits are computed, as in llama.cpp. */
    bool prunes_last;
};

/* Exact below 2^53. */
struct decoder_cost {
    double matrix_flops;      /* 2 x multiply-accumulates, including scores */
    double elementwise_flops; /* all other operations */
    double weight_bytes;      /* read */
    double activation_read_bytes, activation_write_bytes;
    double cache_read_bytes, cache_write_bytes;
};

/* One component of one layer, or of DECODER_OUTSIDE.  Zero if the component does not exist. */
struct decoder_cost decoder_cost(const struct decoder *decoder, const struct decoder_step *step,
                                 int layer, enum decoder_component component);

/* A component in all layers and outside them. */
struct decoder_cost decoder_cost_component(const struct decoder *decoder,
                                           const struct decoder_step *step,
                                           enum decoder_component component);

double decoder_cost_flops(const struct decoder_cost *cost); /* matrix and elementwise */
double decoder_cost_bytes(const struct decoder_cost *cost); /* all five */

#endif
