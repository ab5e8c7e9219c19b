/* Transformer blocks: attention and feed-forward, each with its norm, residual add and KV cache.  Every node gets its
 * component; prefix and layer are set by the caller:
 *
 *     build_scope(&b, "encoder.layer.%d.", i);
 *     b.layer = i;
 *     x = block_attention(&b, &block, &names.attention, &(struct block_pass){0}, x);
 *     x = block_feed_forward(&b, &block, &names.feed_forward, x);
 *
 * block_stack does this for identical layers.
 *
 * The residual stream is (batch, tokens, hidden).  Names are those of the source: torchvision and Hugging Face name the
 * same layer in many ways.  Nothing is owned. */
#ifndef IPW_GRAPH_BLOCKS_H
#define IPW_GRAPH_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/build.h"

struct graph_options;
struct transformer_tower;

struct block {
    int64_t hidden, heads;
    int64_t head_size;    /* 0: hidden / heads */
    int64_t intermediate; /* width of the feed-forward */
    enum graph_op activation;
    bool is_post_norm; /* after each residual add (BERT), not before each block (GPT-2, ViT) */
    bool is_causal;
    bool is_gated;                         /* activation(gate) x up, both in one matrix */
    bool has_gate;                         /* the same with a separate gate matrix */
    bool is_rms_norm;                      /* instead of layer norm with a bias */
    bool has_no_bias;                      /* no matrix has a bias */
    bool is_clamped;                       /* each residual, in fp16, see struct graph_node */
    bool has_fused_qkv;                    /* one matrix for Q, K and V */
    bool has_no_qkv_bias, has_no_key_bias; /* all other matrices have a bias */
};

/* Pre-norm layers of these sizes, not causal. */
struct block block_of(const struct transformer_tower *tower);

struct block_attention_names {
    const char *norm;
    const char *query, *key, *value; /* a fused QKV matrix is `query` */
    const char *scores, *output, *add;
};

struct block_feed_forward_names {
    const char *norm, *up, *activation, *down, *add;
};

struct block_names {
    struct block_attention_names attention;
    struct block_feed_forward_names feed_forward;
};

/* Inputs of attention besides the new tokens.  Zeroed: none, and nothing is cached. */
struct block_pass {
    bool has_cache; /* K and V of the new tokens are written to the KV cache */
    int64_t cached; /* tokens of each sequence already in the KV cache */
    /* Cross-attention: K and V come from this many tokens of another sequence; 0: self-attention. */
    int64_t cross_tokens;
    tensor_id cross_states; /* states of those tokens; GRAPH_NONE: their K and V are in the cache */
    bool has_bias;          /* `bias` is added to the scores */
    tensor_id bias;
};

tensor_id block_attention(struct build *build, const struct block *block,
                          const struct block_attention_names *names, const struct block_pass *pass,
                          tensor_id x);
tensor_id block_feed_forward(struct build *build, const struct block *block,
                             const struct block_feed_forward_names *names, tensor_id x);
/* Identical layers, named PREFIX and a number.  Resets prefix and layer. */
tensor_id block_stack(struct build *build, const struct block *block,
                      const struct block_names *names, const struct block_pass *pass, int layers,
                      const char *prefix, tensor_id x);
/* The final layer norm, with the norm component; and a norm of the block's kind. */
tensor_id block_norm(struct build *build, const char *name, tensor_id x);
tensor_id block_norm_of(struct build *build, const struct block *block, const char *name,
                        tensor_id x);

/* The input of a text model: (batch, tokens) integers. */
tensor_id block_text_input(struct build *build, int64_t batch, int64_t tokens);
/* The input of an image model: (batch, channels, height, width). */
tensor_id block_image_input(struct build *build, int64_t channels,
                            const struct graph_options *options);
/* Rows of a trained position table, (1, tokens, hidden), after `cached` tokens; more tokens than positions is an
 * error. */
tensor_id block_positions(struct build *build, const char *name, int64_t tokens, int64_t cached,
                          int64_t positions, int64_t hidden);

/* The first token of each sequence, (batch, hidden). */
tensor_id block_first_token(struct build *build, const char *name, tensor_id x);
/* Logits of the last token of each sequence, with an existing weight (vocabulary x hidden). */
tensor_id block_last_logits(struct build *build, const char *name, tensor_id x, tensor_id weight);

#endif
