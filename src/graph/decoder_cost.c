/* Every component has its own rule, from which the sums over layers and components follow. */
#include "graph/decoder_cost.h"

#include <math.h>

#include "graph/count.h"

/* One pass through one layer, with defaults filled in.  Counts are totals over all sequences. */
struct pass {
    const struct decoder *decoder;
    const struct decoder_layer *layer; /* NULL outside */
    uint64_t tokens, cached;           /* per sequence */
    double sequences;
    double all;    /* tokens in attention */
    double after;  /* tokens computed after it */
    double logits; /* tokens with logits */
    double activation_bytes, cache_bytes;
    bool writes_scores;
};

static struct pass pass_of(const struct decoder *decoder, const struct decoder_step *step,
                           int layer)
{
    uint64_t sequences = step->sequences ? step->sequences : 1;
    uint64_t logits = step->logits < step->tokens ? step->logits : step->tokens;
    bool is_pruned = step->prunes_last && layer >= 0 && (size_t)layer + 1 == decoder->layer_count;
    struct pass pass = {
        .decoder = decoder,
        .layer = layer >= 0 ? &decoder->layers[layer] : NULL,
        .tokens = step->tokens,
        .cached = step->cached,
        .sequences = (double)sequences,
        .all = (double)step->tokens * (double)sequences,
        .logits = (double)logits * (double)sequences,
        .activation_bytes = step->activation_bytes > 0 ? step->activation_bytes : 4,
        .cache_bytes = step->cache_bytes > 0 ? step->cache_bytes : 2,
        .writes_scores = step->writes_scores,
    };
    pass.after = is_pruned ? pass.logits : pass.all;
    return pass;
}

/* ---- shared by several components ---- */

/* Activations read and written, in elements. */
static void set_activations(struct decoder_cost *cost, const struct pass *pass, double in,
                            double out)
{
    cost->activation_read_bytes = in * pass->activation_bytes;
    cost->activation_write_bytes = out * pass->activation_bytes;
}

/* The experts that a pass reads, assuming that every token chooses its own at random. */
static double active_experts(const struct decoder *decoder, double tokens)
{
    double total = (double)decoder->experts, used = (double)decoder->experts_used;
    return total * (1 - pow(1 - used / total, tokens));
}

/* Matrices and biases of a part, over this many tokens. */
static struct decoder_cost multiply(const struct pass *pass, const struct decoder_part *part,
                                    double tokens)
{
    struct decoder_cost cost = {0};
    if (tokens <= 0)
        return cost;
    double matrices =
        (double)(part->parameters - part->vector_parameters - part->expert_parameters);
    cost.weight_bytes = (double)(part->bytes - part->expert_bytes);
    if (part->expert_parameters) {
        double total = (double)pass->decoder->experts;
        matrices += (double)part->expert_parameters / total * (double)pass->decoder->experts_used;
        cost.weight_bytes +=
            (double)part->expert_bytes / total * active_experts(pass->decoder, tokens);
    }
    cost.matrix_flops = 2 * matrices * tokens;
    cost.elementwise_flops = (double)part->bias_parameters * tokens;
    return cost;
}

/* The width of the feed-forward for one token. */
static double feed_forward_width(const struct pass *pass)
{
    return (double)pass->layer->feed_forward +
           (double)pass->layer->expert_feed_forward * (double)pass->decoder->experts_used;
}

/* ---- components ---- */

static struct decoder_cost embedding_cost(const struct pass *pass, const struct decoder_part *part)
{
    struct decoder_cost cost = {0};
    cost.weight_bytes = (double)part->bytes / (double)pass->decoder->vocabulary * pass->all;
    set_activations(&cost, pass, 0, (double)pass->decoder->embedding * pass->all);
    return cost;
}

static struct decoder_cost norm_cost(const struct pass *pass, const struct decoder_part *part)
{
    struct decoder_cost cost = {0};
    double elements = (double)pass->decoder->embedding * pass->logits; /* the final norm */
    if (pass->layer)
        elements = (double)pass->layer->norm_elements * pass->all +
                   (double)pass->layer->norm_elements_after * pass->after;
    bool is_layer_norm = pass->decoder->layers[0].has_layer_norm;
    cost.elementwise_flops =
        elements * graph_op_elementwise(is_layer_norm ? GRAPH_LAYER_NORM : GRAPH_RMS_NORM);
    cost.weight_bytes = elements > 0 ? (double)part->bytes : 0;
    set_activations(&cost, pass, elements, elements);
    return cost;
}

static struct decoder_cost qkv_cost(const struct pass *pass, const struct decoder_part *part)
{
    const struct decoder_layer *layer = pass->layer;
    struct decoder_cost cost = multiply(pass, part, pass->all);
    double queries = (double)(layer->heads * layer->key_size);
    double keys = (double)(layer->heads_kv * layer->key_size);
    double values = (double)(layer->heads_kv * layer->value_size);
    cost.elementwise_flops += graph_op_elementwise(GRAPH_ROTATION) * (queries + keys) * pass->all;
    cost.cache_write_bytes = (keys + values) * pass->all * pass->cache_bytes;
    set_activations(&cost, pass, (double)pass->decoder->embedding * pass->all, queries * pass->all);
    return cost;
}

/* Tokens of one sequence whose K and V a pass reads. */
static double attended_tokens(const struct pass *pass)
{
    double all = (double)pass->cached + (double)pass->tokens;
    double window = (double)pass->layer->window;
    double in_windows = window + (double)pass->tokens - 1;
    return window > 0 && in_windows < all ? in_windows : all;
}

static struct decoder_cost scores_cost(const struct pass *pass)
{
    const struct decoder_layer *layer = pass->layer;
    struct decoder_cost cost = {0};
    if (pass->all <= 0)
        return cost;
    double heads = (double)layer->heads, sizes = (double)(layer->key_size + layer->value_size);
    const struct graph_attention attention = {.tokens = (int64_t)pass->tokens,
                                              .cached = (int64_t)pass->cached,
                                              .window = (int64_t)layer->window,
                                              .is_causal = true};
    double pairs = graph_attended_pairs(&attention) * pass->sequences;
    double attended = attended_tokens(pass) * pass->sequences;
    cost.matrix_flops = 2 * heads * sizes * pairs;
    cost.elementwise_flops = graph_op_elementwise(GRAPH_SOFTMAX) * heads * pairs;
    cost.cache_read_bytes = (double)layer->heads_kv * sizes * attended * pass->cache_bytes;
    /* Written by QK', read and written by softmax, read by the product with V; including masked entries. */
    double table = pass->writes_scores ? 2 * heads * (double)pass->tokens * attended : 0;
    set_activations(&cost, pass, heads * (double)layer->key_size * pass->all + table,
                    heads * (double)layer->value_size * pass->all + table);
    return cost;
}

static struct decoder_cost attention_out_cost(const struct pass *pass,
                                              const struct decoder_part *part)
{
    struct decoder_cost cost = multiply(pass, part, pass->all);
    double stream = (double)pass->decoder->embedding * pass->all;
    cost.elementwise_flops += stream;
    set_activations(&cost, pass,
                    (double)(pass->layer->heads * pass->layer->value_size) * pass->all + stream,
                    stream);
    return cost;
}

static struct decoder_cost gate_up_cost(const struct pass *pass, const struct decoder_part *part)
{
    struct decoder_cost cost = multiply(pass, part, pass->after);
    bool is_silu = pass->decoder->activation == DECODER_SILU;
    double activation = graph_op_elementwise(is_silu ? GRAPH_SILU : GRAPH_GELU);
    double width = feed_forward_width(pass);
    cost.elementwise_flops += (activation + pass->layer->is_gated) * width * pass->after;
    if (part->expert_parameters)
        cost.elementwise_flops +=
            graph_op_elementwise(GRAPH_SOFTMAX) * (double)pass->decoder->experts * pass->after;
    set_activations(&cost, pass, (double)pass->decoder->embedding * pass->after,
                    width * pass->after);
    return cost;
}

static struct decoder_cost down_cost(const struct pass *pass, const struct decoder_part *part)
{
    struct decoder_cost cost = multiply(pass, part, pass->after);
    double stream = (double)pass->decoder->embedding * pass->after;
    cost.elementwise_flops += stream;
    if (part->expert_parameters) /* each expert's output, weighted and added */
        cost.elementwise_flops += 2 * (double)pass->decoder->experts_used * stream;
    set_activations(&cost, pass, feed_forward_width(pass) * pass->after + stream, stream);
    return cost;
}

static struct decoder_cost head_cost(const struct pass *pass)
{
    const struct decoder *decoder = pass->decoder;
    struct decoder_part part =
        decoder->outside[decoder->has_tied_embeddings ? DECODER_EMBEDDING : DECODER_HEAD];
    struct decoder_cost cost = multiply(pass, &part, pass->logits);
    set_activations(&cost, pass, (double)decoder->embedding * pass->logits,
                    (double)decoder->vocabulary * pass->logits);
    return cost;
}

static struct decoder_cost cost_outside(const struct pass *pass, enum decoder_component component)
{
    const struct decoder_part *part = &pass->decoder->outside[component];
    struct decoder_cost nothing = {0};
    switch (component) {
    case DECODER_EMBEDDING:
        return embedding_cost(pass, part);
    case DECODER_NORM:
        return norm_cost(pass, part);
    case DECODER_ATTN_QKV: /* rotary factors */
        return multiply(pass, part, pass->all);
    case DECODER_HEAD:
        return head_cost(pass);
    default:
        return nothing;
    }
}

static struct decoder_cost cost_in_layer(const struct pass *pass, enum decoder_component component)
{
    const struct decoder_part *part = &pass->layer->parts[component];
    struct decoder_cost nothing = {0};
    switch (component) {
    case DECODER_NORM:
        return norm_cost(pass, part);
    case DECODER_ATTN_QKV:
        return qkv_cost(pass, part);
    case DECODER_ATTN_SCORES:
        return scores_cost(pass);
    case DECODER_ATTN_OUT:
        return attention_out_cost(pass, part);
    case DECODER_FFN_GATE_UP:
        return gate_up_cost(pass, part);
    case DECODER_FFN_DOWN:
        return down_cost(pass, part);
    default:
        return nothing;
    }
}

struct decoder_cost decoder_cost(const struct decoder *decoder, const struct decoder_step *step,
                                 int layer, enum decoder_component component)
{
    struct pass pass = pass_of(decoder, step, layer);
    return pass.layer ? cost_in_layer(&pass, component) : cost_outside(&pass, component);
}

/* ---- sums ---- */

static void decoder_cost_add(struct decoder_cost *sum, const struct decoder_cost *more)
{
    sum->matrix_flops += more->matrix_flops;
    sum->elementwise_flops += more->elementwise_flops;
    sum->weight_bytes += more->weight_bytes;
    sum->activation_read_bytes += more->activation_read_bytes;
    sum->activation_write_bytes += more->activation_write_bytes;
    sum->cache_read_bytes += more->cache_read_bytes;
    sum->cache_write_bytes += more->cache_write_bytes;
}

struct decoder_cost decoder_cost_component(const struct decoder *decoder,
                                           const struct decoder_step *step,
                                           enum decoder_component component)
{
    struct decoder_cost sum = decoder_cost(decoder, step, DECODER_OUTSIDE, component);
    for (size_t i = 0; i < decoder->layer_count; i++) {
        struct decoder_cost one = decoder_cost(decoder, step, (int)i, component);
        decoder_cost_add(&sum, &one);
    }
    return sum;
}

double decoder_cost_flops(const struct decoder_cost *cost)
{
    return cost->matrix_flops + cost->elementwise_flops;
}

double decoder_cost_bytes(const struct decoder_cost *cost)
{
    return cost->weight_bytes + cost->activation_read_bytes + cost->activation_write_bytes +
           cost->cache_read_bytes + cost->cache_write_bytes;
}
