/* A decoder from its sizes, as in a config.json or a table.  Bytes are those of 16-bit elements, unless its matrices
 * are quantized.
 *
 * Ownership: the caller releases the result of decoder_from_shape with decoder_release. */
#ifndef IPW_GRAPH_DECODER_SHAPE_H
#define IPW_GRAPH_DECODER_SHAPE_H

#include "graph/decoder.h"

/* Far above any model; products of three such sizes fit into 64 bits. */
enum {
    DECODER_MAX_LAYERS = 4096,
    DECODER_MAX_SIZE = 1 << 22,
    DECODER_MAX_HEADS = 1 << 14,
    DECODER_MAX_EXPERTS = 1 << 14,
};

enum decoder_norm_placement {
    DECODER_PRE_NORM,       /* before attention and before the feed-forward */
    DECODER_SANDWICH_NORM,  /* before and after both (Gemma 2) */
    DECODER_POST_NORM,      /* after both only (OLMo 2) */
    DECODER_PARALLEL,       /* one norm before parallel attention and feed-forward (Phi) */
    DECODER_PARALLEL_NORMS, /* the same with a separate norm before each (GPT-NeoX) */
    DECODER_NORM_AFTER_ADD, /* after each residual add (OPT-350M) */
};

/* Meaning of intermediate_size in a config.json with experts. */
enum decoder_expert_keys {
    DECODER_DENSE,
    DECODER_EXPERTS_ALL, /* width of an expert: every layer has experts (Mixtral) */
    DECODER_EXPERTS_MOE_SIZE, /* width of dense layers: moe_intermediate_size is that of an expert (Qwen, DeepSeek) */
    DECODER_EXPERTS_LLAMA4, /* width of an expert; intermediate_size_mlp is that of dense layers */
};

/* The head of the model. */
enum decoder_head {
    DECODER_HEAD_LOGITS,
    DECODER_HEAD_NONE,    /* ...Model */
    DECODER_HEAD_CLASSES, /* ...ForSequenceClassification: of the last token, without a bias */
    DECODER_HEAD_TOKENS,  /* ...ForTokenClassification, ...ForQuestionAnswering: of every token */
};

enum decoder_qk_norm {
    DECODER_NO_QK_NORM,
    DECODER_QK_NORM_PER_HEAD,  /* one weight, shared by all heads */
    DECODER_QK_NORM_ALL_HEADS, /* one weight over all heads together */
};

struct decoder_shape {
    const char *architecture, *name;
    enum decoder_activation activation;
    uint64_t layers, embedding, heads, heads_kv, vocabulary, context;
    uint64_t head_size;     /* 0: embedding / heads */
    uint64_t feed_forward;  /* width in dense layers */
    uint64_t window;        /* 0: none */
    uint64_t window_period; /* every n-th layer has full attention; 0 or 1: all have the window */
    uint64_t experts, experts_used, expert_feed_forward; /* 0: dense */
    uint64_t shared_feed_forward; /* width of the experts used by all tokens */
    uint64_t expert_period;       /* every n-th layer has experts; 0 or 1: all of them */
    uint64_t dense_layers;        /* leading layers without experts */
    /* Multi-head latent attention (MLA): head_size is that of a query, of which `rotated` features have a rotary
     * embedding. */
    uint64_t latent, rotated, value_size, query_rank; /* query_rank 0: one matrix for queries */
    uint64_t positions;                               /* rows of a trained table; 0: none */
    uint64_t embedding_rank;   /* features of the token table, if projected; 0: embedding */
    uint64_t unrotated_period; /* every n-th layer has no rotary embedding; 0: all have one */
    uint64_t classes;          /* for a head other than the vocabulary */
    enum decoder_head head;
    enum decoder_expert_keys expert_keys;
    enum decoder_norm_placement norms;
    enum decoder_qk_norm qk_norm;
    bool has_layer_norm;   /* with a bias, instead of RMSNorm */
    bool has_no_norm_bias; /* those layer norms have no bias */
    bool has_embedding_norm, has_no_final_norm;
    bool has_expert_bias; /* experts and their router */
    bool has_sinks;
    bool has_unfused_attention; /* see struct graph_attention */
    bool has_no_rotation;
    bool has_shared_without_gate; /* shared experts are added without a gate */
    bool is_chunked;              /* attention restarts after `window` tokens */
    bool has_tied_embeddings;
    bool has_qkv_bias, has_output_bias, has_mlp_bias, has_head_bias;
    bool has_fused_qkv, has_fused_gate; /* one matrix for each */
    bool has_no_gate;
    struct mamba2_mixer mixer; /* in every layer, parallel to attention; no heads: none */
    double matrix_bits; /* per element of a layer's matrices, including scales; 0: not quantized */
    bool quantizes_experts_only;
    bool has_products;       /* activations are quantized too: products of quantized matrices */
    enum precision products; /* are computed in this */
};

/* The common fields of all models of a kind (decoder_kinds.def), by the model_type of Hugging Face: "llama",
 * "qwen3_moe"; sizes are the defaults of transformers for a missing key.  False if it is unknown. */
bool decoder_shape_for_kind(const char *kind, struct decoder_shape *out);
size_t decoder_kind_count(void);
const char *decoder_kind_at(size_t index);

/* ERR_BAD_VALUE names the size that is out of range or inconsistent. */
enum err decoder_from_shape(const struct decoder_shape *shape, struct decoder *out,
                            struct error *why) MUST_USE;

#endif
