#include "support/decoders.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/decoder_shape.h"

/* ---- random decoders ---- */

static uint64_t any(struct rng *rng, uint32_t min, uint32_t max)
{
    return min + rng_below(rng, max - min + 1);
}

static bool coin(struct rng *rng)
{
    return rng_below(rng, 2);
}

static void add_experts(struct rng *rng, struct decoder_shape *shape)
{
    shape->experts = any(rng, 1, 9);
    shape->experts_used = any(rng, 1, (uint32_t)shape->experts);
    shape->expert_feed_forward = any(rng, 1, 30);
    shape->expert_period = any(rng, 0, 2);
    shape->shared_feed_forward = coin(rng) ? any(rng, 1, 30) : 0;
    shape->has_shared_without_gate = coin(rng);
}

static struct decoder_shape random_shape(struct rng *rng)
{
    struct decoder_shape shape = {
        .architecture = "any",
        .name = "any",
        .activation = coin(rng) ? DECODER_SILU : DECODER_GELU,
        .layers = any(rng, 1, 5),
        .heads_kv = any(rng, 1, 4),
        .vocabulary = any(rng, 1, 300),
        .head_size = 2 * any(rng, 1, 8),
        .embedding = any(rng, 1, 80),
        .feed_forward = any(rng, 1, 90),
        .window = coin(rng) ? any(rng, 1, 40) : 0,
        .window_period = any(rng, 0, 3),
        .norms = (enum decoder_norm_placement)any(rng, 0, DECODER_PARALLEL_NORMS),
        .qk_norm = (enum decoder_qk_norm)any(rng, 0, 2),
        .has_layer_norm = coin(rng),
        .has_tied_embeddings = coin(rng),
        .has_qkv_bias = coin(rng),
        .has_output_bias = coin(rng),
        .has_mlp_bias = coin(rng),
        .has_fused_qkv = coin(rng),
        .has_no_gate = any(rng, 0, 3) == 0,
        .matrix_bits = coin(rng) ? 0 : 4.5,
    };
    shape.has_head_bias = !shape.has_tied_embeddings && coin(rng);
    shape.heads = shape.heads_kv * any(rng, 1, 4);
    shape.has_fused_gate = !shape.has_no_gate && coin(rng);
    if (!shape.has_no_gate && any(rng, 0, 2) == 0)
        add_experts(rng, &shape);
    return shape;
}

struct decoder decoders_random(struct rng *rng)
{
    struct decoder_shape shape = random_shape(rng);
    struct decoder decoder;
    struct error why = {0};
    if (decoder_from_shape(&shape, &decoder, &why)) {
        fprintf(stderr, "decoders: %s\n", why.text);
        abort();
    }
    return decoder;
}

struct graph_options decoders_random_pass(struct rng *rng)
{
    return (struct graph_options){.phase = coin(rng) ? GRAPH_DECODE : GRAPH_PREFILL,
                                  .pruning = (enum graph_pruning)any(rng, 0, 2),
                                  .batch = (int64_t)any(rng, 1, 5),
                                  .tokens = (int64_t)any(rng, 1, 70),
                                  .cached = (int64_t)(coin(rng) ? any(rng, 1, 100) : 0),
                                  .context = (int64_t)any(rng, 1, 200)};
}

/* ---- what a pass costs ---- */

/* Operations per element. */
enum { RMS_NORM = 4, LAYER_NORM = 7, ROTATION = 3, SOFTMAX = 5, SILU = 4, GELU = 8, SIGMOID = 4 };

struct pass {
    const struct decoder *decoder;
    const struct decoder_layer *layer; /* NULL outside */
    const struct decoder_weight *weights;
    uint64_t tokens, cached; /* of one sequence */
    double sequences;
    double all, after,
        logits; /* tokens of all sequences: in attention, after it, and with logits */
};

static struct pass pass_of(const struct decoder *decoder, const struct graph_options *options,
                           int layer)
{
    bool is_decode = options->phase == GRAPH_DECODE;
    bool is_last = layer >= 0 && (size_t)layer + 1 == decoder->layer_count;
    struct pass pass = {
        .decoder = decoder,
        .layer = layer >= 0 ? &decoder->layers[layer] : NULL,
        .weights = layer >= 0 ? decoder->layers[layer].weights : decoder->outside_weights,
        .tokens = is_decode ? 1 : (uint64_t)options->tokens,
        .cached = (uint64_t)(is_decode ? options->context - 1 : options->cached),
        .sequences = (double)options->batch,
    };
    pass.all = pass.sequences * (double)pass.tokens;
    pass.logits = options->pruning == GRAPH_PRUNE_ALL ? 0 : pass.sequences;
    pass.after = is_last && options->pruning ? pass.logits : pass.all;
    return pass;
}

static bool has(const struct pass *pass, enum decoder_tensor tensor)
{
    return pass->weights[tensor].columns > 0;
}

static bool is_of_experts(enum decoder_tensor tensor)
{
    return tensor == DECODER_TENSOR_FFN_GATE_EXPS || tensor == DECODER_TENSOR_FFN_UP_EXPS ||
           tensor == DECODER_TENSOR_FFN_DOWN_EXPS;
}

static bool is_table(enum decoder_tensor tensor)
{
    return tensor == DECODER_TENSOR_ROPE_FREQS || tensor == DECODER_TENSOR_ROPE_FACTORS_LONG ||
           tensor == DECODER_TENSOR_ROPE_FACTORS_SHORT;
}

/* The matrices and biases of a component, over this many tokens. */
static struct decoder_figures multiply(const struct pass *pass, enum decoder_component component,
                                       double tokens)
{
    struct decoder_figures figures = {0};
    double total = (double)pass->decoder->experts, used = (double)pass->decoder->experts_used;
    for (int i = 0; i < DECODER_TENSOR_COUNT && tokens > 0; i++) {
        enum decoder_tensor tensor = (enum decoder_tensor)i;
        const struct decoder_weight *weight = &pass->weights[tensor];
        if (decoder_tensor_component(tensor) != component)
            continue;
        bool is_expert = is_of_experts(tensor) && weight->columns;
        double read = is_expert ? 1 - pow(1 - used / total, tokens) : 1;
        figures.weight_bytes += (double)weight->bytes * read + (double)weight->bias_bytes;
        if (!is_table(tensor))
            figures.macs +=
                (double)(weight->columns * weight->rows) * (is_expert ? used : 1) * tokens;
        figures.elementwise += (double)weight->bias_elements * tokens;
    }
    return figures;
}

static struct decoder_figures norms(const struct pass *pass)
{
    struct decoder_figures figures = {0};
    const struct decoder_layer *layer = pass->layer;
    int each = pass->decoder->layers[0].has_layer_norm ? LAYER_NORM : RMS_NORM;
    for (int i = 0; i < DECODER_TENSOR_COUNT; i++) {
        const struct decoder_weight *weight = &pass->weights[i];
        if (decoder_tensor_component((enum decoder_tensor)i) != DECODER_NORM || !weight->columns)
            continue;
        bool is_before = i == DECODER_TENSOR_ATTN_NORM || i == DECODER_TENSOR_ATTN_Q_NORM ||
                         i == DECODER_TENSOR_ATTN_K_NORM;
        double tokens = !layer ? pass->logits : is_before ? pass->all : pass->after;
        uint64_t features = weight->columns; /* or of each head */
        if (i == DECODER_TENSOR_ATTN_Q_NORM)
            features = layer->heads * layer->key_size;
        if (i == DECODER_TENSOR_ATTN_K_NORM)
            features = layer->heads_kv * layer->key_size;
        figures.elementwise += each * (double)features * tokens;
        figures.weight_bytes += tokens > 0 ? (double)(weight->bytes + weight->bias_bytes) : 0;
        figures.in += (double)features * tokens;
        figures.out += (double)features * tokens;
        if (i == DECODER_TENSOR_FFN_NORM &&
            pass->decoder->is_parallel) /* the same as attention's */
            figures.in -= (double)features * tokens;
    }
    return figures;
}

static struct decoder_figures qkv(const struct pass *pass)
{
    const struct decoder_layer *layer = pass->layer;
    struct decoder_figures figures = multiply(pass, DECODER_ATTN_QKV, pass->all);
    double queries = (double)(layer->heads * layer->key_size);
    double keys = (double)(layer->heads_kv * layer->key_size);
    double values = (double)(layer->heads_kv * layer->value_size);
    figures.elementwise += ROTATION * (queries + keys) * pass->all;
    figures.cache_written = (keys + values) * pass->all;
    double before_norm = has(pass, DECODER_TENSOR_ATTN_Q_NORM) ? queries + keys : 0;
    bool is_fused = has(pass, DECODER_TENSOR_ATTN_QKV);
    figures.in = ((double)pass->decoder->embedding + before_norm) * pass->all;
    figures.out = (queries + before_norm + (before_norm > 0 && is_fused ? values : 0)) * pass->all;
    return figures;
}

/* Token by token. */
static struct decoder_figures scores(const struct pass *pass)
{
    const struct decoder_layer *layer = pass->layer;
    struct decoder_figures figures = {0};
    double heads = (double)layer->heads, pairs = 0, first = (double)pass->cached;
    double sizes = (double)(layer->key_size + layer->value_size);
    for (uint64_t i = 0; i < pass->tokens; i++) {
        uint64_t seen = pass->cached + i + 1;
        seen = layer->window && seen > layer->window ? layer->window : seen;
        pairs += (double)seen;
        first = fmin(first, (double)(pass->cached + i + 1 - seen));
    }
    pairs *= pass->sequences * heads;
    figures.macs = pairs * sizes;
    figures.elementwise = SOFTMAX * pairs;
    figures.cache_read = (double)layer->heads_kv * sizes * pass->sequences *
                         ((double)(pass->cached + pass->tokens) - first);
    figures.in = heads * (double)layer->key_size * pass->all;
    figures.out = heads * (double)layer->value_size * pass->all;
    return figures;
}

static struct decoder_figures attention_out(const struct pass *pass)
{
    struct decoder_figures figures = multiply(pass, DECODER_ATTN_OUT, pass->all);
    double embedding = (double)pass->decoder->embedding, added = embedding * pass->after;
    bool has_norm = has(pass, DECODER_TENSOR_POST_ATTENTION_NORM) && pass->after > 0;
    bool is_end = pass->after <= 0; /* its result is that of the pass */
    figures.elementwise += added;
    figures.in = (double)(pass->layer->heads * pass->layer->value_size) * pass->all + added +
                 (has_norm ? added : 0);
    figures.out = added + (has_norm || is_end ? embedding * pass->all : 0);
    return figures;
}

/* The features of the feed-forward network for one token. */
static double width_of(const struct pass *pass)
{
    return (double)pass->layer->feed_forward +
           (double)pass->layer->expert_feed_forward * (double)pass->decoder->experts_used;
}

/* The weights of the chosen experts and of the shared ones, for one token. */
static double expert_weights(const struct pass *pass)
{
    return (has(pass, DECODER_TENSOR_FFN_GATE_INP) ? (double)pass->decoder->experts_used : 0) +
           (has(pass, DECODER_TENSOR_FFN_GATE_INP_SHEXP) ? 1 : 0);
}

static struct decoder_figures gate_up(const struct pass *pass)
{
    struct decoder_figures figures = multiply(pass, DECODER_FFN_GATE_UP, pass->after);
    double activation = pass->decoder->activation == DECODER_SILU ? SILU : GELU;
    double width = width_of(pass);
    figures.elementwise += (activation + pass->layer->is_gated) * width * pass->after;
    if (pass->layer->expert_feed_forward)
        figures.elementwise += SOFTMAX * (double)pass->decoder->experts * pass->after;
    figures.in = (double)pass->decoder->embedding * pass->after;
    figures.out = (width + expert_weights(pass)) * pass->after;
    return figures;
}

static struct decoder_figures down(const struct pass *pass)
{
    struct decoder_figures figures = multiply(pass, DECODER_FFN_DOWN, pass->after);
    double stream = (double)pass->decoder->embedding * pass->after;
    bool has_norm = has(pass, DECODER_TENSOR_POST_FFW_NORM);
    bool has_both = pass->layer->expert_feed_forward && pass->layer->feed_forward;
    figures.elementwise += stream + (has_both ? stream : 0);
    if (pass->layer->expert_feed_forward) /* each expert's output, weighted and added */
        figures.elementwise += 2 * (double)pass->decoder->experts_used * stream;
    if (has(pass, DECODER_TENSOR_FFN_GATE_INP_SHEXP))
        figures.elementwise += SIGMOID * pass->after + stream;
    figures.in =
        (width_of(pass) + expert_weights(pass)) * pass->after + (has_norm ? 2 * stream : stream);
    figures.out = has_norm ? 2 * stream : stream;
    return figures;
}

/* A row per token, at most the table. */
static struct decoder_figures embedding(const struct pass *pass)
{
    const struct decoder_weight *table = &pass->weights[DECODER_TENSOR_TOKEN_EMBD];
    double rows = fmin(pass->all, (double)table->rows);
    return (struct decoder_figures){.weight_bytes =
                                        (double)table->bytes / (double)table->rows * rows,
                                    .out = (double)table->columns * pass->all};
}

static struct decoder_figures head(const struct pass *pass)
{
    const struct decoder *decoder = pass->decoder;
    const struct decoder_weight *table = &pass->weights[DECODER_TENSOR_TOKEN_EMBD];
    struct decoder_figures figures = multiply(pass, DECODER_HEAD, pass->logits);
    if (decoder->has_tied_embeddings && pass->logits > 0) {
        figures.macs = (double)(table->columns * table->rows) * pass->logits;
        figures.weight_bytes = (double)table->bytes;
    }
    figures.in = (double)decoder->embedding * pass->logits;
    figures.out = (double)decoder->vocabulary * pass->logits;
    return figures;
}

struct decoder_figures decoders_cost(const struct decoder *decoder,
                                     const struct graph_options *options, int layer,
                                     enum decoder_component component)
{
    struct pass pass = pass_of(decoder, options, layer);
    bool is_inside = layer >= 0;
    switch (component) {
    case DECODER_EMBEDDING:
        return !is_inside ? embedding(&pass) : (struct decoder_figures){0};
    case DECODER_NORM:
        return norms(&pass);
    case DECODER_ATTN_QKV: /* outside: rotary factors */
        return is_inside ? qkv(&pass) : multiply(&pass, component, pass.all);
    case DECODER_ATTN_SCORES:
        return is_inside ? scores(&pass) : (struct decoder_figures){0};
    case DECODER_ATTN_OUT:
        return is_inside ? attention_out(&pass) : (struct decoder_figures){0};
    case DECODER_FFN_GATE_UP:
        return is_inside ? gate_up(&pass) : (struct decoder_figures){0};
    case DECODER_FFN_DOWN:
        return is_inside ? down(&pass) : (struct decoder_figures){0};
    case DECODER_HEAD:
        return !is_inside ? head(&pass) : (struct decoder_figures){0};
    default:
        return (struct decoder_figures){0};
    }
}

double decoders_macs(const struct decoder *decoder, const struct graph_options *options)
{
    double sum = 0;
    for (int layer = DECODER_OUTSIDE; layer < (int)decoder->layer_count; layer++)
        for (int i = 0; i < DECODER_COMPONENT_COUNT; i++)
            sum += decoders_cost(decoder, options, layer, (enum decoder_component)i).macs;
    return sum;
}
