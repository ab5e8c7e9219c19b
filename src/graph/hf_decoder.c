/* A decoder from the keys of its config.json: the fields that its kind (decoder_kinds.def) does not fix. */
#include <string.h>

#include "core/jv.h"
#include "core/log.h"
#include "core/text.h"
#include "graph/decoder_shape.h"
#include "graph/hf_keys.h"

/* ---- sizes ---- */

static bool is_kind(const struct decoder_shape *shape, const char *kind)
{
    return str_equal(shape->architecture, kind);
}

static void read_activation(struct hf_keys *keys, struct decoder_shape *shape)
{
    /* Gemma has two; the first takes precedence. */
    static const char NAMES[] = "hidden_activation|hidden_act|activation_function|activation";
    enum graph_op op = hf_keys_activation(keys, NAMES, decoder_activation_op(shape->activation));
    for (enum decoder_activation i = DECODER_SILU; i <= DECODER_RELU2; i++)
        if (decoder_activation_op(i) == op) {
            shape->activation = i;
            return;
        }
    hf_keys_reject(keys, ERR_UNSUPPORTED, NAMES,
                   "not supported, only silu, gelu, relu and relu2 are");
}

static void read_sizes(struct hf_keys *keys, struct decoder_shape *shape)
{
    static const char HEADS[] = "num_attention_heads|n_head", KV_HEADS[] = "num_key_value_heads";
    shape->layers = hf_keys_size(keys, "num_hidden_layers|n_layer", DECODER_MAX_LAYERS, 0);
    shape->embedding = hf_keys_size(keys, "hidden_size|n_embed", DECODER_MAX_SIZE, 0);
    shape->heads = hf_keys_size(keys, HEADS, DECODER_MAX_HEADS, shape->heads);
    shape->heads_kv = hf_keys_size(keys, KV_HEADS, shape->heads,
                                   shape->heads_kv ? shape->heads_kv : shape->heads);
    uint64_t head_size = hf_keys_optional(keys, "head_dim", DECODER_MAX_HEADS);
    shape->head_size = head_size ? head_size : shape->head_size;
    shape->vocabulary = hf_keys_size(keys, "vocab_size", UINT32_MAX, shape->vocabulary);
    shape->context = hf_keys_optional(keys, "max_position_embeddings", UINT32_MAX);
    shape->has_tied_embeddings =
        hf_keys_bool(keys, "tie_word_embeddings", shape->has_tied_embeddings);
    if (shape->heads % shape->heads_kv)
        hf_keys_reject(keys, ERR_BAD_VALUE, KV_HEADS, "does not divide 'num_attention_heads'");
    if (!shape->head_size && shape->embedding % shape->heads)
        hf_keys_reject(keys, ERR_BAD_VALUE, HEADS, "does not divide 'hidden_size'");
}

/* Some kinds have these keys; for the others the kind determines them. */
static void read_biases(struct hf_keys *keys, struct decoder_shape *shape)
{
    /* GLM 4's attention bias applies to Q, K and V only; GPT-NeoX's is on by default. */
    bool is_glm = is_kind(shape, "glm4") || is_kind(shape, "glm4_moe");
    bool has_bias = shape->has_qkv_bias && shape->has_output_bias;
    bool is_given = hf_keys_get(keys, "attention_bias");
    if (!hf_keys_bool(keys, "use_bias|enable_bias", true)) /* StarCoder 2, OPT */
        shape->has_qkv_bias = shape->has_output_bias = shape->has_mlp_bias = false;
    shape->has_qkv_bias = hf_keys_bool(keys, "qkv_bias", shape->has_qkv_bias); /* Qwen 2 MoE */
    if (hf_keys_bool(keys, "attention_bias", is_kind(shape, "glm4"))) {
        shape->has_qkv_bias = true;
        shape->has_output_bias = !is_glm;
    } else if (is_given && has_bias && (is_kind(shape, "gpt_neox") || is_kind(shape, "gpt_oss"))) {
        shape->has_qkv_bias = shape->has_output_bias = false;
    }
    if (hf_keys_bool(keys, "mlp_bias", false))
        shape->has_mlp_bias = true;
    if (hf_keys_bool(keys, "lm_head_bias", false))
        shape->has_head_bias = true;
    if (hf_keys_bool(keys, "qk_layernorm", false)) /* some Phi models */
        hf_keys_reject(keys, ERR_UNSUPPORTED, "qk_layernorm",
                       "QK norms with a bias are not supported");
    if (is_kind(shape, "llama4_text"))
        (void)hf_keys_bool(keys, "use_qk_norm", true); /* without weights */
    else if (is_kind(shape, "glm4_moe"))
        shape->qk_norm = hf_keys_bool(keys, "use_qk_norm", false) ? DECODER_QK_NORM_PER_HEAD
                                                                  : DECODER_NO_QK_NORM;
    else if (hf_keys_bool(keys, "use_qk_norm|attn_output_gate", false))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "use_qk_norm|attn_output_gate",
                       "not supported with this model_type");
    if (shape->has_tied_embeddings && shape->has_head_bias)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "tie_word_embeddings",
                       "tied embeddings with a bias of the head are not supported");
}

/* ---- feed-forward and experts ---- */

/* Mixtral's key became the general one: transformers 5 writes it for Qwen too. */
static const char EXPERTS[] = "num_local_experts|num_experts|n_routed_experts";

/* Llama 4 lists the layers with experts, or gives a period. */
static void read_llama4(struct hf_keys *keys, struct decoder_shape *shape)
{
    const struct jv *layers = hf_keys_get(keys, "moe_layers");
    shape->feed_forward = hf_keys_size(keys, "intermediate_size_mlp", DECODER_MAX_SIZE, 16384);
    shape->shared_feed_forward = shape->expert_feed_forward;
    shape->expert_period = hf_keys_size(keys, "interleave_moe_layer_step", DECODER_MAX_LAYERS, 1);
    if (!jv_is_array(layers))
        return;
    if (!jv_count(layers)) {
        shape->experts = shape->experts_used = 0;
        return;
    }
    int64_t expected = (int64_t)shape->expert_period - 1, number = 0;
    for (const struct jv *one = jv_first(layers); one; one = jv_next(one)) {
        if (!jv_integer(one, &number) || number != expected)
            hf_keys_reject(keys, ERR_UNSUPPORTED, "moe_layers",
                           "layers with experts out of the regular pattern are not supported");
        expected += (int64_t)shape->expert_period;
    }
}

static void read_experts_beside(struct hf_keys *keys, struct decoder_shape *shape)
{
    uint64_t shared = hf_keys_optional(keys, "n_shared_experts", DECODER_MAX_EXPERTS);
    shape->expert_feed_forward = hf_keys_size(keys, "moe_intermediate_size", DECODER_MAX_SIZE, 0);
    shape->shared_feed_forward =
        shared ? shared * shape->expert_feed_forward
               : hf_keys_optional(keys, "shared_expert_intermediate_size", DECODER_MAX_SIZE);
    shape->expert_period =
        hf_keys_size(keys, "decoder_sparse_step|moe_layer_freq", DECODER_MAX_LAYERS, 1);
    if (hf_keys_get(keys, "first_k_dense_replace"))
        shape->dense_layers = hf_keys_optional(keys, "first_k_dense_replace", DECODER_MAX_LAYERS);
    if (jv_count(hf_keys_get(keys, "mlp_only_layers")))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "mlp_only_layers",
                       "dense layers out of the regular pattern are not supported");
}

static void read_feed_forward(struct hf_keys *keys, struct decoder_shape *shape)
{
    static const char WIDTH[] = "intermediate_size|ffn_dim|ffn_hidden_size|n_inner";
    bool is_optional = is_kind(shape, "bloom") || is_kind(shape, "falcon");
    uint64_t width = hf_keys_size(
        keys, WIDTH, DECODER_MAX_SIZE,
        is_optional && 4 * shape->embedding <= DECODER_MAX_SIZE ? 4 * shape->embedding : 0);
    bool is_dense = shape->expert_keys == DECODER_DENSE;
    bool is_alone = !is_dense && shape->expert_keys != DECODER_EXPERTS_MOE_SIZE;
    *(is_alone ? &shape->expert_feed_forward : &shape->feed_forward) = width;
    if (is_dense)
        return;
    shape->experts = hf_keys_size(keys, EXPERTS, DECODER_MAX_EXPERTS, 0);
    shape->experts_used =
        hf_keys_size(keys, "num_experts_per_tok|experts_per_token", shape->experts, 0);
    if (shape->expert_keys == DECODER_EXPERTS_MOE_SIZE)
        read_experts_beside(keys, shape);
    else if (shape->expert_keys == DECODER_EXPERTS_LLAMA4)
        read_llama4(keys, shape);
}

/* ---- kinds with their own keys ---- */

static void read_latent_attention(struct hf_keys *keys, struct decoder_shape *shape)
{
    uint64_t rotated =
        hf_keys_size(keys, "qk_rope_head_dim", DECODER_MAX_HEADS / 2, shape->rotated);
    uint64_t plain = hf_keys_size(keys, "qk_nope_head_dim", DECODER_MAX_HEADS / 2, 128);
    shape->latent = hf_keys_size(keys, "kv_lora_rank", DECODER_MAX_SIZE, shape->latent);
    shape->query_rank = hf_keys_optional(keys, "q_lora_rank", DECODER_MAX_SIZE);
    shape->value_size = hf_keys_size(keys, "v_head_dim", DECODER_MAX_HEADS, shape->value_size);
    shape->rotated = rotated;
    shape->head_size = plain + rotated; /* head_dim of such a file is that of the rotated part */
    shape->heads_kv = shape->heads;
}

static void read_opt(struct hf_keys *keys, struct decoder_shape *shape)
{
    enum { BEFORE_FIRST = 2 }; /* rows for padding, used by no token */
    uint64_t rank = hf_keys_optional(keys, "word_embed_proj_dim", DECODER_MAX_SIZE);
    shape->context = shape->context ? shape->context : 2048;
    shape->positions = shape->context + BEFORE_FIRST;
    shape->embedding_rank = rank == shape->embedding ? 0 : rank;
    if (!hf_keys_bool(keys, "do_layer_norm_before", true)) {
        shape->norms = DECODER_NORM_AFTER_ADD;
        shape->has_no_final_norm = true;
    }
    if (hf_keys_bool(keys, "_remove_final_layer_norm", false))
        shape->has_no_final_norm = true;
    if (!hf_keys_bool(keys, "layer_norm_elementwise_affine", true))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "layer_norm_elementwise_affine",
                       "norms without weights are not supported");
}

static void read_falcon(struct hf_keys *keys, struct decoder_shape *shape)
{
    bool is_new = hf_keys_bool(keys, "new_decoder_architecture", false);
    bool is_single = hf_keys_bool(keys, "multi_query", true);
    bool is_parallel = hf_keys_bool(keys, "parallel_attn", true);
    uint64_t norms = hf_keys_size(keys, "num_ln_in_parallel_attn", 2, is_new ? 2 : 1);
    uint64_t heads_kv = hf_keys_size(keys, "num_kv_heads|n_head_kv", shape->heads, shape->heads);
    shape->heads_kv = is_single ? 1 : shape->heads;
    shape->norms = is_parallel ? DECODER_PARALLEL : DECODER_PRE_NORM;
    if (is_new) {
        shape->heads_kv = heads_kv;
        shape->norms = norms == 2 ? DECODER_PARALLEL_NORMS : DECODER_PARALLEL;
    }
    shape->has_unfused_attention = !is_new && is_single;
    shape->has_qkv_bias = shape->has_output_bias = shape->has_mlp_bias =
        hf_keys_bool(keys, "bias", false);
    shape->has_no_rotation = hf_keys_bool(keys, "alibi", false);
    if (shape->heads % shape->heads_kv)
        hf_keys_reject(keys, ERR_BAD_VALUE, "num_kv_heads|n_head_kv",
                       "does not divide 'num_attention_heads'");
}

static void read_kind(struct hf_keys *keys, struct decoder_shape *shape)
{
    if (shape->latent)
        read_latent_attention(keys, shape);
    if (is_kind(shape, "opt"))
        read_opt(keys, shape);
    if (is_kind(shape, "falcon"))
        read_falcon(keys, shape);
    if (is_kind(shape, "falcon_h1"))
        hf_mixer_read(keys, shape);
    if (is_kind(shape, "gpt_neox") && !hf_keys_bool(keys, "use_parallel_residual", true))
        shape->norms = DECODER_PRE_NORM;
}

/* ---- heads ---- */

static void read_head(struct hf_keys *keys, struct decoder_shape *shape)
{
    static const struct {
        const char *purpose;
        enum decoder_head head;
    } HEADS[] = {
        {"", DECODER_HEAD_LOGITS},
        {"ForCausalLM", DECODER_HEAD_LOGITS},
        {"LMHeadModel", DECODER_HEAD_LOGITS},
        {"ForConditionalGeneration", DECODER_HEAD_LOGITS}, /* multimodal models */
        {"Model", DECODER_HEAD_NONE},
        {"ForSequenceClassification", DECODER_HEAD_CLASSES},
        {"ForTokenClassification", DECODER_HEAD_TOKENS},
        {"ForQuestionAnswering", DECODER_HEAD_TOKENS},
    };
    const char *purpose = hf_keys_purpose(keys);
    for (size_t i = 0; i < COUNT_OF(HEADS); i++)
        if (str_equal(HEADS[i].purpose, purpose)) {
            shape->head = HEADS[i].head;
            if (shape->head >= DECODER_HEAD_CLASSES)
                shape->classes = str_equal(purpose, "ForQuestionAnswering")
                                     ? 2
                                     : (uint64_t)hf_keys_labels(keys, 2);
            return;
        }
    hf_keys_reject(keys, ERR_UNSUPPORTED, "architectures",
                   "not supported with this model_type, only ...ForCausalLM, ...Model, "
                   "...ForSequenceClassification, ...ForTokenClassification and "
                   "...ForQuestionAnswering are");
}

/* ---- sliding windows and rotary embeddings, layer by layer ---- */

static void read_window(struct hf_keys *keys, struct decoder_shape *shape)
{
    bool is_used = hf_keys_bool(keys, "use_sliding_window", true);
    uint64_t window = shape->is_chunked ? hf_keys_optional(keys, "attention_chunk_size", UINT32_MAX)
                                        : hf_keys_optional(keys, "sliding_window", UINT32_MAX);
    bool is_given = hf_keys_get(keys, "sliding_window") || shape->is_chunked ||
                    jv_get(keys->json, "sliding_window"); /* null: none */
    window = is_given ? window : shape->window;
    shape->window = is_used ? window : 0;
    if (shape->window_period)
        shape->window_period = hf_keys_size(keys, "sliding_window_pattern|_sliding_window_pattern",
                                            DECODER_MAX_LAYERS, shape->window_period);
    if (shape->unrotated_period)
        shape->unrotated_period = hf_keys_size(keys, "no_rope_layer_interval", DECODER_MAX_LAYERS,
                                               shape->unrotated_period);
}

static void place_window(const struct decoder_shape *shape, struct decoder_layer *layer,
                         bool is_full)
{
    layer->window = is_full ? 0 : shape->window;
    layer->is_chunked = shape->is_chunked && !is_full;
}

/* Newer files have a list with one entry per layer; older Qwen files the first layer with a window. */
static void place_windows(struct hf_keys *keys, const struct decoder_shape *shape,
                          struct decoder *decoder)
{
    const struct jv *types = hf_keys_get(keys, "layer_types");
    const char *windowed = shape->is_chunked ? "chunked_attention" : "sliding_attention";
    uint64_t full = hf_keys_optional(keys, "max_window_layers", UINT32_MAX);
    for (size_t i = 0; i < decoder->layer_count && i < full && !jv_is_array(types); i++)
        decoder->layers[i].window = 0;
    if (!jv_is_array(types))
        return;
    if (jv_count(types) != decoder->layer_count) {
        hf_keys_reject(keys, ERR_BAD_VALUE, "layer_types", "must have one entry per layer");
        return;
    }
    size_t number = 0;
    for (const struct jv *type = jv_first(types); type; type = jv_next(type), number++) {
        const char *name = jv_text(type);
        bool is_full = name && str_equal(name, "full_attention");
        if (!is_full && (!name || !str_equal(name, windowed))) {
            hf_keys_reject(keys, ERR_UNSUPPORTED, "layer_types",
                           shape->is_chunked
                               ? "only full_attention and chunked_attention are supported"
                               : "only full_attention and sliding_attention are supported");
            return;
        }
        place_window(shape, &decoder->layers[number], is_full);
    }
}

/* One entry per layer, 1: it has a rotary embedding.  In Llama 4 those are the layers with chunked attention. */
static void place_rotations(struct hf_keys *keys, const struct decoder_shape *shape,
                            struct decoder *decoder)
{
    const struct jv *list = hf_keys_get(keys, "no_rope_layers");
    if (!jv_is_array(list) || !jv_count(list))
        return;
    if (jv_count(list) != decoder->layer_count) {
        hf_keys_reject(keys, ERR_BAD_VALUE, "no_rope_layers", "must have one entry per layer");
        return;
    }
    size_t number = 0;
    for (const struct jv *one = jv_first(list); one; one = jv_next(one), number++) {
        int64_t is_rotated = 0;
        if (!jv_integer(one, &is_rotated))
            hf_keys_reject(keys, ERR_BAD_VALUE, "no_rope_layers", "must have a 0 or 1 per layer");
        decoder->layers[number].has_no_rotation = !is_rotated;
        if (shape->is_chunked)
            place_window(shape, &decoder->layers[number], !is_rotated);
    }
}

/* ---- quantization ---- */

/* How many elements share a scale: `group_size`, or the product of a list such as [128, 128]; 0: a whole row or more. */
static double elements_per_scale(const struct jv *size)
{
    double product = jv_is_array(size) ? 1 : 0;
    int64_t one = 0;
    if (jv_integer(size, &one))
        return one > 0 ? (double)one : 0;
    for (const struct jv *side = jv_first(size); product > 0 && side; side = jv_next(side))
        product = jv_integer(side, &one) && one > 0 ? product * (double)one : 0;
    return product;
}

static double bits_with_scale(double bits, double scale_bits, double elements)
{
    return elements > 0 ? bits + scale_bits / elements : bits;
}

/* GPTQ and AWQ: weights alone, with a scale and a zero point per group. */
static void read_groups(const struct jv *config, struct decoder_shape *shape)
{
    int64_t bits = 0;
    if (jv_integer(jv_get(config, "bits"), &bits) && bits >= 1 && bits <= 16)
        shape->matrix_bits = bits_with_scale((double)bits, 16 + (double)bits,
                                             elements_per_scale(jv_get(config, "group_size")));
}

/* Weights and activations in fp8: transformers' own (DeepSeek V3) and FBGEMM's. */
static void read_fp8(const struct jv *config, struct decoder_shape *shape)
{
    shape->matrix_bits =
        bits_with_scale(8, 32, elements_per_scale(jv_get(config, "weight_block_size")));
    shape->has_products = true;
    shape->products = PRECISION_FP8;
}

static void read_bitsandbytes(const struct jv *config, struct decoder_shape *shape)
{
    if (jv_bool(jv_get(config, "load_in_4bit"), false))
        shape->matrix_bits = bits_with_scale(4, 32, 64);
    else if (jv_bool(jv_get(config, "load_in_8bit"), false))
        shape->matrix_bits = 8;
}

static void read_mxfp4(const struct jv *config, struct decoder_shape *shape)
{
    (void)config;
    shape->matrix_bits = shape->experts ? bits_with_scale(4, 8, 32) : 0;
    shape->quantizes_experts_only = true;
}

/* One of compressed-tensors' config_groups.  Without input_activations weights alone are quantized. */
static bool read_scheme(const struct jv *group, struct decoder_shape *shape)
{
    const struct jv *weights = jv_get(group, "weights");
    const struct jv *inputs = jv_get(group, "input_activations");
    const char *type = jv_get_text(inputs, "type");
    int64_t bits = 0, input_bits = 0;
    bool is_symmetric = jv_bool(jv_get(weights, "symmetric"), true);
    if (!jv_integer(jv_get(weights, "num_bits"), &bits) || (bits != 4 && bits != 8))
        return false;
    shape->matrix_bits = bits_with_scale((double)bits, 16 + (is_symmetric ? 0 : (double)bits),
                                         elements_per_scale(jv_get(weights, "group_size")));
    shape->has_products = jv_is_object(inputs);
    if (!shape->has_products)
        return true;
    shape->products = type && str_equal(type, "float") ? PRECISION_FP8 : PRECISION_INT8;
    return jv_integer(jv_get(inputs, "num_bits"), &input_bits) && input_bits == 8;
}

/* vLLM's usual format: W8A8 in int8 or fp8, W4A16, W4A8, W8A16. */
static void read_compressed(struct hf_keys *keys, const struct jv *config,
                            struct decoder_shape *shape)
{
    const struct jv *groups = jv_get(config, "config_groups");
    bool is_read = jv_is_object(groups) && jv_count(groups) > 0;
    for (const struct jv *group = jv_first_member(groups); group && is_read;
         group = jv_next(group)) {
        struct decoder_shape before = *shape;
        is_read = read_scheme(group, shape) && (group == jv_first_member(groups) ||
                                                (before.matrix_bits == shape->matrix_bits &&
                                                 before.has_products == shape->has_products &&
                                                 before.products == shape->products));
    }
    if (!is_read)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "quantization_config",
                       "of compressed-tensors, only one scheme with weights of 4 or 8 bits and "
                       "activations of 8 or 16 bits is supported");
}

static void read_quantization(struct hf_keys *keys, struct decoder_shape *shape)
{
    static const struct {
        const char *method;
        void (*read)(const struct jv *config, struct decoder_shape *shape);
    } METHODS[] = {
        {"gptq", read_groups},    {"awq", read_groups},  {"fp8", read_fp8},
        {"fbgemm_fp8", read_fp8}, {"mxfp4", read_mxfp4}, {"bitsandbytes", read_bitsandbytes},
    };
    const struct jv *config = hf_keys_get(keys, "quantization_config");
    const char *method = jv_get_text(config, "quant_method");
    if (!config)
        return;
    if (method && str_equal(method, "compressed-tensors")) {
        read_compressed(keys, config, shape);
        return;
    }
    for (size_t i = 0; method && i < COUNT_OF(METHODS); i++)
        if (str_equal(METHODS[i].method, method))
            METHODS[i].read(config, shape);
    if (shape->quantizes_experts_only && !shape->experts)
        log_warn("%s: mxfp4 quantizes experts, and this model has none: its weights are counted as "
                 "unquantized",
                 keys->file);
    else if (shape->matrix_bits <= 0)
        log_warn("%s: unknown quantization_config: its weights are counted as if they were not "
                 "quantized",
                 keys->file);
}

/* ---- the decoder ---- */

void hf_decoder_read(struct hf_keys *keys, struct decoder_shape *shape, struct decoder *out)
{
    read_sizes(keys, shape);
    read_activation(keys, shape);
    read_biases(keys, shape);
    read_feed_forward(keys, shape);
    read_kind(keys, shape);
    read_head(keys, shape);
    read_window(keys, shape);
    read_quantization(keys, shape);
    if (!keys->err)
        keys->err = decoder_from_shape(shape, out, keys->why);
    if (keys->err)
        return;
    place_rotations(keys, shape, out);
    place_windows(keys, shape, out);
    if (keys->err)
        decoder_release(out);
}
