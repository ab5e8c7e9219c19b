/* A decoder from its sizes, as a config.json or a table gives them.  Bytes are those of 16-bit elements, unless the
 * shape says that its matrices are quantized.
 *
 * Ownership: the caller releases what decoder_from_shape fills with decoder_release. */
#ifndef IPW_GRAPH_DECODER_SHAPE_H
#define IPW_GRAPH_DECODER_SHAPE_H

#include "graph/decoder.h"

/* Far beyond any model; products of three such sizes fit into 64 bits. */
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
    DECODER_PARALLEL,       /* one, before attention and feed-forward side by side (Phi) */
    DECODER_PARALLEL_NORMS, /* likewise, with a norm of its own before each (GPT-NeoX) */
    DECODER_NORM_AFTER_ADD, /* after each residual add (OPT-350M) */
};

/* Which width a config.json means with intermediate_size, where there are experts. */
enum decoder_expert_keys {
    DECODER_DENSE,
    DECODER_EXPERTS_ALONE, /* that of an expert: every layer has experts (Mixtral) */
    DECODER_EXPERTS_BESIDE, /* that of dense layers: moe_intermediate_size is an expert's (Qwen, DeepSeek) */
    DECODER_EXPERTS_LLAMA4, /* an expert's; intermediate_size_mlp is that of dense layers */
};

/* What the last layer's states become. */
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
    uint64_t feed_forward;  /* of dense layers */
    uint64_t window;        /* 0: none */
    uint64_t window_period; /* every n-th layer has full attention; 0 or 1: all have the window */
    uint64_t experts, experts_used, expert_feed_forward; /* 0: dense */
    uint64_t shared_feed_forward;                        /* of the experts that all tokens use */
    uint64_t expert_period; /* every n-th layer has experts; 0 or 1: all of them */
    uint64_t dense_layers;  /* first so many without experts */
    /* Latent attention (MLA): head_size is that of a query, `rotated` of it with a rotary embedding. */
    uint64_t latent, rotated, value_size, query_rank; /* query_rank 0: one matrix for queries */
    uint64_t positions;                               /* rows of a trained table; 0: none */
    uint64_t embedding_rank;   /* features of the token table, where projected; 0: embedding */
    uint64_t unrotated_period; /* every n-th layer has no rotary embedding; 0: all have one */
    uint64_t classes;          /* of a head that is no vocabulary */
    enum decoder_head head;
    enum decoder_expert_keys expert_keys;
    enum decoder_norm_placement norms;
    enum decoder_qk_norm qk_norm;
    bool has_layer_norm;   /* with a bias, rather than RMSNorm */
    bool has_no_norm_bias; /* of those layer norms */
    bool has_embedding_norm, has_no_final_norm;
    bool has_expert_bias; /* experts and their router */
    bool has_sinks;
    bool has_unfused_attention; /* see struct graph_attention */
    bool has_no_rotation;
    bool has_shared_without_gate; /* shared experts are added as they are */
    bool is_chunked;              /* attention begins anew after `window` tokens */
    bool has_tied_embeddings;
    bool has_qkv_bias, has_output_bias, has_mlp_bias, has_head_bias;
    bool has_fused_qkv, has_fused_gate; /* one matrix for each */
    bool has_no_gate;
    double matrix_bits; /* per element of a layer's matrices, scales included; 0: not quantized */
    bool quantizes_experts_only;
};

/* What all models of a kind have in common (decoder_kinds.def), by the model_type of Hugging Face: "llama",
 * "qwen3_moe"; a size there is the default of transformers for a key that is missing.  False when it is unknown. */
bool decoder_shape_for_kind(const char *kind, struct decoder_shape *out);
size_t decoder_kind_count(void);
const char *decoder_kind_at(size_t index);

/* ERR_BAD_VALUE names the size that is out of range or does not fit the others. */
enum err decoder_from_shape(const struct decoder_shape *shape, struct decoder *out,
                            struct error *why) MUST_USE;

#endif
