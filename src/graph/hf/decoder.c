#include "graph/hf/decoder.h"

#include <string.h>

#include "core/log.h"
#include "port/json_read.h"

/* ---- sizes ---- */

static void read_activation(struct hf_keys *keys, struct decoder_shape *shape)
{
    static const struct {
        const char *name;
        enum decoder_activation activation;
    } NAMES[] = {
        {"silu", DECODER_SILU},      {"swish", DECODER_SILU},
        {"gelu", DECODER_GELU},      {"gelu_new", DECODER_GELU},
        {"gelu_fast", DECODER_GELU}, {"gelu_pytorch_tanh", DECODER_GELU},
    };
    const char *name = hf_text(keys, "hidden_activation"); /* Gemma's: what counts of its two */
    const char *key = name ? "hidden_activation" : "hidden_act";
    name = name ? name : hf_text(keys, key);
    if (!name)
        return;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i].name, name) == 0) {
            shape->activation = NAMES[i].activation;
            return;
        }
    hf_refuse(keys, ERR_UNSUPPORTED, key, "which is not counted: silu and gelu are");
}

static void read_sizes(struct hf_keys *keys, struct decoder_shape *shape)
{
    shape->layers = hf_size(keys, "num_hidden_layers", DECODER_MOST_LAYERS, 0);
    shape->embedding = hf_size(keys, "hidden_size", DECODER_LARGEST_SIZE, 0);
    shape->heads = hf_size(keys, "num_attention_heads", DECODER_MOST_HEADS, 0);
    shape->heads_kv = hf_size(keys, "num_key_value_heads", shape->heads, shape->heads);
    shape->head_size = hf_size_or_none(keys, "head_dim", DECODER_MOST_HEADS);
    shape->vocabulary = hf_size(keys, "vocab_size", UINT32_MAX, 0);
    shape->context = hf_size_or_none(keys, "max_position_embeddings", UINT32_MAX);
    shape->has_tied_head = hf_truth(keys, "tie_word_embeddings", shape->has_tied_head);
    if (shape->has_tied_head && shape->has_head_bias)
        hf_refuse(keys, ERR_UNSUPPORTED, "tie_word_embeddings",
                  "and a tied head that has a bias (Phi's) is not counted");
    if (shape->heads % shape->heads_kv)
        hf_refuse(keys, ERR_BAD_VALUE, "num_key_value_heads",
                  "which does not divide 'num_attention_heads'");
    if (!shape->head_size && shape->embedding % shape->heads)
        hf_refuse(keys, ERR_BAD_VALUE, "num_attention_heads",
                  "which does not divide 'hidden_size'");
}

/* Keys that some kinds have; where they are missing, the kind tells. */
static void read_biases(struct hf_keys *keys, struct decoder_shape *shape)
{
    if (!hf_truth(keys, "use_bias", true)) /* StarCoder 2 without its biases */
        shape->has_qkv_bias = shape->has_output_bias = shape->has_forward_bias = false;
    if (hf_truth(keys, "attention_bias", false))
        shape->has_qkv_bias = shape->has_output_bias = true;
    if (hf_truth(keys, "mlp_bias", false))
        shape->has_forward_bias = true;
    if (hf_truth(keys, "qk_layernorm", false)) /* some of Phi's kind */
        hf_refuse(keys, ERR_UNSUPPORTED, "qk_layernorm",
                  "and norms of queries and keys that have a bias are not counted");
}

/* Mixtral's key became that of all: transformers 5 writes it for Qwen's too. */
static const char *expert_key(const struct hf_keys *keys, bool is_mixtral)
{
    bool is_older = !is_mixtral && jv_is_null(jv_get(keys->json, "num_local_experts"));
    return is_older ? "num_experts" : "num_local_experts";
}

static void read_feed_forward(struct hf_keys *keys, struct decoder_shape *shape)
{
    bool is_mixtral = strcmp(shape->architecture, "mixtral") == 0;
    bool is_qwen = strcmp(shape->architecture, "qwen2_moe") == 0 ||
                   strcmp(shape->architecture, "qwen3_moe") == 0;
    uint64_t width = hf_size(keys, "intermediate_size", DECODER_LARGEST_SIZE, 0);
    *(is_mixtral ? &shape->expert_feed_forward : &shape->feed_forward) = width;
    if (!is_mixtral && !is_qwen)
        return;
    shape->experts = hf_size(keys, expert_key(keys, is_mixtral), DECODER_MOST_EXPERTS, 0);
    shape->experts_used = hf_size(keys, "num_experts_per_tok", shape->experts, 0);
    if (is_mixtral)
        return;
    shape->expert_feed_forward = hf_size(keys, "moe_intermediate_size", DECODER_LARGEST_SIZE, 0);
    shape->shared_feed_forward =
        hf_size_or_none(keys, "shared_expert_intermediate_size", DECODER_LARGEST_SIZE);
    shape->expert_period = hf_size(keys, "decoder_sparse_step", DECODER_MOST_LAYERS, 1);
    if (jv_count(jv_get(keys->json, "mlp_only_layers")))
        hf_refuse(keys, ERR_UNSUPPORTED, "mlp_only_layers",
                  "and layers that are dense out of turn are not counted");
}

/* ---- windows ---- */

static void read_window(struct hf_keys *keys, struct decoder_shape *shape)
{
    bool is_used = hf_truth(keys, "use_sliding_window", true);
    uint64_t window = hf_size_or_none(keys, "sliding_window", UINT32_MAX);
    shape->window = is_used ? window : 0;
    if (shape->window_period)
        shape->window_period =
            hf_size(keys, "sliding_window_pattern", DECODER_MOST_LAYERS, shape->window_period);
}

/* Newer files tell each layer; Qwen's older ones from which layer on windows are. */
static void place_windows(struct hf_keys *keys, const struct decoder_shape *shape,
                          struct decoder *decoder)
{
    const struct jv *types = jv_get(keys->json, "layer_types");
    uint64_t whole = hf_size_or_none(keys, "max_window_layers", UINT32_MAX);
    for (size_t i = 0; i < decoder->layer_count && i < whole && !jv_is_array(types); i++)
        decoder->layers[i].window = 0;
    if (!jv_is_array(types))
        return;
    if (jv_count(types) != decoder->layer_count) {
        hf_refuse(keys, ERR_BAD_VALUE, "layer_types", "which is not one for each layer");
        return;
    }
    size_t number = 0;
    for (const struct jv *type = jv_first(types); type; type = jv_next(type), number++) {
        const char *name = jv_text(type);
        bool is_whole = name && strcmp(name, "full_attention") == 0;
        if (!is_whole && (!name || strcmp(name, "sliding_attention") != 0)) {
            hf_refuse(keys, ERR_UNSUPPORTED, "layer_types",
                      "of which full_attention and sliding_attention are known");
            return;
        }
        decoder->layers[number].window = is_whole ? 0 : shape->window;
    }
}

/* ---- quantisation ---- */

/* Bits of a number, with a scale and a zero point for each group. */
static double bits_in_groups(const struct jv *config)
{
    int64_t bits = 0, group = 0;
    if (!jv_integer(jv_get(config, "bits"), &bits) || bits < 1 || bits > 16)
        return 0;
    if (!jv_integer(jv_get(config, "group_size"), &group) || group < 1)
        return (double)bits;
    return (double)bits + (16 + (double)bits) / (double)group;
}

static double quantised_bits(const struct jv *config)
{
    const char *method = jv_text(jv_get(config, "quant_method"));
    if (!method)
        return 0;
    if (strcmp(method, "gptq") == 0 || strcmp(method, "awq") == 0)
        return bits_in_groups(config);
    if (strcmp(method, "fp8") == 0)
        return 8;
    if (strcmp(method, "bitsandbytes") == 0)
        return jv_truth(jv_get(config, "load_in_4bit"), false)   ? 4.5 /* 32 bits for each 64 */
               : jv_truth(jv_get(config, "load_in_8bit"), false) ? 8
                                                                 : 0;
    return 0;
}

static void read_quantisation(struct hf_keys *keys, struct decoder_shape *shape)
{
    const struct jv *config = jv_get(keys->json, "quantization_config");
    if (jv_is_null(config))
        return;
    shape->matrix_bits = quantised_bits(config);
    if (shape->matrix_bits <= 0)
        log_warn("%s: 'quantization_config' is of a kind that is not known: its weights are "
                 "counted as if they were not quantised",
                 keys->file);
}

void hf_decoder_read(struct hf_keys *keys, struct decoder_shape *shape, struct decoder *out)
{
    read_sizes(keys, shape);
    read_activation(keys, shape);
    read_biases(keys, shape);
    read_feed_forward(keys, shape);
    read_window(keys, shape);
    read_quantisation(keys, shape);
    if (!keys->err)
        keys->err = decoder_of_shape(shape, out, keys->why);
    if (keys->err)
        return;
    place_windows(keys, shape, out);
    if (keys->err)
        decoder_release(out);
}
