/* A decoder as a graph: attention with its KV cache, then a feed-forward network that is dense, a mixture of experts, or
 * both. */
#include "graph/decoder.h"

#include <math.h>

#include "core/text.h"
#include "graph/build.h"
#include "graph/gguf.h"
#include "graph/graph.h"

/* State of building the graph. */
struct pass {
    struct build build;
    const struct decoder *decoder;
    const struct decoder_layer *layer;    /* NULL outside the layers */
    const struct decoder_weight *weights; /* weights of the layer, or outside */
    int64_t sequences, tokens, cached;    /* per sequence: new tokens, and those in the KV cache */
    tensor_id rotary; /* factors shared by all layers; GRAPH_NONE: computed from positions */
    bool is_decode;
    enum graph_pruning pruning;
};

/* ---- weights and their roles ---- */

static bool has_weight(const struct pass *pass, enum decoder_tensor tensor)
{
    return pass->weights[tensor].columns > 0;
}

static tensor_id parameter(struct pass *pass, enum decoder_tensor tensor, const char *what,
                           int rank, const int64_t *dims)
{
    const struct decoder_weight *weight = &pass->weights[tensor];
    bool is_bias = what[1] == 'b';
    char name[64];
    str_join(name, sizeof name, decoder_tensor_name(tensor), what, "");
    tensor_id id = build_tensor(&pass->build, GRAPH_PARAMETER, name, rank, dims);
    if (id >= 0 && weight->is_stored) {
        struct graph_tensor *made = &pass->build.graph->tensors[id];
        made->stored_bytes = (double)(is_bias ? weight->bias_bytes : weight->bytes);
        made->stored_type = !is_bias && weight->type ? weight->type->number + 1 : 0;
    }
    return id;
}

static tensor_id weight_of(struct pass *pass, enum decoder_tensor tensor)
{
    const struct decoder_weight *weight = &pass->weights[tensor];
    int64_t dims[] = {(int64_t)weight->matrices, (int64_t)weight->rows, (int64_t)weight->columns};
    int rank = weight->matrices > 1 ? 3 : 2;
    return parameter(pass, tensor, ".weight", rank, dims + 3 - rank);
}

static tensor_id bias_of(struct pass *pass, enum decoder_tensor tensor)
{
    int64_t elements = (int64_t)pass->weights[tensor].bias_elements;
    return elements ? parameter(pass, tensor, ".bias", 1, &elements) : GRAPH_NONE;
}

/* Tensors that every device needs completely, so that their matrix is replicated. */
static bool is_replicated(enum decoder_tensor tensor)
{
    return tensor == DECODER_TENSOR_ATTN_Q_A || tensor == DECODER_TENSOR_ATTN_KV_A ||
           tensor == DECODER_TENSOR_FFN_GATE_INP || tensor == DECODER_TENSOR_FFN_GATE_INP_SHEXP;
}

static void replicate(struct pass *pass, tensor_id made)
{
    struct graph *graph = pass->build.graph;
    if (made >= 0)
        graph->nodes[graph->tensors[made].producer].split = GRAPH_SPLIT_NONE;
}

static tensor_id linear(struct pass *pass, enum decoder_tensor tensor, tensor_id x)
{
    tensor_id weight = weight_of(pass, tensor), bias = bias_of(pass, tensor);
    pass->build.component = decoder_tensor_component(tensor);
    x = build_linear_with(&pass->build, decoder_tensor_name(tensor), x, weight, bias,
                          (int64_t)pass->weights[tensor].rows);
    if (is_replicated(tensor))
        replicate(pass, x);
    return x;
}

static tensor_id norm(struct pass *pass, enum decoder_tensor tensor, tensor_id x)
{
    if (!has_weight(pass, tensor))
        return x;
    struct build *build = &pass->build;
    bool has_mean = pass->decoder->layers[0].has_layer_norm;
    struct graph_node node = {.op = has_mean ? GRAPH_LAYER_NORM : GRAPH_RMS_NORM,
                              .name = decoder_tensor_name(tensor)};
    int64_t columns = (int64_t)pass->weights[tensor].columns;
    tensor_id inputs[] = {x, parameter(pass, tensor, ".weight", 1, &columns),
                          bias_of(pass, tensor)};
    build->component = DECODER_NORM;
    return build_like(build, &node, inputs, inputs[2] >= 0 ? 3 : 2, x);
}

static tensor_id slice_features(struct pass *pass, const char *name, tensor_id x, int64_t size)
{
    struct graph_node node = {.op = GRAPH_VIEW, .name = name, .label = "slice"};
    return build_node(&pass->build, &node, &x, 1,
                      DIMS(build_dim(&pass->build, x, 0), build_dim(&pass->build, x, 1), size));
}

static tensor_id rotary_factors(struct pass *pass)
{
    static const enum decoder_tensor FACTORS[] = {DECODER_TENSOR_ROPE_FREQS,
                                                  DECODER_TENSOR_ROPE_FACTORS_LONG,
                                                  DECODER_TENSOR_ROPE_FACTORS_SHORT};
    struct build *build = &pass->build;
    tensor_id inputs[3];
    int count = 0;
    int64_t elements = 0;
    for (size_t i = 0; i < COUNT_OF(FACTORS); i++) {
        if (!has_weight(pass, FACTORS[i]))
            continue;
        elements = (int64_t)pass->weights[FACTORS[i]].columns;
        inputs[count] = parameter(pass, FACTORS[i], ".weight", 1, &elements);
        if (inputs[count] >= 0) /* computed, not trained */
            build->graph->tensors[inputs[count]].role = GRAPH_BUFFER;
        count++;
    }
    if (!count)
        return GRAPH_NONE;
    struct graph_node node = {.op = GRAPH_MOVE, .name = "rotation_factors"};
    build->component = DECODER_ATTN_QKV;
    return build_node(build, &node, inputs, count, 1, &elements);
}

/* ---- attention ---- */

struct qkv {
    tensor_id query, key, value;
};

/* Separate projections, or one fused matrix. */
static struct qkv project(struct pass *pass, tensor_id x)
{
    const struct decoder_layer *layer = pass->layer;
    if (!has_weight(pass, DECODER_TENSOR_ATTN_QKV))
        return (struct qkv){linear(pass, DECODER_TENSOR_ATTN_Q, x),
                            linear(pass, DECODER_TENSOR_ATTN_K, x),
                            linear(pass, DECODER_TENSOR_ATTN_V, x)};
    tensor_id all = linear(pass, DECODER_TENSOR_ATTN_QKV, x);
    return (struct qkv){
        slice_features(pass, "query", all, (int64_t)(layer->heads * layer->key_size)),
        slice_features(pass, "key", all, (int64_t)(layer->heads_kv * layer->key_size)),
        slice_features(pass, "value", all, (int64_t)(layer->heads_kv * layer->value_size))};
}

static tensor_id rotary_embedding(struct pass *pass, const char *name, tensor_id x,
                                  tensor_id factors)
{
    struct build *build = &pass->build;
    struct graph_node node = {.op = GRAPH_ROTATION, .name = name};
    build->component = DECODER_ATTN_QKV;
    return build_like(build, &node, (tensor_id[]){x, factors}, factors >= 0 ? 2 : 1, x);
}

/* Attention reads the K and V written here, besides those of earlier passes. */
static tensor_id write_cache(struct pass *pass, const char *name, tensor_id x)
{
    pass->build.component = DECODER_ATTN_QKV;
    tensor_id cache = build_op(&pass->build, GRAPH_CACHE_WRITE, name, x);
    if (cache >= 0)
        pass->build.graph->tensors[cache].role = GRAPH_CACHE;
    return cache;
}

/* The cached tokens that the first new token attends to: with a window, later ones attend to fewer. */
static int64_t cached_tokens_read(const struct pass *pass)
{
    int64_t window = (int64_t)pass->layer->window;
    if (window > 0 && pass->layer->is_chunked)
        return pass->cached % window;
    return window > 0 && pass->cached > window - 1 ? window - 1 : pass->cached;
}

static tensor_id kv_cache(struct pass *pass, const char *name, uint64_t size)
{
    int64_t dims[] = {pass->sequences, cached_tokens_read(pass), (int64_t)size};
    if (dims[1] == 0)
        return GRAPH_NONE;
    return build_tensor(&pass->build, GRAPH_CACHE, name, 3, dims);
}

/* The heads of attention: of a layer, or of the latent shared by all of its heads. */
static struct graph_attention attention_heads(const struct pass *pass, bool is_latent)
{
    const struct decoder_layer *layer = pass->layer;
    return (struct graph_attention){
        .heads = (int64_t)layer->heads,
        .heads_kv = is_latent ? 1 : (int64_t)layer->heads_kv,
        .key_size = (int64_t)(is_latent ? layer->latent + layer->rotated : layer->key_size),
        .value_size = (int64_t)(is_latent ? layer->latent : layer->value_size),
        .tokens = pass->tokens,
        .cached = pass->cached,
        .window = (int64_t)layer->window,
        .sequences = pass->sequences,
        .is_causal = true,
        .is_chunked = layer->is_chunked,
        .is_unfused = pass->decoder->has_unfused_attention,
        .is_in_fp32 = layer->heads_kv < layer->heads,
    };
}

static tensor_id attend(struct pass *pass, const struct qkv *qkv)
{
    const struct decoder_layer *layer = pass->layer;
    tensor_id keys = kv_cache(pass, "key_cache", layer->heads_kv * layer->key_size);
    tensor_id values = kv_cache(pass, "value_cache", layer->heads_kv * layer->value_size);
    int64_t heads = (int64_t)layer->heads;
    tensor_id sinks = GRAPH_NONE; /* one more score per head, with its share of the softmax */
    if (has_weight(pass, DECODER_TENSOR_ATTN_SINKS))
        sinks = parameter(pass, DECODER_TENSOR_ATTN_SINKS, ".weight", 1, &heads);
    pass->build.component = DECODER_ATTN_SCORES;
    return build_attention_biased(&pass->build, "scores", qkv->query, qkv->key, qkv->value, keys,
                                  values, sinks, attention_heads(pass, false));
}

static tensor_id attention(struct pass *pass, tensor_id x)
{
    tensor_id own = rotary_factors(pass);
    tensor_id factors = own >= 0 ? own : pass->rotary;
    struct qkv qkv = project(pass, x);
    qkv.query = norm(pass, DECODER_TENSOR_ATTN_Q_NORM, qkv.query);
    qkv.key = norm(pass, DECODER_TENSOR_ATTN_K_NORM, qkv.key);
    if (!pass->layer->has_no_rotation) {
        qkv.query = rotary_embedding(pass, "rotary_query", qkv.query, factors);
        qkv.key = rotary_embedding(pass, "rotary_key", qkv.key, factors);
    }
    qkv.key = write_cache(pass, "key_cache.new", qkv.key);
    qkv.value = write_cache(pass, "value_cache.new", qkv.value);
    return linear(pass, DECODER_TENSOR_ATTN_OUTPUT, attend(pass, &qkv));
}

/* ---- latent attention (MLA) ---- */

static tensor_id join(struct pass *pass, const char *name, tensor_id x, tensor_id rotated,
                      uint64_t size)
{
    struct graph_node node = {.op = GRAPH_MOVE, .name = name, .label = "concat"};
    pass->build.component = DECODER_ATTN_QKV;
    return build_node(&pass->build, &node, (tensor_id[]){x, rotated}, 2,
                      DIMS(pass->sequences, pass->tokens, (int64_t)size));
}

/* A matrix per head, on one vector per head. */
static tensor_id per_head(struct pass *pass, enum decoder_tensor tensor, tensor_id x, uint64_t in,
                          uint64_t out)
{
    int64_t heads = (int64_t)pass->layer->heads;
    struct graph_node node = {
        .op = GRAPH_LINEAR, .name = decoder_tensor_name(tensor), .split = GRAPH_SPLIT_HEADS};
    char before[64], after[64];
    chars_format(before, "%s_heads", node.name);
    chars_format(after, "%s_features", node.name);
    x = build_view(&pass->build, before, x,
                   DIMS(pass->sequences, pass->tokens, heads, (int64_t)in));
    pass->build.component = DECODER_ATTN_QKV;
    x = build_node(&pass->build, &node, (tensor_id[]){x, weight_of(pass, tensor)}, 2,
                   DIMS(pass->sequences, pass->tokens, heads, (int64_t)out));
    return build_view(&pass->build, after, x,
                      DIMS(pass->sequences, pass->tokens, heads * (int64_t)out));
}

/* Decode (weight absorption): queries are multiplied by the key matrix instead of all cached latents, so that attention
 * reads the latents themselves, once for K and V of all heads; the value matrix follows. */
static tensor_id attend_latents(struct pass *pass, tensor_id query, tensor_id rotated,
                                tensor_id latents)
{
    const struct decoder_layer *layer = pass->layer;
    uint64_t plain = layer->key_size - layer->rotated, size = layer->latent + layer->rotated;
    query = slice_features(pass, "query_plain", query, (int64_t)(layer->heads * plain));
    query = per_head(pass, DECODER_TENSOR_ATTN_K_B, query, plain, layer->latent);
    query = join(pass, "query_latent", query, rotated, layer->heads * size);
    tensor_id cache = kv_cache(pass, "latent_cache", size);
    pass->build.component = DECODER_ATTN_SCORES;
    tensor_id x = build_attention(&pass->build, "scores", query, latents, latents, cache, cache,
                                  attention_heads(pass, true));
    return per_head(pass, DECODER_TENSOR_ATTN_V_B, x, layer->latent, layer->value_size);
}

/* Prefill: K and V of all heads are computed from the latents of the new tokens. */
static tensor_id attend_expanded(struct pass *pass, tensor_id query, tensor_id rotated,
                                 tensor_id latents, tensor_id rotated_key)
{
    const struct decoder_layer *layer = pass->layer;
    uint64_t plain = layer->key_size - layer->rotated, all = layer->heads * layer->key_size;
    tensor_id key = linear(pass, DECODER_TENSOR_ATTN_K_B, latents);
    tensor_id value = linear(pass, DECODER_TENSOR_ATTN_V_B, latents);
    query = slice_features(pass, "query_plain", query, (int64_t)(layer->heads * plain));
    query = join(pass, "query", query, rotated, all);
    key = join(pass, "key", key, rotated_key, all);
    pass->build.component = DECODER_ATTN_SCORES;
    return build_attention(&pass->build, "scores", query, key, value, GRAPH_NONE, GRAPH_NONE,
                           attention_heads(pass, false));
}

static tensor_id latent_attention(struct pass *pass, tensor_id x)
{
    const struct decoder_layer *layer = pass->layer;
    int64_t latent = (int64_t)layer->latent, rotated = (int64_t)layer->rotated;
    tensor_id query = x;
    if (has_weight(pass, DECODER_TENSOR_ATTN_Q_A))
        query = norm(pass, DECODER_TENSOR_ATTN_Q_A_NORM, linear(pass, DECODER_TENSOR_ATTN_Q_A, x));
    query = linear(pass,
                   has_weight(pass, DECODER_TENSOR_ATTN_Q_B) ? DECODER_TENSOR_ATTN_Q_B
                                                             : DECODER_TENSOR_ATTN_Q,
                   query);
    tensor_id both = linear(pass, DECODER_TENSOR_ATTN_KV_A, x);
    tensor_id latents = slice_features(pass, "latent", both, latent);
    latents = norm(pass, DECODER_TENSOR_ATTN_KV_A_NORM, latents);
    tensor_id key = slice_features(pass, "key_rotated", both, rotated);
    tensor_id turned =
        slice_features(pass, "query_rotated", query, (int64_t)layer->heads * rotated);
    turned = rotary_embedding(pass, "rotary_query", turned, pass->rotary);
    key = rotary_embedding(pass, "rotary_key", key, pass->rotary);
    tensor_id cached = join(pass, "latent_and_key", latents, key, layer->latent + layer->rotated);
    cached = write_cache(pass, "latent_cache.new", cached);
    replicate(pass, cached);
    x = pass->is_decode ? attend_latents(pass, query, turned, cached)
                        : attend_expanded(pass, query, turned, latents, key);
    return linear(pass, DECODER_TENSOR_ATTN_OUTPUT, x);
}

/* ---- feed-forward ---- */

struct mlp {
    enum decoder_tensor gate, up, down;
    const char *activation, *gated; /* names of nodes */
};

static const struct mlp DENSE = {DECODER_TENSOR_FFN_GATE, DECODER_TENSOR_FFN_UP,
                                 DECODER_TENSOR_FFN_DOWN, "activation", "gated"};
static const struct mlp SHARED = {DECODER_TENSOR_FFN_GATE_SHEXP, DECODER_TENSOR_FFN_UP_SHEXP,
                                  DECODER_TENSOR_FFN_DOWN_SHEXP, "shared_activation",
                                  "shared_gated"};
static const struct mlp EXPERTS = {DECODER_TENSOR_FFN_GATE_EXPS, DECODER_TENSOR_FFN_UP_EXPS,
                                   DECODER_TENSOR_FFN_DOWN_EXPS, "activation", "gated"};

static tensor_id activate(struct pass *pass, const struct mlp *weights, tensor_id gate,
                          tensor_id up)
{
    struct build *build = &pass->build;
    build->component = DECODER_FFN_GATE_UP;
    tensor_id active = build_op(build, decoder_activation_op(pass->decoder->activation),
                                weights->activation, gate >= 0 ? gate : up);
    return gate >= 0 ? build_binary(build, GRAPH_MUL, weights->gated, active, up) : active;
}

static tensor_id mlp(struct pass *pass, const struct mlp *weights, tensor_id x)
{
    tensor_id gate = GRAPH_NONE, up = linear(pass, weights->up, x);
    if (has_weight(pass, weights->gate)) {
        gate = linear(pass, weights->gate, x);
    } else if (pass->layer->is_fused && weights == &DENSE) {
        int64_t width = (int64_t)pass->layer->feed_forward;
        gate = slice_features(pass, "gate", up, width);
        up = slice_features(pass, "up", up, width);
    }
    return linear(pass, weights->down, activate(pass, weights, gate, up));
}

/* ---- mixture of experts ---- */

/* The fraction of the experts that a pass reads, assuming that every token chooses its own at random. */
static double active_fraction(const struct pass *pass)
{
    double total = (double)pass->decoder->experts, used = (double)pass->decoder->experts_used;
    double tokens = (double)pass->tokens * (double)pass->sequences;
    return 1 - pow(1 - used / total, tokens);
}

static tensor_id expert_linear(struct pass *pass, enum decoder_tensor tensor, tensor_id x)
{
    struct graph_node node = {.op = GRAPH_LINEAR,
                              .name = decoder_tensor_name(tensor),
                              .weight_fraction = active_fraction(pass)};
    tensor_id weight = weight_of(pass, tensor), bias = bias_of(pass, tensor);
    pass->build.component = decoder_tensor_component(tensor);
    return build_node(&pass->build, &node, (tensor_id[]){x, weight, bias}, bias >= 0 ? 3 : 2,
                      DIMS(pass->sequences, pass->tokens, (int64_t)pass->decoder->experts_used,
                           (int64_t)pass->weights[tensor].rows));
}

/* The weights of the chosen experts: (sequences, tokens, experts used). */
static tensor_id route(struct pass *pass, tensor_id x)
{
    struct build *build = &pass->build;
    tensor_id logits = linear(pass, DECODER_TENSOR_FFN_GATE_INP, x);
    tensor_id probabilities = build_op(build, GRAPH_SOFTMAX, "router", logits);
    struct graph_node node = {.op = GRAPH_MOVE, .name = "chosen", .label = "top_k"};
    return build_node(build, &node, &probabilities, 1,
                      DIMS(pass->sequences, pass->tokens, (int64_t)pass->decoder->experts_used));
}

static tensor_id expert_mlp(struct pass *pass, tensor_id x)
{
    struct build *build = &pass->build;
    tensor_id chosen = route(pass, x);
    tensor_id gate =
        has_weight(pass, EXPERTS.gate) ? expert_linear(pass, EXPERTS.gate, x) : GRAPH_NONE;
    tensor_id up = expert_linear(pass, EXPERTS.up, x);
    tensor_id outputs = expert_linear(pass, EXPERTS.down, activate(pass, &EXPERTS, gate, up));
    struct graph_node weighted = {.op = GRAPH_MUL, .name = "weighted"};
    struct graph_node sum = {.op = GRAPH_REDUCE, .name = "experts_sum"};
    int64_t dims[] = {pass->sequences, pass->tokens, (int64_t)pass->decoder->experts_used,
                      build_dim(build, outputs, 3)};
    tensor_id scaled = build_node(build, &weighted, (tensor_id[]){outputs, chosen}, 2, 4, dims);
    dims[2] = dims[3];
    return build_node(build, &sum, &scaled, 1, 3, dims);
}

/* Experts used by every token, possibly with their own gate. */
static tensor_id shared_mlp(struct pass *pass, tensor_id x)
{
    struct build *build = &pass->build;
    tensor_id output = mlp(pass, &SHARED, x);
    if (!has_weight(pass, DECODER_TENSOR_FFN_GATE_INP_SHEXP))
        return output;
    tensor_id weight = linear(pass, DECODER_TENSOR_FFN_GATE_INP_SHEXP, x);
    build->component = DECODER_FFN_DOWN;
    weight = build_op(build, GRAPH_SIGMOID, "shared_gate", weight);
    return build_binary(build, GRAPH_MUL, "shared_weighted", output, weight);
}

static tensor_id feed_forward(struct pass *pass, tensor_id x)
{
    struct build *build = &pass->build;
    tensor_id dense = GRAPH_NONE, experts = GRAPH_NONE;
    if (has_weight(pass, DENSE.down))
        dense = mlp(pass, &DENSE, x);
    else if (has_weight(pass, SHARED.down))
        dense = shared_mlp(pass, x);
    if (has_weight(pass, EXPERTS.down))
        experts = expert_mlp(pass, x);
    if (dense < 0 || experts < 0)
        return dense >= 0 ? dense : experts;
    build->component = DECODER_FFN_DOWN;
    return build_binary(build, GRAPH_ADD, "experts_add", experts, dense);
}

/* ---- options ---- */

static enum err complete_options(const struct decoder *decoder, const char *name,
                                 struct graph_options *options, struct error *why)
{
    bool is_small = decoder->context && decoder->context < DECODER_DEFAULT_TOKENS;
    int64_t tokens = is_small ? (int64_t)decoder->context : DECODER_DEFAULT_TOKENS;
    if (options->phase == GRAPH_FORWARD)
        options->phase = GRAPH_PREFILL;
    return graph_options_complete(
        options, name, true, &(struct graph_options){.tokens = tokens, .context = tokens}, why);
}

/* Tensors that a graph needs and a file may lack. */
static enum err check_layer(const struct decoder *decoder, size_t number, struct error *why)
{
    const struct decoder_weight *weights = decoder->layers[number].weights;
    static const enum decoder_tensor PAIRS[][2] = {
        {DECODER_TENSOR_FFN_DOWN, DECODER_TENSOR_FFN_UP},
        {DECODER_TENSOR_FFN_DOWN_SHEXP, DECODER_TENSOR_FFN_UP_SHEXP},
        {DECODER_TENSOR_FFN_DOWN_EXPS, DECODER_TENSOR_FFN_UP_EXPS},
        {DECODER_TENSOR_FFN_DOWN_EXPS, DECODER_TENSOR_FFN_GATE_INP},
    };
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++)
        if (weights[PAIRS[i][0]].columns && !weights[PAIRS[i][1]].columns)
            return err_set(why, ERR_BAD_VALUE, "%s: layer %zu has '%s' but no '%s'",
                           decoder->name[0] ? decoder->name : decoder->architecture, number,
                           decoder_tensor_name(PAIRS[i][0]), decoder_tensor_name(PAIRS[i][1]));
    return ERR_OK;
}

/* ---- layers ---- */

static tensor_id residual_add(struct pass *pass, enum decoder_component component, const char *name,
                              tensor_id x, tensor_id stream)
{
    pass->build.component = component;
    return build_binary(&pass->build, GRAPH_ADD, name, stream, x);
}

/* Attention and feed-forward in parallel, after one norm. */
static bool shares_norm(const struct pass *pass)
{
    return has_weight(pass, DECODER_TENSOR_ATTN_NORM) &&
           !has_weight(pass, DECODER_TENSOR_FFN_NORM) &&
           !has_weight(pass, DECODER_TENSOR_POST_ATTENTION_NORM) &&
           !has_weight(pass, DECODER_TENSOR_POST_FFW_NORM);
}

static tensor_id attention_of_layer(struct pass *pass, tensor_id x)
{
    return pass->layer->latent ? latent_attention(pass, x) : attention(pass, x);
}

/* Both read the same norm, and are added. */
static tensor_id add_mixer(struct pass *pass, tensor_id normed, tensor_id attended)
{
    const struct mamba2_pass tokens = {pass->sequences, pass->tokens, pass->is_decode};
    if (!pass->decoder->mixer.heads)
        return attended;
    pass->build.component = DECODER_ATTN_QKV;
    tensor_id mixed = mamba2_mixer(&pass->build, &pass->decoder->mixer, &tokens, normed);
    return residual_add(pass, DECODER_ATTN_OUT, "mixer.add", mixed, attended);
}

static bool is_last_layer(const struct pass *pass)
{
    return pass->layer + 1 == pass->decoder->layers + pass->decoder->layer_count;
}

static tensor_id last_token(struct pass *pass, const char *name, tensor_id x)
{
    if (build_dim(&pass->build, x, 1) <= 1)
        return x;
    return build_rearrange(&pass->build, name, x,
                           DIMS(pass->sequences, 1, build_dim(&pass->build, x, 2)));
}

/* After the last attention, before its residual add. */
static void prune(struct pass *pass, tensor_id *attended, tensor_id *stream, tensor_id *normed)
{
    if (pass->pruning != GRAPH_PRUNE_TO_LAST || !is_last_layer(pass))
        return;
    *attended = last_token(pass, "last_attended", *attended);
    *stream = last_token(pass, "last_stream", *stream);
    if (normed)
        *normed = last_token(pass, "last_normed", *normed);
    pass->tokens = 1;
}

/* Post-norm layers: each norm follows the residual add. */
static tensor_id add_layer_with_norms_after(struct pass *pass, tensor_id stream)
{
    tensor_id x = attention_of_layer(pass, stream);
    if (pass->pruning == GRAPH_PRUNE_ALL && is_last_layer(pass))
        return x;
    prune(pass, &x, &stream, NULL);
    x = residual_add(pass, DECODER_ATTN_OUT, "attn_add", x, stream);
    stream = norm(pass, DECODER_TENSOR_ATTN_NORM, x);
    x = residual_add(pass, DECODER_FFN_DOWN, "ffn_add", feed_forward(pass, stream), stream);
    return norm(pass, DECODER_TENSOR_FFN_NORM, x);
}

static tensor_id add_layer(struct pass *pass, tensor_id stream)
{
    if (pass->decoder->is_norm_after_add)
        return add_layer_with_norms_after(pass, stream);
    tensor_id normed = norm(pass, DECODER_TENSOR_ATTN_NORM, stream);
    tensor_id attended = add_mixer(pass, normed, attention_of_layer(pass, normed));
    if (pass->pruning == GRAPH_PRUNE_ALL && is_last_layer(pass))
        return attended;
    prune(pass, &attended, &stream, shares_norm(pass) ? &normed : NULL);
    tensor_id input = stream;
    attended = norm(pass, DECODER_TENSOR_POST_ATTENTION_NORM, attended);
    stream = residual_add(pass, DECODER_ATTN_OUT, "attn_add", attended, stream);
    if (!shares_norm(pass))
        normed = norm(pass, DECODER_TENSOR_FFN_NORM, pass->decoder->is_parallel ? input : stream);
    tensor_id forward = feed_forward(pass, normed);
    forward = norm(pass, DECODER_TENSOR_POST_FFW_NORM, forward);
    return residual_add(pass, DECODER_FFN_DOWN, "ffn_add", forward, stream);
}

static tensor_id add_layers(struct pass *pass, tensor_id stream)
{
    for (size_t i = 0; i < pass->decoder->layer_count && !pass->build.err; i++) {
        pass->layer = &pass->decoder->layers[i];
        pass->weights = pass->layer->weights;
        pass->build.layer = (int32_t)i;
        build_scope(&pass->build, "blk.%zu.", i);
        stream = add_layer(pass, stream);
    }
    pass->layer = NULL;
    pass->weights = pass->decoder->outside_weights;
    pass->build.layer = GRAPH_NONE;
    build_root(&pass->build);
    return stream;
}

/* ---- the model ---- */

/* Logits of the last token of each sequence, or the output of another head. */
static void add_head(struct pass *pass, tensor_id stream, tensor_id table)
{
    struct build *build = &pass->build;
    const struct decoder *decoder = pass->decoder;
    build->component = DECODER_HEAD;
    if (!decoder->has_no_head && !decoder->has_head_per_token)
        stream = last_token(pass, "last_token", stream);
    stream = norm(pass, DECODER_TENSOR_OUTPUT_NORM, stream);
    build->component = DECODER_HEAD;
    if (has_weight(pass, DECODER_TENSOR_PROJECT_OUT))
        stream = linear(pass, DECODER_TENSOR_PROJECT_OUT, stream);
    if (decoder->has_tied_embeddings && !decoder->has_no_head)
        stream = build_linear_with(build, "output", stream, table, GRAPH_NONE,
                                   (int64_t)decoder->vocabulary);
    else if (!decoder->has_no_head)
        stream = linear(pass, DECODER_TENSOR_OUTPUT, stream);
    build_output(build, stream);
}

/* Operations of some models between the embedding and the first layer. */
static tensor_id embed(struct pass *pass, tensor_id ids, tensor_id table)
{
    struct build *build = &pass->build;
    const struct decoder_weight *rows = &pass->weights[DECODER_TENSOR_POSITION_EMBD];
    build->component = DECODER_EMBEDDING;
    tensor_id stream = build_embedding_with(build, "token_embd", ids, table);
    if (has_weight(pass, DECODER_TENSOR_PROJECT_IN))
        stream = linear(pass, DECODER_TENSOR_PROJECT_IN, stream);
    if (rows->columns) {
        if ((uint64_t)(pass->cached + pass->tokens) > rows->rows)
            return build_fail(build, "position_embd", "has too few positions for so many tokens");
        tensor_id places = build_input(build, "positions", GRAPH_INT32, DIMS(1, pass->tokens));
        places = build_embedding_with(build, "position_embd", places,
                                      weight_of(pass, DECODER_TENSOR_POSITION_EMBD));
        stream = build_binary(build, GRAPH_ADD, "add_positions", stream, places);
    }
    return norm(pass, DECODER_TENSOR_TOKEN_EMBD_NORM, stream);
}

static void add_model(struct pass *pass)
{
    struct build *build = &pass->build;
    tensor_id ids = build_input(build, "tokens", GRAPH_INT32, DIMS(pass->sequences, pass->tokens));
    pass->weights = pass->decoder->outside_weights;
    tensor_id table = weight_of(pass, DECODER_TENSOR_TOKEN_EMBD);
    tensor_id stream = embed(pass, ids, table);
    pass->rotary = rotary_factors(pass);
    stream = add_layers(pass, stream);
    if (pass->pruning == GRAPH_PRUNE_ALL)
        build_output(build, stream);
    else
        add_head(pass, stream, table);
}

enum err decoder_graph(const struct decoder *decoder, struct graph_options *options,
                       struct graph *out, struct error *why)
{
    const char *name = decoder->name[0] ? decoder->name : decoder->architecture;
    enum err err = complete_options(decoder, name, options, why);
    for (size_t i = 0; i < decoder->layer_count && !err; i++)
        err = check_layer(decoder, i, why);
    if (err)
        return err;
    bool is_decode = options->phase == GRAPH_DECODE;
    struct pass pass = {
        .build = build_begin(out, name, why),
        .decoder = decoder,
        .sequences = options->batch,
        .tokens = is_decode ? 1 : options->tokens,
        .cached = is_decode ? options->context - 1 : options->cached,
        .rotary = GRAPH_NONE,
        .is_decode = is_decode,
        .pruning = options->pruning,
    };
    out->batch = (double)pass.sequences;
    out->tokens = (double)pass.sequences * (double)pass.tokens;
    add_model(&pass);
    return build_end(&pass.build);
}
