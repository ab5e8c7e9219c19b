/* A Llama-style decoder-only language model: its layers, heads and features, and the shape of each tensor of each
 * layer.  It comes from a GGUF file (decoder_gguf.c) or from the sizes in a config.json (decoder_shape.h), and becomes
 * a graph (decoder_graph.c).
 *
 * Every tensor belongs to exactly one component, so the components add up to the model.
 *
 * Ownership: the caller releases a struct decoder with decoder_release; nothing in it points into a file. */
#ifndef IPW_GRAPH_DECODER_H
#define IPW_GRAPH_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/graph.h"
#include "graph/mamba2.h"

struct gguf;
struct graph_options;
struct tensor_type;

enum decoder_activation {
    DECODER_SILU,
    DECODER_GELU,
    DECODER_GELU_NEW,
    DECODER_RELU,
    DECODER_RELU2,
};
enum graph_op decoder_activation_op(enum decoder_activation activation);

/* The tensors that a decoder may have, in a layer or outside the layers. */
enum decoder_tensor {
#define DECODER_TENSOR(constant, name, component, role, columns, rows) DECODER_TENSOR_##constant,
#include "graph/decoder_tensors.def"
#undef DECODER_TENSOR
    DECODER_TENSOR_COUNT
};

const char *decoder_tensor_name(enum decoder_tensor tensor); /* "attn_q" */
enum decoder_component decoder_tensor_component(enum decoder_tensor tensor);

/* One of them, as stored; all zero if the decoder does not have it. */
struct decoder_weight {
    uint64_t columns, rows, matrices; /* one matrix, or one per expert */
    uint64_t bytes;
    const struct tensor_type *type;     /* NULL: not a GGUF type */
    uint64_t bias_elements, bias_bytes; /* 0: it has no bias */
    /* The bytes are those of a file's own dtype; otherwise they are those of 16-bit elements, and the requested
     * precision replaces them. */
    bool is_stored;
};

struct decoder_layer {
    uint64_t heads, heads_kv;
    uint64_t key_size, value_size; /* per head */
    uint64_t feed_forward;         /* width for every token, including shared experts */
    uint64_t expert_feed_forward;  /* width of one expert; 0 in a dense layer */
    uint64_t window; /* sliding window in tokens, including the token itself; 0: none */
    /* Multi-head latent attention (MLA): the cache has `latent` features shared by all heads and the rotated part of
     * one key. */
    uint64_t latent, rotated; /* latent 0: K and V are cached */
    bool is_chunked;          /* chunked attention: the window restarts instead of sliding */
    bool has_no_rotation;     /* positions are learned, ALiBi or none */
    bool has_layer_norm;      /* LayerNorm instead of RMSNorm */
    bool is_gated;            /* activation(gate) x up, instead of activation(up) */
    bool is_fused;            /* gate and up are one matrix */
    struct decoder_weight weights[DECODER_TENSOR_COUNT];
};

struct decoder {
    char architecture[64];
    char name[128]; /* general.name; "" without */
    enum decoder_activation activation;
    uint64_t embedding, vocabulary;
    uint64_t context;               /* maximum context length; 0: unknown */
    uint64_t experts, experts_used; /* 0: a dense model */
    bool has_tied_embeddings;       /* the output head is the embedding, stored once */
    bool has_no_head;               /* the states of all tokens are the output */
    bool has_head_per_token;        /* instead of for the last token of each sequence */
    bool is_parallel;           /* attention and feed-forward in parallel, each with its own norm */
    bool has_unfused_attention; /* see struct graph_attention */
    bool is_norm_after_add;     /* norms follow the residual add */
    struct mamba2_mixer mixer;  /* parallel to attention, from the same norm; no heads: none */
    uint64_t parameters, bytes;
    size_t layer_count;
    struct decoder_layer *layers;
    /* Outside the layers: embedding, final norm, output head, rotary factors.  A tied head is counted under the
     * embedding. */
    struct decoder_weight outside_weights[DECODER_TENSOR_COUNT];
};

#define DECODER_OUTSIDE (-1) /* in place of a layer */

/* decoder_gguf.c.  ERR_UNSUPPORTED for an unknown architecture or tensor, or a split file; ERR_BAD_VALUE for a
 * file whose tensors contradict its keys. */
enum err decoder_read(const struct gguf *gguf, struct decoder *out, struct error *why) MUST_USE;
void decoder_release(struct decoder *decoder);

/* ---- building one, tensor by tensor ---- */

struct decoder_entry {
    enum decoder_tensor tensor;
    bool is_bias;                     /* bias of that tensor: `columns` elements */
    uint64_t columns, rows, matrices; /* 1 for a missing dimension */
    uint64_t bytes;
    const struct tensor_type *type; /* NULL: not a GGUF type */
    bool is_stored;
};

/* Adds a tensor to the layer, or DECODER_OUTSIDE, and to the sums. */
void decoder_add_tensor(struct decoder *decoder, int layer, const struct decoder_entry *entry);

/* ---- as a graph ---- */

enum { DECODER_DEFAULT_TOKENS = 512 }; /* prompt and context; at most the model's context */

/* The graph of one forward pass.  Prefill computes `tokens` tokens of each of `batch` sequences and the logits of the
 * last ones; decode computes one token of each, which attends to `context` tokens, including itself.  A KV cache tensor
 * has the tokens that the pass reads: with a sliding window, at most the window.  Nodes have layer and component.
 *
 * Pruned to none, it is a part of a prompt before its last part: it has no logits.
 *
 * Fills a zeroed graph and finishes it; writes defaults back to the options.  On failure nothing is kept. */
enum err decoder_graph(const struct decoder *decoder, struct graph_options *options,
                       struct graph *out, struct error *why) MUST_USE;

#endif
