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

/* Text encoders: BERT, RoBERTa, DistilBERT. */
struct transformer_bert {
    int64_t vocabulary, positions, types; /* token types; 0: no such table */
    int64_t hidden, heads, intermediate;
    int layers;
    enum graph_op activation; /* GRAPH_GELU */
    bool has_pooler;
    bool is_distilled; /* DistilBERT: its names */
};
tensor_id transformer_bert(struct build *b, const struct transformer_bert *bert,
                           const struct graph_options *options);

/* GPT-2: forward and prefill fill the KV cache and compute the logits of the last token; decode is one token. */
struct transformer_gpt2 {
    int64_t vocabulary, positions;
    int64_t hidden, heads, intermediate; /* intermediate 0: four times hidden */
    int layers;
    enum graph_op activation;
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

#endif
