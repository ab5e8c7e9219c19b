/* Whole transformers of the kinds that Hugging Face has a model_type for and that are no decoders of
 * Llama's kind: BERT, GPT-2, ViT.  The sizes are what their config.json says; the nodes are named as
 * their modules are.
 *
 * Each fills and finishes a graph of the caller's.  Settings must be filled in; more tokens than there
 * are positions are refused. */
#ifndef IPW_GRAPH_TRANSFORMERS_H
#define IPW_GRAPH_TRANSFORMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/build.h"
#include "graph/reader.h"

/* Encoders of text: BERT, RoBERTa, DistilBERT. */
struct transformer_bert {
    int64_t vocabulary, positions, types; /* types of tokens; 0: no such table */
    int64_t hidden, heads, intermediate;
    int layers;
    enum graph_op activation; /* GRAPH_GELU */
    bool has_pooler;
    bool is_distilled; /* named as DistilBERT names its modules */
};
enum err transformer_bert(const char *name, const struct transformer_bert *bert,
                          const struct graph_setting *setting, struct graph *out, struct error *why)
    MUST_USE;

/* GPT-2: whole and prefill fill the cache and give logits of the last token; decode is one token. */
struct transformer_gpt2 {
    int64_t vocabulary, positions;
    int64_t hidden, heads, intermediate; /* intermediate 0: four times hidden */
    int layers;
    enum graph_op activation;
};
enum err transformer_gpt2(const char *name, const struct transformer_gpt2 *gpt2,
                          const struct graph_setting *setting, struct graph *out, struct error *why)
    MUST_USE;

/* ViT.  An image of another size than it was trained for has its positions interpolated. */
struct transformer_vit {
    int64_t image, patch, channels;               /* pixels of a side; channels of a pixel */
    int64_t hidden, heads, intermediate, classes; /* classes 0: no head, a pooler if it has one */
    int layers;
    enum graph_op activation;
    bool has_pooler;
    bool lacks_qkv_bias;
    bool is_torchvision; /* named as there, with one matrix for queries, keys and values */
};
enum err transformer_vit(const char *name, const struct transformer_vit *vit,
                         const struct graph_setting *setting, struct graph *out, struct error *why)
    MUST_USE;

#endif
