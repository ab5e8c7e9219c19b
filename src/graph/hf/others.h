/* The numbers of transformers that are no decoders of Llama's kind, in a config.json.  Plain structs of
 * the caller's; failures are in keys->err. */
#ifndef IPW_GRAPH_HF_OTHERS_H
#define IPW_GRAPH_HF_OTHERS_H

#include "graph/hf/keys.h"
#include "graph/transformers.h"

struct transformer_gpt2 hf_gpt2_read(struct hf_keys *keys);
struct transformer_bert hf_bert_read(struct hf_keys *keys);
struct transformer_bert hf_distilbert_read(struct hf_keys *keys);
struct transformer_vit hf_vit_read(struct hf_keys *keys);

#endif
