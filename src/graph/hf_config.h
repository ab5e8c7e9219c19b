/* A config.json of Hugging Face: the sizes of a model, from which its graph is built.  Decoders of the Llama kind,
 * GPT-2, BERT and its relatives, ViT.
 *
 * ERR_BAD_VALUE names the key whose value no model has.
 * Ownership: hf_config_release frees a config; nothing in it points into the JSON. */
#ifndef IPW_GRAPH_HF_CONFIG_H
#define IPW_GRAPH_HF_CONFIG_H

#include "graph/decoder.h"
#include "graph/reader.h"
#include "graph/transformers.h"

struct jv;

enum hf_kind { HF_DECODER, HF_GPT2, HF_BERT, HF_VIT };

struct hf_config {
    enum hf_kind kind;
    char name[128];
    bool is_quantized;
    union {
        struct decoder decoder;
        struct transformer_gpt2 gpt2;
        struct transformer_bert bert;
        struct transformer_vit vit;
    } as;
};

/* `file` is for messages, `name` for people.  ERR_UNSUPPORTED for an unknown model_type. */
enum err hf_config_parse(const char *file, const char *name, const struct jv *json,
                         struct hf_config *out, struct error *why) MUST_USE;
enum err hf_config_read(const char *path, struct hf_config *out, struct error *why) MUST_USE;
void hf_config_release(struct hf_config *config);

bool hf_config_has_phases(const struct hf_config *config);
int64_t hf_config_context(const struct hf_config *config); /* maximum length; 0: unknown */
enum err hf_config_graph(const struct hf_config *config, struct graph_options *options,
                         struct graph *out, struct error *why) MUST_USE;

#endif
