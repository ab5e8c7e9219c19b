/* A config.json of Hugging Face: the numbers of a model, out of which its graph is built.  Decoders of Llama's
 * kind (decoder_kinds.def), GPT-2, BERT and its relatives, ViT.
 *
 * Every number is held to what a model may have before anything is made of it; ERR_BAD_VALUE names the key.
 * hf_config_parse fills a struct of the caller's, who releases it; nothing in it points into the JSON. */
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
    bool is_quantised;
    union {
        struct decoder decoder;
        struct transformer_gpt2 gpt2;
        struct transformer_bert bert;
        struct transformer_vit vit;
    } as;
};

/* `file` is for messages, `name` for people.  ERR_UNSUPPORTED for a model_type that is not known. */
enum err hf_config_parse(const char *file, const char *name, const struct jv *json,
                         struct hf_config *out, struct error *why) MUST_USE;
enum err hf_config_read(const char *path, struct hf_config *out, struct error *why) MUST_USE;
void hf_config_release(struct hf_config *config);

bool hf_config_has_phases(const struct hf_config *config);
int64_t hf_config_trained(const struct hf_config *config); /* as struct model has it */
enum err hf_config_graph(const struct hf_config *config, struct graph_setting *setting,
                         struct graph *out, struct error *why) MUST_USE;

#endif
