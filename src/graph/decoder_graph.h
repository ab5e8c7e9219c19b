/* A decoder as a graph, of one pass: a prompt, or one token after those in the cache.
 *
 * Prefill computes `tokens` tokens of each of `batch` sequences in one pass through all layers, and logits of
 * the last ones; decode computes one token of each, which sees `context` tokens with itself.  A cache tensor has the tokens that
 * the pass really reads: of a layer with a sliding window no more than its window.  Nodes have layer and
 * component, so that sums agree with decoder_cost.h, which counts the same in another way.
 *
 * What is counted in another way here: of experts that every token shares, adding their answer to that of the
 * others (1 a number of the stream) and their gate (a sigmoid, and 1 a number of the stream) count; of more tokens
 * than the vocabulary has, no more than its table is read. */
#ifndef IPW_GRAPH_DECODER_GRAPH_H
#define IPW_GRAPH_DECODER_GRAPH_H

#include "graph/decoder.h"
#include "graph/reader.h"

enum {
    DECODER_DEFAULT_TOKENS = 512
}; /* of a prompt, and of the context; less where a model has less */

/* Fills a zeroed graph and finishes it; writes what was 0 of the setting.  On failure nothing is kept. */
enum err decoder_graph(const struct decoder *decoder, struct graph_setting *setting,
                       struct graph *out, struct error *why) MUST_USE;

#endif
