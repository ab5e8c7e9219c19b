/* Random decoders, and what a pass of one costs by the formulas of docs/metrics.md ("Counting a decoder"): from its
 * sizes alone, for the tests of what counts it from its graph.  They have what GGUF files have: no latent attention, no
 * trained positions. */
#ifndef TESTS_SUPPORT_DECODERS_H
#define TESTS_SUPPORT_DECODERS_H

#include "graph/decoder.h"
#include "support/graphs.h"

/* The caller releases it; a failure to make one aborts. */
struct decoder decoders_random(struct rng *rng);
struct graph_options decoders_random_pass(struct rng *rng);

struct decoder_figures {
    double macs, elementwise;
    double weight_bytes;
    double cache_read, cache_written; /* elements */
    double in, out; /* activations at the boundary of the component, in elements; not token ids */
};

/* With the tokens, sequences and pruning of options that decoder_graph completed. */
struct decoder_figures decoders_cost(const struct decoder *decoder,
                                     const struct graph_options *options, int layer,
                                     enum decoder_component component);

/* MACs of all components. */
double decoders_macs(const struct decoder *decoder, const struct graph_options *options);

#endif
