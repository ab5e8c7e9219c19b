/* config.json of Hugging Face.  Every size is checked against what a model may have before anything is made of it.
 * The reader "hf_config" is at the end. */
#include "graph/hf.h"

#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "graph/decoder_shape.h"
#include "graph/model_files.h"
#include "port/file.h"
#include "port/json_read.h"

/* ---- keys ---- */

/* The first failure stays, and the rest does nothing: only `err` is checked, at the end. */
struct keys {
    const char *file;
    const struct jv *json;
    struct error *why;
    enum err err;
};

static void reject(struct keys *keys, enum err code, const char *key, const char *what)
{
    struct text value = {0};
    const struct jv *found = jv_get(keys->json, key);
    if (keys->err)
        return;
    if (found && jv_print(found, &value) == ERR_OK && !value.failed)
        keys->err = err_set(keys->why, code, "%s: '%s' is %.60s: %s", keys->file, key,
                            text_get(&value), what);
    else
        keys->err = err_set(keys->why, code, "%s: '%s' is missing: %s", keys->file, key, what);
    text_release(&value);
}

static void reject_size(struct keys *keys, const char *key, uint64_t least, uint64_t most)
{
    char what[96];
    str_format(what, sizeof what, "must be an integer from %llu to %llu", (unsigned long long)least,
               (unsigned long long)most);
    reject(keys, ERR_BAD_VALUE, key, what);
}

/* 1 .. most.  A missing or null key gives `otherwise`; where that is 0 it is an error. */
static uint64_t required_size(struct keys *keys, const char *key, uint64_t most, uint64_t otherwise)
{
    const struct jv *value = jv_get(keys->json, key);
    int64_t number;
    if (jv_is_null(value) && otherwise)
        return otherwise;
    if (jv_integer(value, &number) && number >= 1 && (uint64_t)number <= most)
        return (uint64_t)number;
    reject_size(keys, key, 1, most);
    return 1; /* harmless until the error is checked */
}

/* The same, where missing or 0 means that there is none. */
static uint64_t optional_size(struct keys *keys, const char *key, uint64_t most)
{
    const struct jv *value = jv_get(keys->json, key);
    int64_t number;
    if (jv_is_null(value))
        return 0;
    if (jv_integer(value, &number) && number >= 0 && (uint64_t)number <= most)
        return (uint64_t)number;
    reject_size(keys, key, 0, most);
    return 0;
}

static bool read_bool(struct keys *keys, const char *key, bool otherwise)
{
    const struct jv *value = jv_get(keys->json, key);
    if (!jv_is_null(value) && !jv_is_bool(value))
        reject(keys, ERR_BAD_VALUE, key, "must be true or false");
    return jv_bool(value, otherwise);
}

/* NULL when it is missing or null. */
static const char *read_string(struct keys *keys, const char *key)
{
    const struct jv *value = jv_get(keys->json, key);
    if (!jv_is_null(value) && !jv_text(value))
        reject(keys, ERR_BAD_VALUE, key, "must be a string");
    return jv_text(value);
}

/* ---- decoders: sizes ---- */

static void read_activation(struct keys *keys, struct decoder_shape *shape)
{
    static const struct {
        const char *name;
        enum decoder_activation activation;
    } NAMES[] = {
        {"silu", DECODER_SILU},      {"swish", DECODER_SILU},
        {"gelu", DECODER_GELU},      {"gelu_new", DECODER_GELU},
        {"gelu_fast", DECODER_GELU}, {"gelu_pytorch_tanh", DECODER_GELU},
    };
    const char *name = read_string(keys, "hidden_activation"); /* Gemma has both; this one counts */
    const char *key = name ? "hidden_activation" : "hidden_act";
    name = name ? name : read_string(keys, key);
    if (!name)
        return;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i].name, name) == 0) {
            shape->activation = NAMES[i].activation;
            return;
        }
    reject(keys, ERR_UNSUPPORTED, key, "not supported, only silu and gelu are");
}

static void read_sizes(struct keys *keys, struct decoder_shape *shape)
{
    shape->layers = required_size(keys, "num_hidden_layers", DECODER_MAX_LAYERS, 0);
    shape->embedding = required_size(keys, "hidden_size", DECODER_MAX_SIZE, 0);
    shape->heads = required_size(keys, "num_attention_heads", DECODER_MAX_HEADS, 0);
    shape->heads_kv = required_size(keys, "num_key_value_heads", shape->heads, shape->heads);
    shape->head_size = optional_size(keys, "head_dim", DECODER_MAX_HEADS);
    shape->vocabulary = required_size(keys, "vocab_size", UINT32_MAX, 0);
    shape->context = optional_size(keys, "max_position_embeddings", UINT32_MAX);
    shape->has_tied_embeddings = read_bool(keys, "tie_word_embeddings", shape->has_tied_embeddings);
    if (shape->has_tied_embeddings && shape->has_head_bias)
        reject(keys, ERR_UNSUPPORTED, "tie_word_embeddings",
               "tied embeddings with a bias of the head are not supported");
    if (shape->heads % shape->heads_kv)
        reject(keys, ERR_BAD_VALUE, "num_key_value_heads", "does not divide 'num_attention_heads'");
    if (!shape->head_size && shape->embedding % shape->heads)
        reject(keys, ERR_BAD_VALUE, "num_attention_heads", "does not divide 'hidden_size'");
}

/* Some kinds have these keys; for the others the kind decides. */
static void read_biases(struct keys *keys, struct decoder_shape *shape)
{
    if (!read_bool(keys, "use_bias", true)) /* StarCoder 2 */
        shape->has_qkv_bias = shape->has_output_bias = shape->has_mlp_bias = false;
    if (read_bool(keys, "attention_bias", false))
        shape->has_qkv_bias = shape->has_output_bias = true;
    if (read_bool(keys, "mlp_bias", false))
        shape->has_mlp_bias = true;
    if (read_bool(keys, "qk_layernorm", false)) /* some Phi models */
        reject(keys, ERR_UNSUPPORTED, "qk_layernorm", "QK norms with a bias are not supported");
}

/* Mixtral's key became the general one: transformers 5 writes it for Qwen too. */
static const char *expert_key(const struct keys *keys, bool is_mixtral)
{
    bool is_older = !is_mixtral && jv_is_null(jv_get(keys->json, "num_local_experts"));
    return is_older ? "num_experts" : "num_local_experts";
}

static void read_feed_forward(struct keys *keys, struct decoder_shape *shape)
{
    bool is_mixtral = strcmp(shape->architecture, "mixtral") == 0;
    bool is_qwen = strcmp(shape->architecture, "qwen2_moe") == 0 ||
                   strcmp(shape->architecture, "qwen3_moe") == 0;
    uint64_t width = required_size(keys, "intermediate_size", DECODER_MAX_SIZE, 0);
    *(is_mixtral ? &shape->expert_feed_forward : &shape->feed_forward) = width;
    if (!is_mixtral && !is_qwen)
        return;
    shape->experts = required_size(keys, expert_key(keys, is_mixtral), DECODER_MAX_EXPERTS, 0);
    shape->experts_used = required_size(keys, "num_experts_per_tok", shape->experts, 0);
    if (is_mixtral)
        return;
    shape->expert_feed_forward = required_size(keys, "moe_intermediate_size", DECODER_MAX_SIZE, 0);
    shape->shared_feed_forward =
        optional_size(keys, "shared_expert_intermediate_size", DECODER_MAX_SIZE);
    shape->expert_period = required_size(keys, "decoder_sparse_step", DECODER_MAX_LAYERS, 1);
    if (jv_count(jv_get(keys->json, "mlp_only_layers")))
        reject(keys, ERR_UNSUPPORTED, "mlp_only_layers",
               "dense layers out of the regular pattern are not supported");
}

/* ---- decoders: sliding windows ---- */

static void read_window(struct keys *keys, struct decoder_shape *shape)
{
    bool is_used = read_bool(keys, "use_sliding_window", true);
    uint64_t window = optional_size(keys, "sliding_window", UINT32_MAX);
    shape->window = is_used ? window : 0;
    if (shape->window_period)
        shape->window_period =
            required_size(keys, "sliding_window_pattern", DECODER_MAX_LAYERS, shape->window_period);
}

/* Newer files have a list with one entry per layer; older ones of Qwen the first layer with a window. */
static void place_windows(struct keys *keys, const struct decoder_shape *shape,
                          struct decoder *decoder)
{
    const struct jv *types = jv_get(keys->json, "layer_types");
    uint64_t full = optional_size(keys, "max_window_layers", UINT32_MAX);
    for (size_t i = 0; i < decoder->layer_count && i < full && !jv_is_array(types); i++)
        decoder->layers[i].window = 0;
    if (!jv_is_array(types))
        return;
    if (jv_count(types) != decoder->layer_count) {
        reject(keys, ERR_BAD_VALUE, "layer_types", "must have one entry per layer");
        return;
    }
    size_t number = 0;
    for (const struct jv *type = jv_first(types); type; type = jv_next(type), number++) {
        const char *name = jv_text(type);
        bool is_full = name && strcmp(name, "full_attention") == 0;
        if (!is_full && (!name || strcmp(name, "sliding_attention") != 0)) {
            reject(keys, ERR_UNSUPPORTED, "layer_types",
                   "only full_attention and sliding_attention are supported");
            return;
        }
        decoder->layers[number].window = is_full ? 0 : shape->window;
    }
}

/* ---- decoders: quantization ---- */

/* Bits per element, with a scale and a zero point per group. */
static double bits_in_groups(const struct jv *config)
{
    int64_t bits = 0, group = 0;
    if (!jv_integer(jv_get(config, "bits"), &bits) || bits < 1 || bits > 16)
        return 0;
    if (!jv_integer(jv_get(config, "group_size"), &group) || group < 1)
        return (double)bits;
    return (double)bits + (16 + (double)bits) / (double)group;
}

static double quantized_bits(const struct jv *config)
{
    const char *method = jv_text(jv_get(config, "quant_method"));
    if (!method)
        return 0;
    if (strcmp(method, "gptq") == 0 || strcmp(method, "awq") == 0)
        return bits_in_groups(config);
    if (strcmp(method, "fp8") == 0)
        return 8;
    if (strcmp(method, "bitsandbytes") == 0)
        return jv_bool(jv_get(config, "load_in_4bit"), false)
                   ? 4.5 /* a 32-bit scale per 64 elements */
               : jv_bool(jv_get(config, "load_in_8bit"), false) ? 8
                                                                : 0;
    return 0;
}

static void read_quantization(struct keys *keys, struct decoder_shape *shape)
{
    const struct jv *config = jv_get(keys->json, "quantization_config");
    if (jv_is_null(config))
        return;
    shape->matrix_bits = quantized_bits(config);
    if (shape->matrix_bits <= 0)
        log_warn("%s: unknown quantization_config: its weights are counted as if they were not "
                 "quantized",
                 keys->file);
}

static void read_decoder_config(struct keys *keys, struct decoder_shape *shape, struct decoder *out)
{
    read_sizes(keys, shape);
    read_activation(keys, shape);
    read_biases(keys, shape);
    read_feed_forward(keys, shape);
    read_window(keys, shape);
    read_quantization(keys, shape);
    if (!keys->err)
        keys->err = decoder_from_shape(shape, out, keys->why);
    if (keys->err)
        return;
    place_windows(keys, shape, out);
    if (keys->err)
        decoder_release(out);
}

/* ---- GPT-2, BERT, ViT ---- */

/* Products of three such sizes fit into 64 bits. */
enum {
    MAX_LAYERS = 4096,
    MAX_SIZE = 1 << 20,
    MAX_HEADS = 1 << 14,
    MAX_POSITIONS = 1 << 24,
    MAX_PIXELS = 1 << 16,
    MAX_CLASSES = 1 << 24,
};

static enum graph_op activation(struct keys *keys, const char *key)
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
    const char *name = read_string(keys, key);
    for (size_t i = 0; name && i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i].name, name) == 0)
            return NAMES[i].op;
    if (name)
        reject(keys, ERR_UNSUPPORTED, key, "not supported, only gelu, relu, silu and tanh are");
    return GRAPH_GELU;
}

static int64_t size(struct keys *keys, const char *key, uint64_t most, uint64_t otherwise)
{
    return (int64_t)required_size(keys, key, most, otherwise);
}

static int64_t heads(struct keys *keys, const char *key, int64_t hidden, const char *hidden_key)
{
    int64_t count = size(keys, key, MAX_HEADS, 0);
    if (hidden % count) {
        char what[80];
        str_format(what, sizeof what, "does not divide '%s'", hidden_key);
        reject(keys, ERR_BAD_VALUE, key, what);
    }
    return count;
}

static struct transformer_gpt2 read_gpt2(struct keys *keys)
{
    struct transformer_gpt2 gpt2 = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "n_positions", MAX_POSITIONS, 1024),
        .hidden = size(keys, "n_embd", MAX_SIZE, 0),
        .layers = (int)size(keys, "n_layer", MAX_LAYERS, 0),
        .intermediate = (int64_t)optional_size(keys, "n_inner", MAX_SIZE),
        .activation = activation(keys, "activation_function"),
    };
    gpt2.heads = heads(keys, "n_head", gpt2.hidden, "n_embd");
    return gpt2;
}

static struct transformer_bert read_bert(struct keys *keys, bool is_distilled)
{
    const char *hidden = is_distilled ? "dim" : "hidden_size";
    struct transformer_bert bert = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "max_position_embeddings", MAX_POSITIONS, 512),
        .hidden = size(keys, hidden, MAX_SIZE, 0),
        .intermediate = size(keys, is_distilled ? "hidden_dim" : "intermediate_size", MAX_SIZE, 0),
        .layers = (int)size(keys, is_distilled ? "n_layers" : "num_hidden_layers", MAX_LAYERS, 0),
        .activation = activation(keys, is_distilled ? "activation" : "hidden_act"),
        .has_pooler = !is_distilled,
        .is_distilled = is_distilled,
    };
    if (!is_distilled)
        bert.types = (int64_t)optional_size(keys, "type_vocab_size", MAX_SIZE);
    bert.heads = heads(keys, is_distilled ? "n_heads" : "num_attention_heads", bert.hidden, hidden);
    return bert;
}

/* The first architecture decides about the head: "ViTForImageClassification". */
static bool is_for(const struct keys *keys, const char *purpose)
{
    const char *name = jv_text(jv_first(jv_get(keys->json, "architectures")));
    return name && strstr(name, purpose);
}

static struct transformer_vit read_vit(struct keys *keys)
{
    struct transformer_vit vit = {
        .image = size(keys, "image_size", MAX_PIXELS, 224),
        .patch = size(keys, "patch_size", MAX_PIXELS, 16),
        .channels = size(keys, "num_channels", MAX_HEADS, 3),
        .hidden = size(keys, "hidden_size", MAX_SIZE, 0),
        .intermediate = size(keys, "intermediate_size", MAX_SIZE, 0),
        .layers = (int)size(keys, "num_hidden_layers", MAX_LAYERS, 0),
        .activation = activation(keys, "hidden_act"),
        .has_pooler = true,
        .has_no_qkv_bias = !read_bool(keys, "qkv_bias", true),
    };
    vit.heads = heads(keys, "num_attention_heads", vit.hidden, "hidden_size");
    if (vit.image % vit.patch)
        reject(keys, ERR_BAD_VALUE, "patch_size", "does not divide 'image_size'");
    if (is_for(keys, "ForImageClassification")) {
        size_t labels = jv_count(jv_get(keys->json, "id2label"));
        /* Two is the default of transformers. */
        vit.classes = size(keys, "num_labels", MAX_CLASSES, labels ? labels : 2);
    }
    return vit;
}

/* ---- any model_type ---- */

enum { DEFAULT_TOKENS = 128 };

/* model_types other than those of decoders (decoder_shape.c). */
static const struct {
    const char *type;
    enum hf_kind kind;
} TYPES[] = {
    {"gpt2", HF_GPT2},        {"bert", HF_BERT},       {"roberta", HF_BERT},
    {"xlm-roberta", HF_BERT}, {"distilbert", HF_BERT}, {"vit", HF_VIT},
};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

static enum err unknown_type(const char *file, const char *type, struct error *why)
{
    struct text known = {0};
    for (size_t i = 0; i < decoder_kind_count(); i++)
        text_addf(&known, "%s, ", decoder_kind_at(i));
    for (size_t i = 0; i < TYPE_COUNT; i++)
        text_addf(&known, "%s%s", TYPES[i].type, i + 1 < TYPE_COUNT ? ", " : "");
    enum err err = err_set(why, ERR_UNSUPPORTED, "%.80s: unknown model_type '%.40s' (known: %s)",
                           file, model_label(slice_of(type)).text, text_get(&known));
    text_release(&known);
    return err;
}

static void read_decoder(struct keys *keys, struct decoder_shape *shape, struct hf_config *out)
{
    out->kind = HF_DECODER;
    shape->name = out->name;
    read_decoder_config(keys, shape, &out->as.decoder);
    out->is_quantized = shape->matrix_bits > 0;
}

static void read_transformer(struct keys *keys, const char *type, struct hf_config *out)
{
    if (out->kind == HF_GPT2)
        out->as.gpt2 = read_gpt2(keys);
    else if (out->kind == HF_VIT)
        out->as.vit = read_vit(keys);
    else
        out->as.bert = read_bert(keys, strcmp(type, "distilbert") == 0);
}

enum err hf_config_parse(const char *file, const char *name, const struct jv *json,
                         struct hf_config *out, struct error *why)
{
    struct keys keys = {file, json, why, ERR_OK};
    struct decoder_shape shape;
    *out = (struct hf_config){0};
    str_copy(out->name, sizeof out->name, name);
    const char *type = read_string(&keys, "model_type");
    if (!keys.err && !type)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: 'model_type' is missing: not the config.json of a model", file);
    if (keys.err)
        return keys.err;
    if (decoder_shape_for_kind(type, &shape)) {
        read_decoder(&keys, &shape, out);
        return keys.err;
    }
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (strcmp(TYPES[i].type, type) == 0) {
            out->kind = TYPES[i].kind;
            read_transformer(&keys, type, out);
            return keys.err;
        }
    return unknown_type(file, type, why);
}

enum err hf_config_read(const char *path, struct hf_config *out, struct error *why)
{
    struct jv *json;
    char name[128];
    model_path_name(path, name, sizeof name);
    enum err err = model_json_read(path, &json, why);
    if (err)
        return err;
    err = hf_config_parse(path, name, json, out, why);
    jv_free(json);
    return err;
}

void hf_config_release(struct hf_config *config)
{
    if (config->kind == HF_DECODER)
        decoder_release(&config->as.decoder);
    *config = (struct hf_config){0};
}

/* ---- building ---- */

bool hf_config_has_phases(const struct hf_config *config)
{
    return config->kind == HF_DECODER || config->kind == HF_GPT2;
}

int64_t hf_config_context(const struct hf_config *config)
{
    return config->kind == HF_DECODER ? (int64_t)config->as.decoder.context : 0;
}

static int64_t tokens_at_most(const struct hf_config *config)
{
    int64_t positions = config->kind == HF_GPT2   ? config->as.gpt2.positions
                        : config->kind == HF_BERT ? config->as.bert.positions
                                                  : 1;
    return positions < DEFAULT_TOKENS ? positions : DEFAULT_TOKENS;
}

enum err hf_config_graph(const struct hf_config *config, struct graph_options *options,
                         struct graph *out, struct error *why)
{
    if (config->kind == HF_DECODER)
        return decoder_graph(&config->as.decoder, options, out, why);
    int64_t tokens = tokens_at_most(config);
    const struct graph_options defaults = {
        .image = config->kind == HF_VIT ? config->as.vit.image : 0,
        .tokens = config->kind == HF_VIT ? 0 : tokens,
        .context = config->kind == HF_GPT2 ? tokens : 0,
    };
    enum err err =
        graph_options_complete(options, config->name, hf_config_has_phases(config), &defaults, why);
    if (err)
        return err;
    struct build b = build_begin(out, config->name, why);
    build_output(&b, config->kind == HF_GPT2   ? transformer_gpt2(&b, &config->as.gpt2, options)
                     : config->kind == HF_BERT ? transformer_bert(&b, &config->as.bert, options)
                                               : transformer_vit(&b, &config->as.vit, options));
    return build_end(&b);
}

/* ---- the reader ---- */

static bool begins_object(const unsigned char *head, size_t length)
{
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", head[at]) && head[at])
        at++;
    return at < length && head[at] == '{';
}

static int probe(const char *source, const unsigned char *head, size_t length)
{
    char path[FILE_PATH_MAX];
    if (head && begins_object(head, length))
        return model_path_ends(source, "config.json") ? 80
               : model_path_ends(source, ".json")     ? 50
                                                      : 0;
    bool is_there = !head && file_is_directory(source) &&
                    model_path_beside(source, "config.json", path, sizeof path) &&
                    file_is_regular(path);
    return is_there ? 50 : 0;
}

static enum err open_file(const char *source, struct model *model, struct error *why)
{
    char path[FILE_PATH_MAX];
    if (file_is_directory(source)) {
        if (!model_path_beside(source, "config.json", path, sizeof path))
            return err_set(why, ERR_BAD_VALUE, "%.200s: path too long", source);
        source = path;
    }
    struct hf_config *config = model->state;
    enum err err = hf_config_read(source, config, why);
    if (err)
        return err;
    model->has_phases = hf_config_has_phases(config);
    model->context_length = hf_config_context(config);
    str_copy(model->name, sizeof model->name, config->name);
    return ERR_OK;
}

static enum err build_graph(const struct model *model, struct graph_options *options,
                            struct graph *out, struct error *why)
{
    return hf_config_graph(model->state, options, out, why);
}

static void close_file(struct model *model)
{
    hf_config_release(model->state);
}

const struct graph_reader graph_reader_hf = {
    .name = "hf_config",
    .summary = "config.json of Hugging Face: decoders of the Llama kind, GPT-2, BERT, ViT",
    .probe = probe,
    .state_size = sizeof(struct hf_config),
    .open = open_file,
    .build = build_graph,
    .close = close_file,
};
