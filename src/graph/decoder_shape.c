#include "graph/decoder_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "graph/decoder/weigh.h"

enum { BF16 = 30 }; /* as files number it */

/* More than all models together have; so bounded, sums fit into 64 bits and are exact as doubles. */
static const double MOST_PARAMETERS = 4e15;

static const struct decoder_shape KINDS[] = {
#define DECODER_KIND(...) {.architecture = __VA_ARGS__},
#include "graph/decoder_kinds.def"
#undef DECODER_KIND
};

size_t decoder_kind_count(void)
{
    return sizeof KINDS / sizeof *KINDS;
}

const char *decoder_kind_at(size_t index)
{
    return KINDS[index].architecture;
}

bool decoder_shape_of_kind(const char *kind, struct decoder_shape *out)
{
    for (size_t i = 0; i < decoder_kind_count(); i++)
        if (strcmp(KINDS[i].architecture, kind) == 0) {
            *out = KINDS[i];
            return true;
        }
    return false;
}

struct weighing {
    const struct decoder_shape *shape;
    struct decoder *decoder;
    int layer; /* -1: outside */
};

/* ---- tensors ---- */

static void weigh(const struct weighing *weighing, enum decoder_tensor tensor, bool is_bias,
                  uint64_t columns, uint64_t rows, uint64_t matrices)
{
    struct decoder_added added = {
        .tensor = tensor,
        .is_bias = is_bias,
        .columns = columns,
        .rows = rows,
        .matrices = matrices,
        .bytes = 2 * columns * rows * matrices,
        .type = tensor_type_numbered(BF16),
    };
    decoder_weigh(weighing->decoder, weighing->layer, &added);
}

static void norm(const struct weighing *weighing, enum decoder_tensor tensor, uint64_t numbers)
{
    weigh(weighing, tensor, false, numbers, 1, 1);
    if (weighing->shape->norms_have_mean)
        weigh(weighing, tensor, true, numbers, 1, 1);
}

/* Matrices of layers are those that are quantised. */
static void matrices(const struct weighing *weighing, enum decoder_tensor tensor, uint64_t columns,
                     uint64_t rows, uint64_t count)
{
    double bits = weighing->shape->matrix_bits;
    if (bits <= 0 || weighing->layer < 0) {
        weigh(weighing, tensor, false, columns, rows, count);
        return;
    }
    struct decoder_added added = {
        .tensor = tensor,
        .columns = columns,
        .rows = rows,
        .matrices = count,
        .bytes = (uint64_t)ceil((double)(columns * rows) * bits / 8) * count,
        .is_stored = true,
    };
    decoder_weigh(weighing->decoder, weighing->layer, &added);
}

static void matrix(const struct weighing *weighing, enum decoder_tensor tensor, uint64_t columns,
                   uint64_t rows, bool has_bias)
{
    if (has_bias) /* first: whether the weight is stored in a format of its own is told last */
        weigh(weighing, tensor, true, rows, 1, 1);
    matrices(weighing, tensor, columns, rows, 1);
}

/* ---- a layer ---- */

static void add_attention(const struct weighing *weighing)
{
    const struct decoder_shape *shape = weighing->shape;
    const struct decoder_layer *layer = &weighing->decoder->layers[weighing->layer];
    uint64_t query = layer->heads * layer->key_size, key = layer->heads_kv * layer->key_size;
    bool has_bias = shape->has_qkv_bias;
    if (shape->has_fused_qkv) {
        matrix(weighing, DECODER_TENSOR_ATTN_QKV, shape->embedding, query + 2 * key, has_bias);
    } else {
        matrix(weighing, DECODER_TENSOR_ATTN_Q, shape->embedding, query, has_bias);
        matrix(weighing, DECODER_TENSOR_ATTN_K, shape->embedding, key, has_bias);
        matrix(weighing, DECODER_TENSOR_ATTN_V, shape->embedding, key, has_bias);
    }
    matrix(weighing, DECODER_TENSOR_ATTN_OUTPUT, query, shape->embedding, shape->has_output_bias);
    if (shape->head_norms == DECODER_NO_HEAD_NORMS)
        return;
    bool is_of_all = shape->head_norms == DECODER_NORMS_OF_ALL;
    norm(weighing, DECODER_TENSOR_ATTN_Q_NORM, is_of_all ? query : layer->key_size);
    norm(weighing, DECODER_TENSOR_ATTN_K_NORM, is_of_all ? key : layer->key_size);
}

static void add_dense(const struct weighing *weighing)
{
    const struct decoder_shape *shape = weighing->shape;
    uint64_t width = shape->feed_forward, embedding = shape->embedding;
    bool has_bias = shape->has_forward_bias;
    if (!shape->lacks_gate && !shape->has_fused_gate)
        matrix(weighing, DECODER_TENSOR_FFN_GATE, embedding, width, has_bias);
    matrix(weighing, DECODER_TENSOR_FFN_UP, embedding, width << shape->has_fused_gate, has_bias);
    matrix(weighing, DECODER_TENSOR_FFN_DOWN, width, embedding, has_bias);
}

static void add_experts(const struct weighing *weighing)
{
    const struct decoder_shape *shape = weighing->shape;
    uint64_t width = shape->expert_feed_forward, shared = shape->shared_feed_forward;
    uint64_t embedding = shape->embedding;
    weigh(weighing, DECODER_TENSOR_FFN_GATE_INP, false, embedding, shape->experts, 1);
    matrices(weighing, DECODER_TENSOR_FFN_GATE_EXPS, embedding, width, shape->experts);
    matrices(weighing, DECODER_TENSOR_FFN_UP_EXPS, embedding, width, shape->experts);
    matrices(weighing, DECODER_TENSOR_FFN_DOWN_EXPS, width, embedding, shape->experts);
    if (!shared)
        return;
    weigh(weighing, DECODER_TENSOR_FFN_GATE_INP_SHEXP, false, embedding, 1, 1);
    matrix(weighing, DECODER_TENSOR_FFN_GATE_SHEXP, embedding, shared, false);
    matrix(weighing, DECODER_TENSOR_FFN_UP_SHEXP, embedding, shared, false);
    matrix(weighing, DECODER_TENSOR_FFN_DOWN_SHEXP, shared, embedding, false);
}

static void add_norms(const struct weighing *weighing)
{
    enum decoder_norms norms = weighing->shape->norms;
    uint64_t embedding = weighing->shape->embedding;
    if (norms != DECODER_NORMS_AFTER)
        norm(weighing, DECODER_TENSOR_ATTN_NORM, embedding);
    if (norms == DECODER_NORMS_BEFORE || norms == DECODER_NORMS_AROUND)
        norm(weighing, DECODER_TENSOR_FFN_NORM, embedding);
    if (norms == DECODER_NORMS_AROUND || norms == DECODER_NORMS_AFTER) {
        norm(weighing, DECODER_TENSOR_POST_ATTENTION_NORM, embedding);
        norm(weighing, DECODER_TENSOR_POST_FFW_NORM, embedding);
    }
}

static void add_layer(const struct weighing *weighing)
{
    const struct decoder_shape *shape = weighing->shape;
    struct decoder_layer *layer = &weighing->decoder->layers[weighing->layer];
    uint64_t number = (uint64_t)weighing->layer + 1;
    bool has_experts =
        shape->experts && (shape->expert_period < 2 || number % shape->expert_period == 0);
    bool sees_all = shape->window_period > 1 && number % shape->window_period == 0;
    layer->heads = shape->heads;
    layer->heads_kv = shape->heads_kv;
    layer->key_size = layer->value_size =
        shape->head_size ? shape->head_size : shape->embedding / shape->heads;
    layer->window = sees_all ? 0 : shape->window;
    layer->is_gated = !shape->lacks_gate;
    layer->is_fused = shape->has_fused_gate && !has_experts;
    layer->expert_feed_forward = has_experts ? shape->expert_feed_forward : 0;
    layer->feed_forward = has_experts ? shape->shared_feed_forward : shape->feed_forward;
    add_norms(weighing);
    add_attention(weighing);
    if (has_experts)
        add_experts(weighing);
    else
        add_dense(weighing);
}

/* ---- the whole ---- */

static void add_outside(const struct weighing *weighing)
{
    const struct decoder_shape *shape = weighing->shape;
    matrix(weighing, DECODER_TENSOR_TOKEN_EMBD, shape->embedding, shape->vocabulary, false);
    norm(weighing, DECODER_TENSOR_OUTPUT_NORM, shape->embedding);
    if (!shape->has_tied_head)
        matrix(weighing, DECODER_TENSOR_OUTPUT, shape->embedding, shape->vocabulary,
               shape->has_head_bias);
}

/* No less than it has. */
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
        {"layers", shape->layers, 1, DECODER_MOST_LAYERS},
        {"features", shape->embedding, 1, DECODER_LARGEST_SIZE},
        {"heads", shape->heads, 1, DECODER_MOST_HEADS},
        {"heads of keys and values", shape->heads_kv, 1, shape->heads},
        {"numbers a head", shape->head_size, 0, DECODER_MOST_HEADS},
        {"tokens in the vocabulary", shape->vocabulary, 1, UINT32_MAX},
        {"numbers in the feed-forward", shape->feed_forward, shape->experts ? 0 : 1,
         DECODER_LARGEST_SIZE},
        {"numbers in the shared feed-forward", shape->shared_feed_forward, 0, DECODER_LARGEST_SIZE},
        {"experts", shape->experts, 0, DECODER_MOST_EXPERTS},
        {"experts used", shape->experts_used, shape->experts ? 1 : 0, shape->experts},
        {"numbers in an expert", shape->expert_feed_forward, shape->experts ? 1 : 0,
         DECODER_LARGEST_SIZE},
    };
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        if (SIZES[i].number < SIZES[i].least || SIZES[i].number > SIZES[i].most)
            return err_set(why, ERR_BAD_VALUE, "%s: %llu %s, where %llu to %llu would be sensible",
                           shape->name, (unsigned long long)SIZES[i].number, SIZES[i].what,
                           (unsigned long long)SIZES[i].least, (unsigned long long)SIZES[i].most);
    if (shape->heads % shape->heads_kv)
        return err_set(
            why, ERR_BAD_VALUE, "%s: %llu heads are no multiple of %llu heads of keys and values",
            shape->name, (unsigned long long)shape->heads, (unsigned long long)shape->heads_kv);
    if (!shape->head_size && shape->embedding % shape->heads)
        return err_set(why, ERR_BAD_VALUE, "%s: %llu features are no multiple of %llu heads",
                       shape->name, (unsigned long long)shape->embedding,
                       (unsigned long long)shape->heads);
    if (parameters_at_most(shape) > MOST_PARAMETERS)
        return err_set(why, ERR_BAD_VALUE, "%s: its sizes make some %.0e parameters", shape->name,
                       parameters_at_most(shape));
    return ERR_OK;
}

static void sum_up(const struct decoder_shape *shape, struct decoder *decoder)
{
    const struct decoder_layer *first = &decoder->layers[0];
    decoder->heads = first->heads;
    decoder->heads_kv = first->heads_kv;
    decoder->key_size = first->key_size;
    decoder->value_size = first->value_size;
    decoder->feed_forward = shape->feed_forward ? shape->feed_forward : shape->expert_feed_forward;
}

enum err decoder_of_shape(const struct decoder_shape *shape, struct decoder *out, struct error *why)
{
    *out = (struct decoder){0};
    enum err err = check(shape, why);
    if (err)
        return err;
    struct decoder_layer *layers = calloc(shape->layers, sizeof *layers);
    if (!layers)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    *out = (struct decoder){
        .activation = shape->activation,
        .embedding = shape->embedding,
        .vocabulary = shape->vocabulary,
        .context = shape->context,
        .experts = shape->experts,
        .experts_used = shape->experts_used,
        .has_tied_head = shape->has_tied_head,
        .layer_count = shape->layers,
        .layers = layers,
    };
    str_copy(out->architecture, sizeof out->architecture, shape->architecture);
    str_copy(out->name, sizeof out->name, shape->name);
    struct weighing weighing = {shape, out, -1};
    add_outside(&weighing);
    for (weighing.layer = 0; (uint64_t)weighing.layer < shape->layers; weighing.layer++)
        add_layer(&weighing);
    sum_up(shape, out);
    return ERR_OK;
}
