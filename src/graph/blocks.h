/* What transformers are made of, an attention or a feed-forward a call: with its norm, its addition to
 * the stream, and its cache.  Each node gets its component; prefix and layer are the caller's:
 *
 *     build_inside(&b, "encoder.layer.%d.", i);
 *     b.layer = i;
 *     x = block_attention(&b, &block, &names.attention, &(struct block_pass){0}, x);
 *     x = block_feed_forward(&b, &block, &names.feed_forward, x);
 *
 * block_stack does that for layers which are all alike.
 *
 * The stream is (batch, tokens, hidden).  Names are those of the family: torchvision and Hugging Face
 * spell the same layer in many ways.  Nothing is kept or owned. */
#ifndef IPW_GRAPH_BLOCKS_H
#define IPW_GRAPH_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/build.h"

struct block {
    int64_t hidden;
    int64_t heads, heads_kv; /* heads_kv 0: as many */
    int64_t head_size;       /* 0: hidden / heads */
    int64_t intermediate;    /* width of the feed-forward */
    int64_t window;          /* tokens that one sees, itself included; 0: all */
    enum graph_op norm;      /* GRAPH_LAYER_NORM (weight and bias), GRAPH_RMS_NORM (weight) */
    enum graph_op activation;
    bool norms_after; /* after each addition (BERT), not before what it goes into (GPT-2, ViT) */
    bool is_causal;
    bool is_gated;      /* activation(gate) x up; without a name for the gate, both in one matrix */
    bool has_fused_qkv; /* one matrix for queries, keys and values */
    bool has_rotation;  /* of queries and keys, by their positions */
    bool has_qkv_bias, has_output_bias, has_feed_forward_bias;
    bool lacks_key_bias; /* where queries and values have one */
};

struct block_attention_names {
    const char *norm;
    const char *query, *key, *value; /* qkv in `query` when it is one matrix */
    const char *scores, *output, *add;
};

struct block_feed_forward_names {
    const char *norm;
    const char *up, *gate, *activation, *down, *add; /* gate: NULL without, or in `up` */
};

struct block_names {
    struct block_attention_names attention;
    struct block_feed_forward_names feed_forward;
};

/* What an attention sees beside the new tokens.  Zeroed: they see each other, and nothing is kept. */
struct block_pass {
    bool has_cache; /* keys and values of the new tokens are kept for later */
    int64_t before; /* tokens of each sequence that are in the cache already */
    /* Cross attention: keys and values come from so many tokens of another sequence; 0: from x. */
    int64_t others;
    tensor_id other_states; /* those; GRAPH_NONE: their keys and values are in the cache */
};

tensor_id block_attention(struct build *build, const struct block *block,
                          const struct block_attention_names *names, const struct block_pass *pass,
                          tensor_id x);
tensor_id block_feed_forward(struct build *build, const struct block *block,
                             const struct block_feed_forward_names *names, tensor_id x);
/* So many layers; PREFIX and a number stand before their names.  Leaves prefix and layer as none. */
tensor_id block_stack(struct build *build, const struct block *block,
                      const struct block_names *names, const struct block_pass *pass, int layers,
                      const char *prefix, tensor_id x);
/* The norm of the block's kind, by itself: the one after the last layer. */
tensor_id block_norm(struct build *build, const struct block *block, const char *name, tensor_id x);

/* Keys or values of the new tokens, put beside those that are kept: `size` of the last dimension. */
void block_cache_write(struct build *build, const char *name, tensor_id x, int64_t size);

/* A graph with tokens coming in, as integers: batch x tokens. */
struct build block_text_begin(const char *model_name, int64_t batch, int64_t tokens,
                              struct graph *out, struct error *why, tensor_id *ids);
/* Rows of a trained table of positions, (1, tokens, hidden), for the tokens after `before`; refuses more
 * than it has. */
tensor_id block_positions(struct build *build, const char *name, int64_t tokens, int64_t before,
                          int64_t positions, int64_t hidden);

/* Logits of the last token of each sequence, by a matrix that is there (rows x hidden). */
tensor_id block_last_logits(struct build *build, const char *name, tensor_id x, tensor_id weight);

#endif
