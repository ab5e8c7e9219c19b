/* Transformers other than decoders of the Llama kind: BERT, GPT-2, ViT.  The sizes are those of a config.json of Hugging
 * Face; nodes are named like the modules.
 *
 * Each fills and finishes a graph of the caller's.  Options must be complete; more tokens than positions is an error. */
#ifndef IPW_GRAPH_TRANSFORMERS_H
#define IPW_GRAPH_TRANSFORMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/build.h"
#include "graph/reader.h"

/* Text encoders: BERT, RoBERTa, DistilBERT. */
struct transformer_bert {
    int64_t vocabulary, positions, types; /* token types; 0: no such table */
    int64_t hidden, heads, intermediate;
    int layers;
    enum graph_op activation; /* GRAPH_GELU */
    bool has_pooler;
    bool is_distilled; /* DistilBERT: its names */
};
enum err transformer_bert(const char *name, const struct transformer_bert *bert,
                          const struct graph_options *options, struct graph *out, struct error *why)
    MUST_USE;

/* GPT-2: forward and prefill fill the KV cache and compute the logits of the last token; decode is one token. */
struct transformer_gpt2 {
    int64_t vocabulary, positions;
    int64_t hidden, heads, intermediate; /* intermediate 0: four times hidden */
    int layers;
    enum graph_op activation;
};
enum err transformer_gpt2(const char *name, const struct transformer_gpt2 *gpt2,
                          const struct graph_options *options, struct graph *out, struct error *why)
    MUST_USE;

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
enum err transformer_vit(const char *name, const struct transformer_vit *vit,
                         const struct graph_options *options, struct graph *out, struct error *why)
    MUST_USE;

#endif
