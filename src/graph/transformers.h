/* Transformers other than decoders of the Llama kind: BERT, GPT-2, ViT.  The sizes are those of a config.json of Hugging
 * Face; nodes are named like the modules.
 *
 * Each adds its nodes and returns the result; options must be complete.  More tokens than positions is an error. */
#ifndef IPW_GRAPH_TRANSFORMERS_H
#define IPW_GRAPH_TRANSFORMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/build.h"
#include "graph/options.h"

/* What follows the last layer of an encoder; zeroed: nothing. */
struct transformer_head {
    bool
        has_vocabulary; /* ForMaskedLM: a dense layer, then the embedding as a matrix, of every token */
    int64_t classes; /* 0: no classifier */
    bool
        is_per_token; /* it classifies every token rather than the first one or the pooler's output */
    bool has_dense;   /* a dense layer with an activation before it */
};

/* Text encoders: BERT, RoBERTa, DistilBERT. */
struct transformer_bert {
    int64_t vocabulary, positions, types; /* token types; 0: no such table */
    int64_t hidden, heads, intermediate;
    int layers;
    enum graph_op activation; /* GRAPH_GELU */
    bool has_pooler;
    bool is_distilled; /* DistilBERT: its names */
    struct transformer_head head;
};
tensor_id transformer_bert(struct build *b, const struct transformer_bert *bert,
                           const struct graph_options *options);

/* The heads over the states `x` of all tokens, and the pooler's output or GRAPH_NONE; `table` is the embedding. */
tensor_id transformer_heads(struct build *b, const struct transformer_head *head,
                            enum graph_op activation, tensor_id x, tensor_id pooled,
                            tensor_id table);

/* GPT-2: forward and prefill fill the KV cache and compute the logits of the last token; decode is one token. */
struct transformer_gpt2 {
    int64_t vocabulary, positions;
    int64_t hidden, heads, intermediate; /* intermediate 0: four times hidden */
    int layers;
    enum graph_op activation;
    bool has_no_head; /* the states of all tokens are the result */
    int64_t classes;  /* of a classifier in place of the logits; 0: none */
};
tensor_id transformer_gpt2(struct build *b, const struct transformer_gpt2 *gpt2,
                           const struct graph_options *options);

/* ViT.  For an image of another size than in training, positions are interpolated. */
struct transformer_vit {
    int64_t image, patch, channels;               /* pixels; channels of the image */
    int64_t hidden, heads, intermediate, classes; /* classes 0: no classifier */
    int layers;
    enum graph_op activation;
    bool has_pooler;
    bool has_no_qkv_bias;
    bool is_torchvision; /* its names, and a fused QKV */
};
tensor_id transformer_vit(struct build *b, const struct transformer_vit *vit,
                          const struct graph_options *options);

/* Encoder and decoder: T5, BART, Whisper (seq2seq.c).  Prefill encodes the input (`tokens` of text, or the audio) and
 * computes the first token of the output (of Whisper `tokens` of them).  Decode computes one token, which attends to
 * `context` tokens of the output, itself included, and to the K and V of the input (`tokens` of text), which are cached. */
enum transformer_seq2seq_family { SEQ2SEQ_T5, SEQ2SEQ_BART, SEQ2SEQ_WHISPER };

struct transformer_seq2seq {
    enum transformer_seq2seq_family family;
    int64_t vocabulary, hidden, head_size; /* head_size 0: hidden / heads */
    int64_t encoder_heads, decoder_heads, encoder_intermediate, decoder_intermediate;
    int encoder_layers, decoder_layers;
    enum graph_op activation;
    bool is_gated;                  /* T5 1.1 */
    int64_t buckets;                /* of relative positions: T5 */
    int64_t positions;              /* of the output; of BART, also of the input */
    int64_t source_positions, bins; /* states of the audio, and its mel bins: Whisper */
    bool has_own_head;              /* rather than the embedding */
    bool is_encoder_only, has_no_head;
    int64_t classes; /* of a classifier in place of the logits; 0: none */
};
tensor_id transformer_seq2seq(struct build *b, const struct transformer_seq2seq *sizes,
                              const struct graph_options *options);

#endif
