/* The tensors of a decoder, each added once under its component to the sums of its layer and of the model; and the decoder
 * as a graph: attention with its KV cache, then a feed-forward network that is dense, a mixture of experts, or both. */
#include "graph/decoder.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "graph/build.h"
#include "graph/gguf.h"
#include "graph/options.h"

/* ---- tensors by component ---- */

static const struct {
    const char *name;
    enum decoder_component component;
    enum decoder_role role;
} TENSORS[DECODER_TENSOR_COUNT] = {
#define DECODER_TENSOR(constant, name, component, role, columns, rows)                             \
    {name, DECODER_##component, ROLE_##role},
#include "graph/decoder_tensors.def"
#undef DECODER_TENSOR
};

const char *decoder_tensor_name(enum decoder_tensor tensor)
{
    return TENSORS[tensor].name;
}

enum decoder_component decoder_tensor_component(enum decoder_tensor tensor)
{
    return TENSORS[tensor].component;
}

static uint64_t elements(const struct decoder_entry *entry)
{
    return entry->columns * entry->rows * entry->matrices;
}

/* The type is that of a matrix; of a vector only where there is no matrix. */
static void update_type(struct decoder_part *part, const struct decoder_entry *entry,
                        bool is_vector)
{
    bool has_matrix = part->parameters > part->vector_parameters;
    if (is_vector && has_matrix)
        return;
    if (!is_vector && !has_matrix)
        part->largest = 0;
    else if (part->type && part->type != entry->type)
        part->is_mixed = true;
    if (entry->bytes > part->largest) {
        part->largest = entry->bytes;
        part->type = entry->type;
    }
}

static void add_to_part(struct decoder_part *part, const struct decoder_entry *entry)
{
    enum decoder_role role = TENSORS[entry->tensor].role;
    bool is_embedding = TENSORS[entry->tensor].component == DECODER_EMBEDDING;
    bool is_vector = entry->is_bias || role == ROLE_NORM || role == ROLE_NORM_AFTER ||
                     (role == ROLE_TABLE && !is_embedding);
    update_type(part, entry, is_vector);
    part->parameters += elements(entry);
    part->bytes += entry->bytes;
    if (is_vector)
        part->vector_parameters += elements(entry);
    if (role == ROLE_EXPERTS) {
        part->expert_parameters += elements(entry);
        part->expert_bytes += entry->bytes;
    }
    if (entry->is_bias)
        part->bias_parameters += elements(entry);
}

/* One weight may be shared by all heads. */
static uint64_t normalized_elements(const struct decoder_layer *layer,
                                    const struct decoder_entry *entry)
{
    if (entry->tensor == DECODER_TENSOR_ATTN_Q_NORM)
        return layer->heads * layer->key_size;
    if (entry->tensor == DECODER_TENSOR_ATTN_K_NORM)
        return layer->heads_kv * layer->key_size;
    return entry->columns;
}

static void add_norm(struct decoder_layer *layer, const struct decoder_entry *entry)
{
    if (entry->is_bias)
        layer->has_layer_norm = true;
    else if (TENSORS[entry->tensor].role == ROLE_NORM)
        layer->norm_elements += normalized_elements(layer, entry);
    else
        layer->norm_elements_after += normalized_elements(layer, entry);
}

static void add_weight(struct decoder_weight *weight, const struct decoder_entry *entry)
{
    weight->is_stored = entry->is_stored;
    if (entry->is_bias) {
        weight->bias_elements = elements(entry);
        weight->bias_bytes = entry->bytes;
        return;
    }
    weight->columns = entry->columns;
    weight->rows = entry->rows;
    weight->matrices = entry->matrices;
    weight->bytes = entry->bytes;
    weight->type = entry->type;
}

void decoder_add_tensor(struct decoder *decoder, int layer, const struct decoder_entry *entry)
{
    struct decoder_layer *inside = layer < 0 ? NULL : &decoder->layers[layer];
    enum decoder_component component = TENSORS[entry->tensor].component;
    add_to_part(inside ? &inside->parts[component] : &decoder->outside[component], entry);
    add_weight(inside ? &inside->weights[entry->tensor] : &decoder->outside_weights[entry->tensor],
               entry);
    if (inside && component == DECODER_NORM)
        add_norm(inside, entry);
    decoder->parameters += elements(entry);
    decoder->bytes += entry->bytes;
}

void decoder_finish(struct decoder *decoder)
{
    const struct decoder_layer *first = &decoder->layers[0];
    decoder->heads = first->heads;
    decoder->heads_kv = first->heads_kv;
    decoder->key_size = first->key_size;
    decoder->value_size = first->value_size;
    decoder->feed_forward = first->feed_forward ? first->feed_forward : first->expert_feed_forward;
}

void decoder_release(struct decoder *decoder)
{
    free(decoder->layers);
    *decoder = (struct decoder){0};
}

/* ---- the graph ---- */

/* The graph while it is built. */
struct pass {
    struct build build;
    const struct decoder *decoder;
    const struct decoder_layer *layer;    /* NULL outside the layers */
    const struct decoder_weight *weights; /* of the layer, or outside */
    int64_t sequences, tokens, cached; /* of one sequence: new tokens, and those in the KV cache */
    tensor_id rotary; /* factors that all layers share; GRAPH_NONE: computed from positions */
};

/* ---- weights and what they are used for ---- */

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

static tensor_id linear(struct pass *pass, enum decoder_tensor tensor, tensor_id x)
{
    tensor_id weight = weight_of(pass, tensor), bias = bias_of(pass, tensor);
    pass->build.component = decoder_tensor_component(tensor);
    return build_linear_with(&pass->build, decoder_tensor_name(tensor), x, weight, bias,
                             (int64_t)pass->weights[tensor].rows);
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
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), build_dim(build, x, 2)};
    build->component = DECODER_NORM;
    return build_node(build, &node, inputs, inputs[2] >= 0 ? 3 : 2, 3, dims);
}

static tensor_id slice_features(struct pass *pass, const char *name, tensor_id x, int64_t size)
{
    struct graph_node node = {.op = GRAPH_VIEW, .name = name, .label = "slice"};
    int64_t dims[] = {build_dim(&pass->build, x, 0), build_dim(&pass->build, x, 1), size};
    return build_node(&pass->build, &node, &x, 1, 3, dims);
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
    for (size_t i = 0; i < sizeof FACTORS / sizeof *FACTORS; i++) {
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
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), build_dim(build, x, 2)};
    build->component = DECODER_ATTN_QKV;
    return build_node(build, &node, (tensor_id[]){x, factors}, factors >= 0 ? 2 : 1, 3, dims);
}

/* Attention reads what is written here, beside what earlier passes wrote. */
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
    return window > 0 && pass->cached > window - 1 ? window - 1 : pass->cached;
}

static tensor_id kv_cache(struct pass *pass, const char *name, uint64_t size)
{
    int64_t dims[] = {pass->sequences, cached_tokens_read(pass),
                      (int64_t)(pass->layer->heads_kv * size)};
    if (dims[1] == 0)
        return GRAPH_NONE;
    return build_tensor(&pass->build, GRAPH_CACHE, name, 3, dims);
}

static tensor_id attend(struct pass *pass, const struct qkv *qkv)
{
    const struct decoder_layer *layer = pass->layer;
    struct graph_attention attention = {
        .heads = (int64_t)layer->heads,
        .heads_kv = (int64_t)layer->heads_kv,
        .key_size = (int64_t)layer->key_size,
        .value_size = (int64_t)layer->value_size,
        .tokens = pass->tokens,
        .cached = pass->cached,
        .window = (int64_t)layer->window,
        .sequences = pass->sequences,
        .is_causal = true,
    };
    tensor_id keys = kv_cache(pass, "key_cache", layer->key_size);
    tensor_id values = kv_cache(pass, "value_cache", layer->value_size);
    pass->build.component = DECODER_ATTN_SCORES;
    return build_attention(&pass->build, "scores", qkv->query, qkv->key, qkv->value, keys, values,
                           attention);
}

static tensor_id attention(struct pass *pass, tensor_id x)
{
    tensor_id own = rotary_factors(pass), factors = own >= 0 ? own : pass->rotary;
    struct qkv qkv = project(pass, x);
    qkv.query = norm(pass, DECODER_TENSOR_ATTN_Q_NORM, qkv.query);
    qkv.key = norm(pass, DECODER_TENSOR_ATTN_K_NORM, qkv.key);
    qkv.query = rotary_embedding(pass, "rotary_query", qkv.query, factors);
    qkv.key = rotary_embedding(pass, "rotary_key", qkv.key, factors);
    qkv.key = write_cache(pass, "key_cache.new", qkv.key);
    qkv.value = write_cache(pass, "value_cache.new", qkv.value);
    return linear(pass, DECODER_TENSOR_ATTN_OUTPUT, attend(pass, &qkv));
}

/* ---- feed-forward ---- */

struct mlp {
    enum decoder_tensor gate, up, down;
};

static const struct mlp DENSE = {DECODER_TENSOR_FFN_GATE, DECODER_TENSOR_FFN_UP,
                                 DECODER_TENSOR_FFN_DOWN};
static const struct mlp SHARED = {DECODER_TENSOR_FFN_GATE_SHEXP, DECODER_TENSOR_FFN_UP_SHEXP,
                                  DECODER_TENSOR_FFN_DOWN_SHEXP};
static const struct mlp EXPERTS = {DECODER_TENSOR_FFN_GATE_EXPS, DECODER_TENSOR_FFN_UP_EXPS,
                                   DECODER_TENSOR_FFN_DOWN_EXPS};

static enum graph_op activation(const struct pass *pass)
{
    return pass->decoder->activation == DECODER_SILU ? GRAPH_SILU : GRAPH_GELU;
}

static tensor_id activate(struct pass *pass, tensor_id gate, tensor_id up)
{
    struct build *build = &pass->build;
    build->component = DECODER_FFN_GATE_UP;
    tensor_id active = build_op(build, activation(pass), "activation", gate >= 0 ? gate : up);
    return gate >= 0 ? build_binary(build, GRAPH_MUL, "gated", active, up) : active;
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
    return linear(pass, weights->down, activate(pass, gate, up));
}

/* ---- mixture of experts ---- */

/* The fraction of the experts that a pass reads, if every token chooses its own at random. */
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
    int64_t dims[] = {pass->sequences, pass->tokens, (int64_t)pass->decoder->experts_used,
                      (int64_t)pass->weights[tensor].rows};
    tensor_id weight = weight_of(pass, tensor);
    pass->build.component = decoder_tensor_component(tensor);
    return build_node(&pass->build, &node, (tensor_id[]){x, weight}, 2, 4, dims);
}

/* The weights of the chosen experts: (sequences, tokens, experts used). */
static tensor_id route(struct pass *pass, tensor_id x)
{
    struct build *build = &pass->build;
    tensor_id logits = linear(pass, DECODER_TENSOR_FFN_GATE_INP, x);
    tensor_id probabilities = build_op(build, GRAPH_SOFTMAX, "router", logits);
    struct graph_node node = {.op = GRAPH_MOVE, .name = "chosen", .label = "top_k"};
    int64_t dims[] = {pass->sequences, pass->tokens, (int64_t)pass->decoder->experts_used};
    return build_node(build, &node, &probabilities, 1, 3, dims);
}

static tensor_id expert_mlp(struct pass *pass, tensor_id x)
{
    struct build *build = &pass->build;
    tensor_id chosen = route(pass, x);
    tensor_id gate =
        has_weight(pass, EXPERTS.gate) ? expert_linear(pass, EXPERTS.gate, x) : GRAPH_NONE;
    tensor_id up = expert_linear(pass, EXPERTS.up, x);
    tensor_id outputs = expert_linear(pass, EXPERTS.down, activate(pass, gate, up));
    struct graph_node weighted = {.op = GRAPH_MUL, .name = "weighted"};
    struct graph_node sum = {.op = GRAPH_REDUCE, .name = "experts_sum"};
    int64_t dims[] = {pass->sequences, pass->tokens, (int64_t)pass->decoder->experts_used,
                      build_dim(build, outputs, 3)};
    tensor_id scaled = build_node(build, &weighted, (tensor_id[]){outputs, chosen}, 2, 4, dims);
    dims[2] = dims[3];
    return build_node(build, &sum, &scaled, 1, 3, dims);
}

/* Experts that every token uses, perhaps with a gate of their own. */
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
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++)
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

/* Attention and feed-forward side by side, after one norm. */
static bool is_parallel(const struct pass *pass)
{
    return has_weight(pass, DECODER_TENSOR_ATTN_NORM) &&
           !has_weight(pass, DECODER_TENSOR_FFN_NORM) &&
           !has_weight(pass, DECODER_TENSOR_POST_ATTENTION_NORM) &&
           !has_weight(pass, DECODER_TENSOR_POST_FFW_NORM);
}

static tensor_id add_layer(struct pass *pass, tensor_id stream)
{
    tensor_id normed = norm(pass, DECODER_TENSOR_ATTN_NORM, stream);
    tensor_id attended = attention(pass, normed);
    attended = norm(pass, DECODER_TENSOR_POST_ATTENTION_NORM, attended);
    stream = residual_add(pass, DECODER_ATTN_OUT, "attn_add", attended, stream);
    if (!is_parallel(pass))
        normed = norm(pass, DECODER_TENSOR_FFN_NORM, stream);
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
    build_scope(&pass->build, "%s", "");
    return stream;
}

/* ---- the model ---- */

/* Logits of the last token of each sequence. */
static void add_head(struct pass *pass, tensor_id stream, tensor_id table)
{
    struct build *build = &pass->build;
    build->component = DECODER_HEAD;
    if (pass->tokens > 1)
        stream = build_rearrange(build, "last_token", stream, 3,
                                 (int64_t[]){pass->sequences, 1, build_dim(build, stream, 2)});
    stream = norm(pass, DECODER_TENSOR_OUTPUT_NORM, stream);
    build->component = DECODER_HEAD;
    if (pass->decoder->has_tied_embeddings)
        stream = build_linear_with(build, "output", stream, table, GRAPH_NONE,
                                   (int64_t)pass->decoder->vocabulary);
    else
        stream = linear(pass, DECODER_TENSOR_OUTPUT, stream);
    build_output(build, stream);
}

static void add_model(struct pass *pass)
{
    struct build *build = &pass->build;
    tensor_id ids =
        build_input(build, "tokens", GRAPH_INT32, 2, (int64_t[]){pass->sequences, pass->tokens});
    pass->weights = pass->decoder->outside_weights;
    tensor_id table = weight_of(pass, DECODER_TENSOR_TOKEN_EMBD);
    build->component = DECODER_EMBEDDING;
    tensor_id stream = build_embedding_with(build, "token_embd", ids, table);
    pass->rotary = rotary_factors(pass);
    stream = add_layers(pass, stream);
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
        .cached = is_decode ? options->context - 1 : 0,
        .rotary = GRAPH_NONE,
    };
    out->batch = (double)pass.sequences;
    out->tokens = (double)pass.sequences * (double)pass.tokens;
    add_model(&pass);
    return build_end(&pass.build);
}
