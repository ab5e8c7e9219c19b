/* Transformers by name: their sizes.  graph/transformers.h builds them; ViT is among them. */
#include "graph/transformers.h"
#include "graph/zoo/family.h"

/* ---- BERT ---- */

struct bert_row {
    const char *name;
    struct transformer_bert sizes;
};

#define BERT(vocabulary, positions, types, layers, hidden, heads)                                  \
    {vocabulary, positions, types, hidden, heads, 4 * (hidden), layers, GRAPH_GELU, true, false}
static const struct bert_row BERTS[] = {
    {"bert-base-uncased", BERT(30522, 512, 2, 12, 768, 12)},
    {"bert-large-uncased", BERT(30522, 512, 2, 24, 1024, 16)},
    {"bert-base-cased", BERT(28996, 512, 2, 12, 768, 12)},
    {"bert-large-cased", BERT(28996, 512, 2, 24, 1024, 16)},
    {"all-MiniLM-L6-v2", BERT(30522, 512, 2, 6, 384, 12)},
    {"all-MiniLM-L12-v2", BERT(30522, 512, 2, 12, 384, 12)},
    {"distilbert-base-uncased", {30522, 512, 0, 768, 12, 3072, 6, GRAPH_GELU, false, true}},
    /* The first position is 2, so that 512 tokens need 514. */
    {"roberta-base", BERT(50265, 514, 1, 12, 768, 12)},
    {"roberta-large", BERT(50265, 514, 1, 24, 1024, 16)},
};
#undef BERT

enum err zoo_build_bert(const char *name, const struct graph_options *setting, struct graph *out,
                        struct error *why)
{
    const struct bert_row *row = ZOO_ROW(BERTS, name);
    return transformer_bert(name, &row->sizes, setting, out, why);
}

/* ---- GPT-2 ---- */

struct gpt2_row {
    const char *name;
    struct transformer_gpt2 sizes;
};

static const struct gpt2_row GPT2S[] = {
    {"gpt2", {50257, 1024, 768, 12, 0, 12, GRAPH_GELU}},
    {"gpt2-medium", {50257, 1024, 1024, 16, 0, 24, GRAPH_GELU}},
    {"gpt2-large", {50257, 1024, 1280, 20, 0, 36, GRAPH_GELU}},
    {"gpt2-xl", {50257, 1024, 1600, 25, 0, 48, GRAPH_GELU}},
    {"distilgpt2", {50257, 1024, 768, 12, 0, 6, GRAPH_GELU}},
};

enum err zoo_build_gpt2(const char *name, const struct graph_options *setting, struct graph *out,
                        struct error *why)
{
    const struct gpt2_row *row = ZOO_ROW(GPT2S, name);
    return transformer_gpt2(name, &row->sizes, setting, out, why);
}

/* ---- ViT ---- */

struct vit_row {
    const char *name;
    struct transformer_vit sizes;
};

#define VIT(patch, layers, hidden, heads, intermediate)                                            \
    {224, patch, 3, hidden, heads, intermediate, 1000, layers, GRAPH_GELU, false, false, true}
static const struct vit_row VITS[] = {
    {"vit_b_16", VIT(16, 12, 768, 12, 3072)},  {"vit_b_32", VIT(32, 12, 768, 12, 3072)},
    {"vit_l_16", VIT(16, 24, 1024, 16, 4096)}, {"vit_l_32", VIT(32, 24, 1024, 16, 4096)},
    {"vit_h_14", VIT(14, 32, 1280, 16, 5120)},
};
#undef VIT

enum err zoo_build_vit(const char *name, const struct graph_options *setting, struct graph *out,
                       struct error *why)
{
    const struct vit_row *row = ZOO_ROW(VITS, name);
    return transformer_vit(name, &row->sizes, setting, out, why);
}
