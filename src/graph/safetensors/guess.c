#include "graph/safetensors/guess.h"

#include <stdarg.h>
#include <stdio.h>

struct guessing {
    const struct safetensors *tensors;
    const char *prefix; /* "model." */
};

/* ---- tensors by name ---- */

static const struct safetensors_tensor *find(const struct guessing *guessing, const char *format,
                                             ...) PRINTF_LIKE(2, 3);

static const struct safetensors_tensor *find(const struct guessing *guessing, const char *format,
                                             ...)
{
    char name[160];
    va_list arguments;
    int used = snprintf(name, sizeof name, "%s", guessing->prefix);
    va_start(arguments, format);
    vsnprintf(name + used, sizeof name - (size_t)used, format, arguments);
    va_end(arguments);
    return safetensors_find(guessing->tensors, name);
}

/* Rows (outputs) of a matrix as PyTorch has it, or the numbers of a vector; 0 without. */
static uint64_t rows(const struct safetensors_tensor *tensor)
{
    return tensor && tensor->rank ? tensor->dims[0] : 0;
}

static uint64_t columns(const struct safetensors_tensor *tensor)
{
    return tensor && tensor->rank == 2 ? tensor->dims[1] : 0;
}

static bool find_prefix(struct guessing *guessing)
{
    static const char *const PREFIXES[] = {"model.", "", "language_model.model.",
                                           "model.language_model."};
    for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; i++) {
        guessing->prefix = PREFIXES[i];
        if (find(guessing, "embed_tokens.weight"))
            return true;
    }
    return false;
}

/* ---- the parts of the first layer ---- */

/* What heads have mostly; scores cost the same whatever it is, only the softmax does not. */
static uint64_t head_size(uint64_t embedding, uint64_t query, uint64_t key)
{
    uint64_t size = embedding <= 2048 ? 64 : 128;
    while (size > 1 && (query % size || key % size))
        size /= 2;
    return size;
}

static bool guess_attention(const struct guessing *guessing, struct decoder_shape *out)
{
    uint64_t query = columns(find(guessing, "layers.0.self_attn.o_proj.weight"));
    uint64_t key = rows(find(guessing, "layers.0.self_attn.k_proj.weight"));
    uint64_t all = rows(find(guessing, "layers.0.self_attn.qkv_proj.weight"));
    uint64_t normed = rows(find(guessing, "layers.0.self_attn.q_norm.weight"));
    out->has_fused_qkv = all > query;
    if (out->has_fused_qkv)
        key = (all - query) / 2;
    if (!query || !key || key > query)
        return false;
    out->head_norms = !normed           ? DECODER_NO_HEAD_NORMS
                      : normed == query ? DECODER_NORMS_OF_ALL
                                        : DECODER_NORMS_PER_HEAD;
    out->head_size =
        out->head_norms == DECODER_NORMS_PER_HEAD ? normed : head_size(out->embedding, query, key);
    if (query % out->head_size || key % out->head_size)
        return false;
    out->heads = query / out->head_size;
    out->heads_kv = key / out->head_size;
    out->has_qkv_bias = find(guessing, "layers.0.self_attn.q_proj.bias");
    out->has_output_bias = find(guessing, "layers.0.self_attn.o_proj.bias");
    return true;
}

static void guess_experts(const struct guessing *guessing, struct decoder_shape *out)
{
    const struct safetensors_tensor *mixtral =
        find(guessing, "layers.0.block_sparse_moe.gate.weight");
    out->experts = rows(mixtral ? mixtral : find(guessing, "layers.0.mlp.gate.weight"));
    if (!out->experts)
        return;
    out->expert_feed_forward =
        mixtral ? rows(find(guessing, "layers.0.block_sparse_moe.experts.0.w1.weight"))
                : rows(find(guessing, "layers.0.mlp.experts.0.up_proj.weight"));
    out->shared_feed_forward = rows(find(guessing, "layers.0.mlp.shared_expert.up_proj.weight"));
    out->experts_used = out->experts <= 16 ? 2 : 8; /* as Mixtral, as Qwen */
    if (out->experts_used > out->experts)
        out->experts_used = out->experts;
}

static void guess_feed_forward(const struct guessing *guessing, struct decoder_shape *out)
{
    uint64_t fused = rows(find(guessing, "layers.0.mlp.gate_up_proj.weight"));
    out->feed_forward = fused ? fused / 2 : rows(find(guessing, "layers.0.mlp.up_proj.weight"));
    out->has_fused_gate = fused;
    out->lacks_gate =
        out->feed_forward && !fused && !find(guessing, "layers.0.mlp.gate_proj.weight");
    out->has_forward_bias = find(guessing, "layers.0.mlp.down_proj.bias");
}

static void guess_norms(const struct guessing *guessing, struct decoder_shape *out)
{
    if (!find(guessing, "layers.0.input_layernorm.weight"))
        out->norms = DECODER_NORMS_AFTER;
    else if (find(guessing, "layers.0.pre_feedforward_layernorm.weight"))
        out->norms = DECODER_NORMS_AROUND;
    out->norms_have_mean = find(guessing, "layers.0.input_layernorm.bias");
}

bool safetensors_guess(const struct safetensors *tensors, struct decoder_shape *out)
{
    struct guessing guessing = {.tensors = tensors};
    *out = (struct decoder_shape){.architecture = "guessed"};
    if (!find_prefix(&guessing))
        return false;
    const struct safetensors_tensor *table = find(&guessing, "embed_tokens.weight");
    out->vocabulary = rows(table);
    out->embedding = columns(table);
    while (out->layers <= DECODER_MOST_LAYERS &&
           find(&guessing, "layers.%llu.self_attn.o_proj.weight", (unsigned long long)out->layers))
        out->layers++;
    out->has_tied_head = !safetensors_find(tensors, "lm_head.weight") &&
                         !safetensors_find(tensors, "language_model.lm_head.weight");
    if (!guess_attention(&guessing, out))
        return false;
    guess_feed_forward(&guessing, out);
    guess_experts(&guessing, out);
    guess_norms(&guessing, out);
    return true;
}
