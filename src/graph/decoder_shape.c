/* Lists every tensor of a decoder of given sizes, layer by layer, so that its parameter count is exact. */
#include "graph/decoder_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graph/gguf.h"

enum { BF16 = 30 }; /* GGUF type number */

/* Far above any model; sums fit into 64 bits and are exact as doubles. */
static const double MAX_PARAMETERS = 4e15;

static const struct decoder_shape KINDS[] = {
#define DECODER_KIND(type, ...) {.architecture = type, __VA_ARGS__},
#include "graph/decoder_kinds.def"
#undef DECODER_KIND
};

size_t decoder_kind_count(void)
{
    return COUNT_OF(KINDS);
}

const char *decoder_kind_at(size_t index)
{
    return KINDS[index].architecture;
}

bool decoder_shape_for_kind(const char *kind, struct decoder_shape *out)
{
    for (size_t i = 0; i < decoder_kind_count(); i++)
        if (str_equal(KINDS[i].architecture, kind)) {
            *out = KINDS[i];
            return true;
        }
    return false;
}

struct shaping {
    const struct decoder_shape *shape;
    struct decoder *decoder;
    int layer; /* or DECODER_OUTSIDE */
};

/* ---- tensors ---- */

static void add_tensor(const struct shaping *shaping, enum decoder_tensor tensor, bool is_bias,
                       uint64_t columns, uint64_t rows, uint64_t matrices)
{
    struct decoder_entry entry = {
        .tensor = tensor,
        .is_bias = is_bias,
        .columns = columns,
        .rows = rows,
        .matrices = matrices,
        .bytes = 2 * columns * rows * matrices,
        .type = tensor_type_numbered(BF16),
    };
    decoder_add_tensor(shaping->decoder, shaping->layer, &entry);
}

static void add_norm(const struct shaping *shaping, enum decoder_tensor tensor, uint64_t elements)
{
    add_tensor(shaping, tensor, false, elements, 1, 1);
    if (shaping->shape->has_layer_norm && !shaping->shape->has_no_norm_bias)
        add_tensor(shaping, tensor, true, elements, 1, 1);
}

/* Only the matrices of layers are quantized. */
static void add_matrices(const struct shaping *shaping, enum decoder_tensor tensor,
                         uint64_t columns, uint64_t rows, uint64_t count)
{
    double bits = shaping->shape->matrix_bits;
    bool is_left_out = shaping->shape->quantizes_experts_only && count == 1;
    if (bits <= 0 || shaping->layer < 0 || is_left_out) {
        add_tensor(shaping, tensor, false, columns, rows, count);
        return;
    }
    struct decoder_entry entry = {
        .tensor = tensor,
        .columns = columns,
        .rows = rows,
        .matrices = count,
        .bytes = (uint64_t)ceil((double)(columns * rows) * bits / 8) * count,
        .is_stored = true,
    };
    decoder_add_tensor(shaping->decoder, shaping->layer, &entry);
}

static void add_matrix(const struct shaping *shaping, enum decoder_tensor tensor, uint64_t columns,
                       uint64_t rows, bool has_bias)
{
    if (has_bias) /* first: the weight decides whether the tensor is stored in its own dtype */
        add_tensor(shaping, tensor, true, rows, 1, 1);
    add_matrices(shaping, tensor, columns, rows, 1);
}

/* ---- a layer ---- */

static void add_latent_attention(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    const struct decoder_layer *layer = &shaping->decoder->layers[shaping->layer];
    uint64_t embedding = shape->embedding, heads = layer->heads, query = heads * layer->key_size;
    uint64_t value = heads * layer->value_size;
    if (shape->query_rank) {
        add_matrix(shaping, DECODER_TENSOR_ATTN_Q_A, embedding, shape->query_rank,
                   shape->has_qkv_bias);
        add_norm(shaping, DECODER_TENSOR_ATTN_Q_A_NORM, shape->query_rank);
        add_matrix(shaping, DECODER_TENSOR_ATTN_Q_B, shape->query_rank, query, false);
    } else {
        add_matrix(shaping, DECODER_TENSOR_ATTN_Q, embedding, query, false);
    }
    add_matrix(shaping, DECODER_TENSOR_ATTN_KV_A, embedding, layer->latent + layer->rotated,
               shape->has_qkv_bias);
    add_norm(shaping, DECODER_TENSOR_ATTN_KV_A_NORM, layer->latent);
    add_matrix(shaping, DECODER_TENSOR_ATTN_K_B, layer->latent,
               heads * (layer->key_size - layer->rotated), false);
    add_matrix(shaping, DECODER_TENSOR_ATTN_V_B, layer->latent, value, false);
    add_matrix(shaping, DECODER_TENSOR_ATTN_OUTPUT, value, embedding, shape->has_output_bias);
}

static void add_attention(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    const struct decoder_layer *layer = &shaping->decoder->layers[shaping->layer];
    uint64_t query = layer->heads * layer->key_size, key = layer->heads_kv * layer->key_size;
    bool has_bias = shape->has_qkv_bias;
    if (shape->has_fused_qkv) {
        add_matrix(shaping, DECODER_TENSOR_ATTN_QKV, shape->embedding, query + 2 * key, has_bias);
    } else {
        add_matrix(shaping, DECODER_TENSOR_ATTN_Q, shape->embedding, query, has_bias);
        add_matrix(shaping, DECODER_TENSOR_ATTN_K, shape->embedding, key, has_bias);
        add_matrix(shaping, DECODER_TENSOR_ATTN_V, shape->embedding, key, has_bias);
    }
    add_matrix(shaping, DECODER_TENSOR_ATTN_OUTPUT, query, shape->embedding,
               shape->has_output_bias);
    if (shape->has_sinks)
        add_tensor(shaping, DECODER_TENSOR_ATTN_SINKS, false, layer->heads, 1, 1);
    if (shape->qk_norm == DECODER_NO_QK_NORM)
        return;
    bool is_all_heads = shape->qk_norm == DECODER_QK_NORM_ALL_HEADS;
    add_norm(shaping, DECODER_TENSOR_ATTN_Q_NORM, is_all_heads ? query : layer->key_size);
    add_norm(shaping, DECODER_TENSOR_ATTN_K_NORM, is_all_heads ? key : layer->key_size);
}

static void add_dense(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    uint64_t width = shape->feed_forward, embedding = shape->embedding;
    bool has_bias = shape->has_mlp_bias;
    if (!shape->has_no_gate && !shape->has_fused_gate)
        add_matrix(shaping, DECODER_TENSOR_FFN_GATE, embedding, width, has_bias);
    add_matrix(shaping, DECODER_TENSOR_FFN_UP, embedding, width << shape->has_fused_gate, has_bias);
    add_matrix(shaping, DECODER_TENSOR_FFN_DOWN, width, embedding, has_bias);
}

static void add_expert_matrices(const struct shaping *shaping, enum decoder_tensor tensor,
                                uint64_t columns, uint64_t rows)
{
    const struct decoder_shape *shape = shaping->shape;
    if (shape->has_expert_bias)
        add_tensor(shaping, tensor, true, shape->experts * rows, 1, 1);
    add_matrices(shaping, tensor, columns, rows, shape->experts);
}

static void add_experts(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    uint64_t width = shape->expert_feed_forward, shared = shape->shared_feed_forward;
    uint64_t embedding = shape->embedding;
    if (shape->has_expert_bias)
        add_tensor(shaping, DECODER_TENSOR_FFN_GATE_INP, true, shape->experts, 1, 1);
    add_tensor(shaping, DECODER_TENSOR_FFN_GATE_INP, false, embedding, shape->experts, 1);
    add_expert_matrices(shaping, DECODER_TENSOR_FFN_GATE_EXPS, embedding, width);
    add_expert_matrices(shaping, DECODER_TENSOR_FFN_UP_EXPS, embedding, width);
    add_expert_matrices(shaping, DECODER_TENSOR_FFN_DOWN_EXPS, width, embedding);
    if (!shared)
        return;
    if (!shape->has_shared_without_gate)
        add_tensor(shaping, DECODER_TENSOR_FFN_GATE_INP_SHEXP, false, embedding, 1, 1);
    add_matrix(shaping, DECODER_TENSOR_FFN_GATE_SHEXP, embedding, shared, false);
    add_matrix(shaping, DECODER_TENSOR_FFN_UP_SHEXP, embedding, shared, false);
    add_matrix(shaping, DECODER_TENSOR_FFN_DOWN_SHEXP, shared, embedding, false);
}

static void add_norms(const struct shaping *shaping)
{
    enum decoder_norm_placement norms = shaping->shape->norms;
    uint64_t embedding = shaping->shape->embedding;
    if (norms != DECODER_POST_NORM)
        add_norm(shaping, DECODER_TENSOR_ATTN_NORM, embedding);
    if (norms != DECODER_POST_NORM && norms != DECODER_PARALLEL)
        add_norm(shaping, DECODER_TENSOR_FFN_NORM, embedding);
    if (norms == DECODER_SANDWICH_NORM || norms == DECODER_POST_NORM) {
        add_norm(shaping, DECODER_TENSOR_POST_ATTENTION_NORM, embedding);
        add_norm(shaping, DECODER_TENSOR_POST_FFW_NORM, embedding);
    }
}

static void set_attention(const struct decoder_shape *shape, uint64_t number,
                          struct decoder_layer *layer)
{
    bool has_full_attention = shape->window_period > 1 && number % shape->window_period == 0;
    bool is_unrotated = shape->unrotated_period && number % shape->unrotated_period == 0;
    layer->heads = shape->heads;
    layer->heads_kv = shape->heads_kv;
    layer->key_size = shape->head_size ? shape->head_size : shape->embedding / shape->heads;
    layer->value_size = shape->latent ? shape->value_size : layer->key_size;
    layer->latent = shape->latent;
    layer->rotated = shape->latent ? shape->rotated : 0;
    layer->window = has_full_attention || (is_unrotated && shape->is_chunked) ? 0 : shape->window;
    layer->is_chunked = shape->is_chunked && layer->window;
    layer->has_no_rotation = shape->has_no_rotation || is_unrotated;
}

static void add_layer(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    struct decoder_layer *layer = &shaping->decoder->layers[shaping->layer];
    uint64_t number = (uint64_t)shaping->layer + 1;
    bool has_experts = shape->experts && number > shape->dense_layers &&
                       (shape->expert_period < 2 || number % shape->expert_period == 0);
    set_attention(shape, number, layer);
    layer->has_layer_norm = shape->has_layer_norm;
    layer->is_gated = !shape->has_no_gate;
    layer->is_fused = shape->has_fused_gate && !has_experts;
    layer->expert_feed_forward = has_experts ? shape->expert_feed_forward : 0;
    layer->feed_forward = has_experts ? shape->shared_feed_forward : shape->feed_forward;
    add_norms(shaping);
    if (shape->latent)
        add_latent_attention(shaping);
    else
        add_attention(shaping);
    if (has_experts)
        add_experts(shaping);
    else
        add_dense(shaping);
}

/* ---- the model ---- */

static void add_head(const struct shaping *shaping, uint64_t columns)
{
    const struct decoder_shape *shape = shaping->shape;
    if (shape->head == DECODER_HEAD_LOGITS && !shape->has_tied_embeddings)
        add_matrix(shaping, DECODER_TENSOR_OUTPUT, columns, shape->vocabulary,
                   shape->has_head_bias);
    else if (shape->head == DECODER_HEAD_CLASSES || shape->head == DECODER_HEAD_TOKENS)
        add_matrix(shaping, DECODER_TENSOR_OUTPUT, columns, shape->classes,
                   shape->head == DECODER_HEAD_TOKENS);
}

static void add_outside(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    uint64_t columns = shape->embedding_rank ? shape->embedding_rank : shape->embedding;
    add_matrix(shaping, DECODER_TENSOR_TOKEN_EMBD, columns, shape->vocabulary, false);
    if (shape->positions)
        add_tensor(shaping, DECODER_TENSOR_POSITION_EMBD, false, shape->embedding, shape->positions,
                   1);
    if (columns != shape->embedding) {
        add_matrix(shaping, DECODER_TENSOR_PROJECT_IN, columns, shape->embedding, false);
        add_matrix(shaping, DECODER_TENSOR_PROJECT_OUT, shape->embedding, columns, false);
    }
    if (shape->has_embedding_norm)
        add_norm(shaping, DECODER_TENSOR_TOKEN_EMBD_NORM, shape->embedding);
    if (!shape->has_no_final_norm)
        add_norm(shaping, DECODER_TENSOR_OUTPUT_NORM, shape->embedding);
    add_head(shaping, columns);
}

/* An upper bound, without overflow. */
static double max_parameters(const struct decoder_shape *shape)
{
    double embedding = (double)shape->embedding;
    double head = shape->head_size ? (double)shape->head_size : embedding / (double)shape->heads;
    double widths = (double)shape->feed_forward + (double)shape->shared_feed_forward +
                    (double)shape->experts * (double)(shape->expert_feed_forward + 1);
    double inner = embedding + (double)shape->latent + (double)shape->query_rank + 1;
    double layer =
        inner * (3 * widths + 4 * ((double)shape->heads * (head + (double)shape->value_size) +
                                   (double)shape->rotated + 2));
    double rows = (double)shape->vocabulary + (double)shape->positions + (double)shape->classes;
    if (shape->mixer.heads)
        layer += (double)mamba2_mixer_parameters(&shape->mixer);
    return (double)shape->layers * layer +
           2 * (embedding + (double)shape->embedding_rank + 1) * (rows + embedding + 1);
}

static enum err check(const struct decoder_shape *shape, struct error *why)
{
    const struct {
        const char *what;
        uint64_t number, min, max;
    } SIZES[] = {
        {"number of layers", shape->layers, 1, DECODER_MAX_LAYERS},
        {"hidden size", shape->embedding, 1, DECODER_MAX_SIZE},
        {"number of heads", shape->heads, 1, DECODER_MAX_HEADS},
        {"number of KV heads", shape->heads_kv, 1, shape->heads},
        {"head size", shape->head_size, 0, DECODER_MAX_HEADS},
        {"vocabulary size", shape->vocabulary, 1, UINT32_MAX},
        {"feed-forward width", shape->feed_forward, shape->experts ? 0 : 1, DECODER_MAX_SIZE},
        {"shared feed-forward width", shape->shared_feed_forward, 0, DECODER_MAX_SIZE},
        {"number of experts", shape->experts, 0, DECODER_MAX_EXPERTS},
        {"experts per token", shape->experts_used, shape->experts ? 1 : 0, shape->experts},
        {"latent size", shape->latent, 0, DECODER_MAX_SIZE},
        {"rotated size", shape->rotated, shape->latent ? 1 : 0, DECODER_MAX_HEADS},
        {"value size", shape->value_size, shape->latent ? 1 : 0, DECODER_MAX_HEADS},
        {"query rank", shape->query_rank, 0, DECODER_MAX_SIZE},
        {"number of positions", shape->positions, 0, UINT32_MAX},
        {"embedding rank", shape->embedding_rank, 0, DECODER_MAX_SIZE},
        {"number of classes", shape->classes, shape->head >= DECODER_HEAD_CLASSES ? 1 : 0,
         UINT32_MAX},
        {"expert width", shape->expert_feed_forward, shape->experts ? 1 : 0, DECODER_MAX_SIZE},
    };
    for (size_t i = 0; i < COUNT_OF(SIZES); i++)
        if (SIZES[i].number < SIZES[i].min || SIZES[i].number > SIZES[i].max)
            return err_set(why, ERR_BAD_VALUE, "%s: %s is %llu, must be %llu to %llu", shape->name,
                           SIZES[i].what, (unsigned long long)SIZES[i].number,
                           (unsigned long long)SIZES[i].min, (unsigned long long)SIZES[i].max);
    if (shape->heads % shape->heads_kv)
        return err_set(why, ERR_BAD_VALUE, "%s: %llu heads are not a multiple of %llu KV heads",
                       shape->name, (unsigned long long)shape->heads,
                       (unsigned long long)shape->heads_kv);
    if (!shape->head_size && shape->embedding % shape->heads)
        return err_set(why, ERR_BAD_VALUE, "%s: %llu features are not a multiple of %llu heads",
                       shape->name, (unsigned long long)shape->embedding,
                       (unsigned long long)shape->heads);
    if (shape->latent && shape->rotated >= shape->head_size)
        return err_set(why, ERR_BAD_VALUE, "%s: %llu rotated features do not fit a head of %llu",
                       shape->name, (unsigned long long)shape->rotated,
                       (unsigned long long)shape->head_size);
    if (max_parameters(shape) > MAX_PARAMETERS)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: its sizes give about %.0e parameters, more than any model has",
                       shape->name, max_parameters(shape));
    return ERR_OK;
}

enum err decoder_from_shape(const struct decoder_shape *shape, struct decoder *out,
                            struct error *why)
{
    *out = (struct decoder){0};
    enum err err = check(shape, why);
    if (err)
        return err;
    struct decoder_layer *layers = xcalloc(shape->layers, sizeof *layers);
    *out = (struct decoder){
        .activation = shape->activation,
        .embedding = shape->embedding,
        .vocabulary = shape->vocabulary,
        .context = shape->context,
        .experts = shape->experts,
        .experts_used = shape->experts_used,
        .has_tied_embeddings = shape->has_tied_embeddings && shape->head == DECODER_HEAD_LOGITS,
        .has_no_head = shape->head == DECODER_HEAD_NONE,
        .has_head_per_token = shape->head == DECODER_HEAD_TOKENS,
        .is_parallel = shape->norms == DECODER_PARALLEL_NORMS,
        .has_unfused_attention = shape->has_unfused_attention,
        .is_norm_after_add = shape->norms == DECODER_NORM_AFTER_ADD,
        .mixer = shape->mixer,
        .layer_count = shape->layers,
        .layers = layers,
    };
    chars_copy(out->architecture, shape->architecture);
    chars_copy(out->name, shape->name);
    struct shaping shaping = {shape, out, -1};
    add_outside(&shaping);
    for (shaping.layer = 0; (uint64_t)shaping.layer < shape->layers; shaping.layer++)
        add_layer(&shaping);
    if (shape->mixer.heads) {
        out->parameters += shape->layers * mamba2_mixer_parameters(&shape->mixer);
        out->bytes += 2 * shape->layers * mamba2_mixer_parameters(&shape->mixer);
    }
    return ERR_OK;
}
