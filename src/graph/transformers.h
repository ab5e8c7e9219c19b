/* Transformers other than Llama-style decoders: BERT, GPT-2, ViT.  The sizes are those of Hugging Face's config.json;
 * nodes are named like the modules.
 *
 * Each adds its nodes and returns the result; options must be complete.  More tokens than positions is an error. */
#ifndef IPW_GRAPH_TRANSFORMERS_H
#define IPW_GRAPH_TRANSFORMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/build.h"
#include "graph/graph.h"
#include "graph/mamba2.h"

/* A stack of equal layers. */
struct transformer_tower {
    int64_t hidden, heads, intermediate;
    int layers;
    enum graph_op activation;
};

/* The head of an encoder; zeroed: none. */
struct transformer_head {
    bool has_vocabulary; /* ForMaskedLM: a dense layer, then the tied embedding, for every token */
    int64_t classes;     /* 0: no classifier */
    bool is_per_token; /* classifies every token instead of the first one or the pooler's output */
    bool has_dense;    /* a dense layer with an activation before it */
};

/* Text encoders: BERT, RoBERTa, DistilBERT. */
struct transformer_bert {
    int64_t vocabulary, positions, types; /* token types; 0: no such table */
    struct transformer_tower tower;
    bool has_pooler;
    bool is_distilled; /* DistilBERT: its names */
    struct transformer_head head;
};
tensor_id transformer_bert(struct build *b, const struct transformer_bert *bert,
                           const struct graph_options *options);

/* Words, types and positions of tokens, each unless there are 0 of them, and a norm. */
tensor_id transformer_embed(struct build *b, tensor_id ids, tensor_id table, int64_t types,
                            int64_t positions);
/* The first token of each sequence through a dense layer. */
tensor_id transformer_pooler(struct build *b, enum graph_op activation, tensor_id x);
/* The heads over the states `x` of all tokens, and the pooler's output or GRAPH_NONE; `table` is the embedding. */
tensor_id transformer_heads(struct build *b, const struct transformer_head *head,
                            enum graph_op activation, tensor_id x, tensor_id pooled,
                            tensor_id table);

/* GPT-2: forward and prefill fill the KV cache and compute the logits of the last token; decode is one token. */
struct transformer_gpt2 {
    int64_t vocabulary, positions;
    struct transformer_tower tower;
    bool has_no_head; /* the states of all tokens are the output */
    int64_t classes;  /* of a classifier, which replaces the logits; 0: none */
};
tensor_id transformer_gpt2(struct build *b, const struct transformer_gpt2 *gpt2,
                           const struct graph_options *options);

/* An image as a sequence of patches with a class token in front, unless it has no name, plus positions, which are interpolated for an image of
 * another size than in training. */
struct transformer_patches {
    struct patch_names {
        const char *conv, *flatten, *transpose, *class_token, *expand, *positions;
    } names;
    int64_t image, size; /* pixels: side of an image in training, and of a patch */
    int64_t hidden;
    bool has_bias;
    bool is_cropped; /* to whole patches: the image need not be a multiple of them */
};
tensor_id transformer_patches(struct build *b, const struct transformer_patches *patches,
                              tensor_id image);

/* ViT. */
struct transformer_vit {
    int64_t image, patch, channels; /* pixels; channels of the image */
    struct transformer_tower tower;
    int64_t classes;     /* 0: no classifier */
    bool is_torchvision; /* its names, and a fused QKV */
    bool has_pooler;
    bool has_no_qkv_bias;
};
tensor_id transformer_vit(struct build *b, const struct transformer_vit *vit,
                          const struct graph_options *options);

/* Encoder-decoders: T5, BART, Whisper (seq2seq.c).  Prefill encodes the input (`tokens` of text, or the audio) and
 * computes the first output token (for Whisper `tokens` of them).  Decode computes one token, which attends to
 * `context` tokens, including itself: `tokens` of the input, whose K and V are cached, and the output so far (for
 * Whisper, to `context` tokens of the output and to the audio). */
struct transformer_seq2seq {
    enum { SEQ2SEQ_T5, SEQ2SEQ_BART, SEQ2SEQ_WHISPER } family;
    int64_t vocabulary, hidden, head_size;     /* head_size 0: hidden / heads */
    struct transformer_tower encoder, decoder; /* as wide as `hidden` */
    bool is_gated;                             /* T5 1.1 */
    int64_t buckets;                           /* relative position buckets: T5 */
    int64_t positions;              /* output positions; for BART, also input positions */
    int64_t source_positions, bins; /* states of the audio, and its mel bins: Whisper */
    bool has_own_head;              /* not tied to the embedding */
    bool is_encoder_only, has_no_head;
    int64_t classes; /* of a classifier, which replaces the logits; 0: none */
};
tensor_id transformer_seq2seq(struct build *b, const struct transformer_seq2seq *sizes,
                              const struct graph_options *options);

/* DeBERTa (deberta.c): disentangled attention. */
struct transformer_deberta {
    int64_t vocabulary, positions, types; /* 0: no such table */
    struct transformer_tower tower;
    int64_t distances;        /* rows of the table of relative positions; 0: none */
    bool by_key, by_query;    /* content to position, position to content */
    bool is_first_version;    /* QKV in one matrix, and separate matrices for positions */
    bool has_own_projections; /* version 2: instead of sharing those of Q and K */
    bool has_distance_norm;
    int64_t kernel; /* kernel of the convolution parallel to the first layer; 0: none */
    bool has_pooler;
    struct transformer_head head;
};
tensor_id transformer_deberta(struct build *b, const struct transformer_deberta *sizes,
                              const struct graph_options *options);

/* CLIP: a text encoder, an image encoder, or both with their projections (image_transformers.c). */
struct transformer_clip {
    bool has_text, has_image, has_projection;
    bool has_all_states; /* of the text, instead of that of its last token */
    struct transformer_tower text, vision;
    int64_t vocabulary, positions, image, patch, channels, projection;
};
tensor_id transformer_clip(struct build *b, const struct transformer_clip *clip,
                           const struct graph_options *options);

/* SigLIP: the same without a class token; text is not causal, and a query of its own pools the states of an image. */
struct transformer_siglip {
    bool has_text, has_image, has_pooling;
    struct transformer_tower text, vision;
    int64_t vocabulary, positions, image, patch, channels, projection;
};
tensor_id transformer_siglip(struct build *b, const struct transformer_siglip *siglip,
                             const struct graph_options *options);

/* Mamba (mamba.c): a state of fixed size in place of a KV cache. */
struct transformer_mamba {
    int64_t vocabulary, hidden, inner, state, kernel, rank; /* rank: of the time step */
    int layers;
    bool has_bias, has_no_conv_bias, has_own_head, has_no_head;
};
tensor_id transformer_mamba(struct build *b, const struct transformer_mamba *mamba,
                            const struct graph_options *options);

/* Mamba-2 (mamba2.c). */
struct transformer_mamba2 {
    int64_t vocabulary;
    int layers;
    struct mamba2_mixer mixer;
    bool has_own_head, has_no_head;
};
tensor_id transformer_mamba2(struct build *b, const struct transformer_mamba2 *mamba,
                             const struct graph_options *options);

enum { SEGFORMER_STAGES = 4 }; /* SegFormer and DETR: image_transformers.c */
struct transformer_segformer {
    int64_t channels, depths[SEGFORMER_STAGES], hidden[SEGFORMER_STAGES], heads[SEGFORMER_STAGES];
    int64_t reductions[SEGFORMER_STAGES], ratios[SEGFORMER_STAGES];
    int64_t patches[SEGFORMER_STAGES], strides[SEGFORMER_STAGES];
    enum graph_op activation;
    int64_t head_hidden, classes; /* head_hidden 0: classifies images; classes 0: no head */
};
tensor_id transformer_segformer(struct build *b, const struct transformer_segformer *sizes,
                                const struct graph_options *options);

struct transformer_detr {
    int64_t channels, depths[4];               /* ResNet with bottlenecks */
    struct transformer_tower encoder, decoder; /* equally wide */
    int64_t queries, classes;                  /* classes 0: no heads */
};
tensor_id transformer_detr(struct build *b, const struct transformer_detr *detr,
                           const struct graph_options *options);

#endif
