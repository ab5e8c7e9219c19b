/* A decoder out of its numbers alone, as a config.json or a table has them: every tensor that a model of
 * such a shape has, so that its parameters are exact.  Bytes are as with 16 bits a number, unless the shape
 * says that its matrices are quantised.
 *
 * decoder_of_shape fills a struct of the caller's, who releases it with decoder_release. */
#ifndef IPW_GRAPH_DECODER_SHAPE_H
#define IPW_GRAPH_DECODER_SHAPE_H

#include "graph/decoder.h"

/* Beyond any model; so bounded, products of three sizes fit into 64 bits. */
enum {
    DECODER_MOST_LAYERS = 4096,
    DECODER_LARGEST_SIZE = 1 << 22,
    DECODER_MOST_HEADS = 1 << 14,
    DECODER_MOST_EXPERTS = 1 << 14,
};

enum decoder_norms {
    DECODER_NORMS_BEFORE, /* before attention and before the feed-forward */
    DECODER_NORMS_AROUND, /* and behind both (Gemma 2) */
    DECODER_NORMS_AFTER,  /* behind both alone (OLMo 2) */
    DECODER_NORMS_PARALLEL, /* one, before attention and feed-forward, which stand beside each other */
};

enum decoder_head_norms {
    DECODER_NO_HEAD_NORMS,
    DECODER_NORMS_PER_HEAD, /* of queries and keys, one weight for all heads */
    DECODER_NORMS_OF_ALL,   /* over all heads */
};

struct decoder_shape {
    const char *architecture, *name;
    enum decoder_activation activation;
    uint64_t layers, embedding, heads, heads_kv, vocabulary, context;
    uint64_t head_size;    /* 0: embedding / heads */
    uint64_t feed_forward; /* of dense layers */
    uint64_t window;       /* 0: none */
    uint64_t
        window_period; /* every n-th layer sees all, the others the window; 0 or 1: all see the window */
    uint64_t experts, experts_used, expert_feed_forward; /* 0: dense */
    uint64_t shared_feed_forward;                        /* of the experts that all tokens share */
    uint64_t expert_period; /* every n-th layer has experts; 0 or 1: all of them */
    enum decoder_norms norms;
    enum decoder_head_norms head_norms;
    bool norms_have_mean; /* LayerNorm, with a bias */
    bool has_tied_head;
    bool has_qkv_bias, has_output_bias, has_forward_bias, has_head_bias;
    bool has_fused_qkv, has_fused_gate; /* one matrix for each */
    bool lacks_gate;
    double matrix_bits; /* of one number of a layer's matrices, scales included; 0: not quantised */
};

/* What all models of a kind have in common (decoder_kinds.def), by the name that Hugging Face gives it:
 * "llama", "qwen3_moe".  False when it is not known. */
bool decoder_shape_of_kind(const char *kind, struct decoder_shape *out);
size_t decoder_kind_count(void);
const char *decoder_kind_at(size_t index);

/* ERR_BAD_VALUE names what does not fit together. */
enum err decoder_of_shape(const struct decoder_shape *shape, struct decoder *out, struct error *why)
    MUST_USE;

#endif
