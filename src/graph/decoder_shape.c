/* Lists every tensor that a decoder of given sizes has, layer by layer, so that its parameters are exact. */
#include "graph/decoder_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "graph/gguf.h"

enum { BF16 = 30 }; /* its number in GGUF files */

/* Far beyond any model; sums fit into 64 bits and are exact as doubles. */
static const double MAX_PARAMETERS = 4e15;

/* What all models of a kind have in common.  Tied embeddings are the default of a config.json without that key. */
static const struct decoder_shape KINDS[] = {
    {.architecture = "llama"},
    {.architecture = "mistral"},
    {.architecture = "mixtral"},
    {.architecture = "qwen2", .has_qkv_bias = true},
    {.architecture = "qwen2_moe", .has_qkv_bias = true},
    {.architecture = "qwen3", .qk_norm = DECODER_QK_NORM_PER_HEAD},
    {.architecture = "qwen3_moe", .qk_norm = DECODER_QK_NORM_PER_HEAD},
    {.architecture = "smollm3", .has_tied_embeddings = true},
    {.architecture = "granite"},
    {.architecture = "olmo2", .norms = DECODER_POST_NORM, .qk_norm = DECODER_QK_NORM_ALL_HEADS},
    {.architecture = "gemma", .activation = DECODER_GELU, .has_tied_embeddings = true},
    {.architecture = "gemma2",
     .activation = DECODER_GELU,
     .has_tied_embeddings = true,
     .norms = DECODER_SANDWICH_NORM,
     .window_period = 2},
    {.architecture = "gemma3_text",
     .activation = DECODER_GELU,
     .has_tied_embeddings = true,
     .norms = DECODER_SANDWICH_NORM,
     .qk_norm = DECODER_QK_NORM_PER_HEAD,
     .window_period = 6},
    {.architecture = "phi",
     .activation = DECODER_GELU,
     .norms = DECODER_PARALLEL,
     .has_layer_norm = true,
     .has_qkv_bias = true,
     .has_output_bias = true,
     .has_mlp_bias = true,
     .has_head_bias = true,
     .has_no_gate = true},
    {.architecture = "phi3", .has_fused_qkv = true, .has_fused_gate = true},
    {.architecture = "starcoder2",
     .activation = DECODER_GELU,
     .has_tied_embeddings = true,
     .has_layer_norm = true,
     .has_qkv_bias = true,
     .has_output_bias = true,
     .has_mlp_bias = true,
     .has_no_gate = true},
};

size_t decoder_kind_count(void)
{
    return sizeof KINDS / sizeof *KINDS;
}

const char *decoder_kind_at(size_t index)
{
    return KINDS[index].architecture;
}

bool decoder_shape_for_kind(const char *kind, struct decoder_shape *out)
{
    for (size_t i = 0; i < decoder_kind_count(); i++)
        if (strcmp(KINDS[i].architecture, kind) == 0) {
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
    if (shaping->shape->has_layer_norm)
        add_tensor(shaping, tensor, true, elements, 1, 1);
}

/* Only the matrices of layers are quantized. */
static void add_matrices(const struct shaping *shaping, enum decoder_tensor tensor,
                         uint64_t columns, uint64_t rows, uint64_t count)
{
    double bits = shaping->shape->matrix_bits;
    if (bits <= 0 || shaping->layer < 0) {
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

static void add_experts(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    uint64_t width = shape->expert_feed_forward, shared = shape->shared_feed_forward;
    uint64_t embedding = shape->embedding;
    add_tensor(shaping, DECODER_TENSOR_FFN_GATE_INP, false, embedding, shape->experts, 1);
    add_matrices(shaping, DECODER_TENSOR_FFN_GATE_EXPS, embedding, width, shape->experts);
    add_matrices(shaping, DECODER_TENSOR_FFN_UP_EXPS, embedding, width, shape->experts);
    add_matrices(shaping, DECODER_TENSOR_FFN_DOWN_EXPS, width, embedding, shape->experts);
    if (!shared)
        return;
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
    if (norms == DECODER_PRE_NORM || norms == DECODER_SANDWICH_NORM)
        add_norm(shaping, DECODER_TENSOR_FFN_NORM, embedding);
    if (norms == DECODER_SANDWICH_NORM || norms == DECODER_POST_NORM) {
        add_norm(shaping, DECODER_TENSOR_POST_ATTENTION_NORM, embedding);
        add_norm(shaping, DECODER_TENSOR_POST_FFW_NORM, embedding);
    }
}

static void add_layer(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    struct decoder_layer *layer = &shaping->decoder->layers[shaping->layer];
    uint64_t number = (uint64_t)shaping->layer + 1;
    bool has_experts =
        shape->experts && (shape->expert_period < 2 || number % shape->expert_period == 0);
    bool has_full_attention = shape->window_period > 1 && number % shape->window_period == 0;
    layer->heads = shape->heads;
    layer->heads_kv = shape->heads_kv;
    layer->key_size = layer->value_size =
        shape->head_size ? shape->head_size : shape->embedding / shape->heads;
    layer->window = has_full_attention ? 0 : shape->window;
    layer->is_gated = !shape->has_no_gate;
    layer->is_fused = shape->has_fused_gate && !has_experts;
    layer->expert_feed_forward = has_experts ? shape->expert_feed_forward : 0;
    layer->feed_forward = has_experts ? shape->shared_feed_forward : shape->feed_forward;
    add_norms(shaping);
    add_attention(shaping);
    if (has_experts)
        add_experts(shaping);
    else
        add_dense(shaping);
}

/* ---- the model ---- */

static void add_outside(const struct shaping *shaping)
{
    const struct decoder_shape *shape = shaping->shape;
    add_matrix(shaping, DECODER_TENSOR_TOKEN_EMBD, shape->embedding, shape->vocabulary, false);
    add_norm(shaping, DECODER_TENSOR_OUTPUT_NORM, shape->embedding);
    if (!shape->has_tied_embeddings)
        add_matrix(shaping, DECODER_TENSOR_OUTPUT, shape->embedding, shape->vocabulary,
                   shape->has_head_bias);
}

/* An upper bound, without overflow. */
static double parameters_at_most(const struct decoder_shape *shape)
{
    double embedding = (double)shape->embedding;
    double head = shape->head_size ? (double)shape->head_size : embedding / (double)shape->heads;
    double widths = (double)shape->feed_forward + (double)shape->shared_feed_forward +
                    (double)shape->experts * (double)(shape->expert_feed_forward + 1);
    double layer = (embedding + 1) * (3 * widths + 4 * ((double)shape->heads * head + 2));
    return (double)shape->layers * layer + 2 * (embedding + 1) * (double)(shape->vocabulary + 1);
}

static enum err check(const struct decoder_shape *shape, struct error *why)
{
    const struct {
        const char *what;
        uint64_t number, least, most;
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
        {"expert width", shape->expert_feed_forward, shape->experts ? 1 : 0, DECODER_MAX_SIZE},
    };
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        if (SIZES[i].number < SIZES[i].least || SIZES[i].number > SIZES[i].most)
            return err_set(why, ERR_BAD_VALUE, "%s: %s is %llu, must be %llu to %llu", shape->name,
                           SIZES[i].what, (unsigned long long)SIZES[i].number,
                           (unsigned long long)SIZES[i].least, (unsigned long long)SIZES[i].most);
    if (shape->heads % shape->heads_kv)
        return err_set(why, ERR_BAD_VALUE, "%s: %llu heads are not a multiple of %llu KV heads",
                       shape->name, (unsigned long long)shape->heads,
                       (unsigned long long)shape->heads_kv);
    if (!shape->head_size && shape->embedding % shape->heads)
        return err_set(why, ERR_BAD_VALUE, "%s: %llu features are not a multiple of %llu heads",
                       shape->name, (unsigned long long)shape->embedding,
                       (unsigned long long)shape->heads);
    if (parameters_at_most(shape) > MAX_PARAMETERS)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: its sizes give about %.0e parameters, more than any model has",
                       shape->name, parameters_at_most(shape));
    return ERR_OK;
}

enum err decoder_from_shape(const struct decoder_shape *shape, struct decoder *out,
                            struct error *why)
{
    *out = (struct decoder){0};
    enum err err = check(shape, why);
    if (err)
        return err;
    struct decoder_layer *layers = calloc(shape->layers, sizeof *layers);
    if (!layers)
        return err_no_memory(why);
    *out = (struct decoder){
        .activation = shape->activation,
        .embedding = shape->embedding,
        .vocabulary = shape->vocabulary,
        .context = shape->context,
        .experts = shape->experts,
        .experts_used = shape->experts_used,
        .has_tied_embeddings = shape->has_tied_embeddings,
        .layer_count = shape->layers,
        .layers = layers,
    };
    str_copy(out->architecture, sizeof out->architecture, shape->architecture);
    str_copy(out->name, sizeof out->name, shape->name);
    struct shaping shaping = {shape, out, -1};
    add_outside(&shaping);
    for (shaping.layer = 0; (uint64_t)shaping.layer < shape->layers; shaping.layer++)
        add_layer(&shaping);
    decoder_finish(out);
    out->feed_forward = shape->feed_forward ? shape->feed_forward : shape->expert_feed_forward;
    return ERR_OK;
}
