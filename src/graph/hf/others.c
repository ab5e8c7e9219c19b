#include "graph/hf/others.h"

#include <string.h>

#include "core/text.h"
#include "port/json_read.h"

/* So bounded, products of three sizes fit into 64 bits. */
enum {
    MOST_LAYERS = 4096,
    LARGEST_SIZE = 1 << 20,
    MOST_HEADS = 1 << 14,
    MOST_POSITIONS = 1 << 24,
    MOST_PIXELS = 1 << 16,
    MOST_CLASSES = 1 << 24,
};

/* ---- what they share ---- */

static enum graph_op activation(struct hf_keys *keys, const char *key)
{
    static const struct {
        const char *name;
        enum graph_op op;
    } NAMES[] = {
        {"gelu", GRAPH_GELU},      {"gelu_new", GRAPH_GELU},
        {"gelu_fast", GRAPH_GELU}, {"gelu_pytorch_tanh", GRAPH_GELU},
        {"relu", GRAPH_RELU},      {"silu", GRAPH_SILU},
        {"swish", GRAPH_SILU},     {"tanh", GRAPH_TANH},
    };
    const char *name = hf_text(keys, key);
    for (size_t i = 0; name && i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i].name, name) == 0)
            return NAMES[i].op;
    if (name)
        hf_refuse(keys, ERR_UNSUPPORTED, key, "which is not counted: gelu, relu, silu, tanh are");
    return GRAPH_GELU;
}

static int64_t size(struct hf_keys *keys, const char *key, uint64_t most, uint64_t otherwise)
{
    return (int64_t)hf_size(keys, key, most, otherwise);
}

static int64_t heads(struct hf_keys *keys, const char *key, int64_t hidden, const char *hidden_key)
{
    int64_t count = size(keys, key, MOST_HEADS, 0);
    if (hidden % count) {
        char what[80];
        str_format(what, sizeof what, "which does not divide '%s'", hidden_key);
        hf_refuse(keys, ERR_BAD_VALUE, key, what);
    }
    return count;
}

/* ---- each ---- */

struct transformer_gpt2 hf_gpt2_read(struct hf_keys *keys)
{
    struct transformer_gpt2 gpt2 = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "n_positions", MOST_POSITIONS, 1024),
        .hidden = size(keys, "n_embd", LARGEST_SIZE, 0),
        .layers = (int)size(keys, "n_layer", MOST_LAYERS, 0),
        .intermediate = (int64_t)hf_size_or_none(keys, "n_inner", LARGEST_SIZE),
        .activation = activation(keys, "activation_function"),
    };
    gpt2.heads = heads(keys, "n_head", gpt2.hidden, "n_embd");
    return gpt2;
}

struct transformer_bert hf_bert_read(struct hf_keys *keys)
{
    struct transformer_bert bert = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "max_position_embeddings", MOST_POSITIONS, 512),
        .types = (int64_t)hf_size_or_none(keys, "type_vocab_size", LARGEST_SIZE),
        .hidden = size(keys, "hidden_size", LARGEST_SIZE, 0),
        .intermediate = size(keys, "intermediate_size", LARGEST_SIZE, 0),
        .layers = (int)size(keys, "num_hidden_layers", MOST_LAYERS, 0),
        .activation = activation(keys, "hidden_act"),
        .has_pooler = true,
    };
    bert.heads = heads(keys, "num_attention_heads", bert.hidden, "hidden_size");
    return bert;
}

struct transformer_bert hf_distilbert_read(struct hf_keys *keys)
{
    struct transformer_bert bert = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "max_position_embeddings", MOST_POSITIONS, 512),
        .hidden = size(keys, "dim", LARGEST_SIZE, 0),
        .intermediate = size(keys, "hidden_dim", LARGEST_SIZE, 0),
        .layers = (int)size(keys, "n_layers", MOST_LAYERS, 0),
        .activation = activation(keys, "activation"),
        .is_distilled = true,
    };
    bert.heads = heads(keys, "n_heads", bert.hidden, "dim");
    return bert;
}

/* What its first architecture ends with decides about its head: "ViTForImageClassification". */
static bool is_for(const struct hf_keys *keys, const char *purpose)
{
    const char *name = jv_text(jv_first(jv_get(keys->json, "architectures")));
    return name && strstr(name, purpose);
}

struct transformer_vit hf_vit_read(struct hf_keys *keys)
{
    struct transformer_vit vit = {
        .image = size(keys, "image_size", MOST_PIXELS, 224),
        .patch = size(keys, "patch_size", MOST_PIXELS, 16),
        .channels = size(keys, "num_channels", MOST_HEADS, 3),
        .hidden = size(keys, "hidden_size", LARGEST_SIZE, 0),
        .intermediate = size(keys, "intermediate_size", LARGEST_SIZE, 0),
        .layers = (int)size(keys, "num_hidden_layers", MOST_LAYERS, 0),
        .activation = activation(keys, "hidden_act"),
        .has_pooler = true,
        .lacks_qkv_bias = !hf_truth(keys, "qkv_bias", true),
    };
    vit.heads = heads(keys, "num_attention_heads", vit.hidden, "hidden_size");
    if (vit.image % vit.patch)
        hf_refuse(keys, ERR_BAD_VALUE, "patch_size", "which does not divide 'image_size'");
    if (is_for(keys, "ForImageClassification")) {
        size_t labels = jv_count(jv_get(keys->json, "id2label"));
        /* Two are what a file without either has. */
        vit.classes = size(keys, "num_labels", MOST_CLASSES, labels ? labels : 2);
    }
    return vit;
}
