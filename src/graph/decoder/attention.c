/* Attention of one layer, and what it leaves in the cache. */
#include "graph/decoder/making.h"

struct qkv {
    tensor_id query, key, value;
};

static struct qkv project(struct making *making, tensor_id x)
{
    const struct decoder_layer *layer = making->layer;
    if (!making_has(making, DECODER_TENSOR_ATTN_QKV))
        return (struct qkv){making_linear(making, DECODER_TENSOR_ATTN_Q, x),
                            making_linear(making, DECODER_TENSOR_ATTN_K, x),
                            making_linear(making, DECODER_TENSOR_ATTN_V, x)};
    tensor_id all = making_linear(making, DECODER_TENSOR_ATTN_QKV, x);
    return (struct qkv){
        making_slice(making, "query", all, (int64_t)(layer->heads * layer->key_size)),
        making_slice(making, "key", all, (int64_t)(layer->heads_kv * layer->key_size)),
        making_slice(making, "value", all, (int64_t)(layer->heads_kv * layer->value_size))};
}

/* By the factors of the layer, or of the model, or by the plain rule. */
static tensor_id rotate(struct making *making, const char *name, tensor_id x, tensor_id factors)
{
    struct build *build = &making->build;
    struct graph_node node = {.op = GRAPH_ROTATION, .name = name};
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), build_dim(build, x, 2)};
    build->component = DECODER_ATTN_QKV;
    return build_node(build, &node, (tensor_id[]){x, factors}, factors >= 0 ? 2 : 1, 3, dims);
}

/* Attention reads what was written here, beside what earlier passes wrote. */
static tensor_id write_cache(struct making *making, const char *name, tensor_id x)
{
    making->build.component = DECODER_ATTN_QKV;
    tensor_id kept = build_op(&making->build, GRAPH_CACHE_WRITE, name, x);
    if (kept >= 0)
        making->build.graph->tensors[kept].role = GRAPH_CACHE;
    return kept;
}

/* Of the tokens in the cache, those that the first of the new ones sees: later ones see fewer. */
static int64_t tokens_read(const struct making *making)
{
    int64_t window = (int64_t)making->layer->window;
    return window > 0 && making->before > window - 1 ? window - 1 : making->before;
}

static tensor_id earlier(struct making *making, const char *name, uint64_t size)
{
    int64_t dims[] = {making->sequences, tokens_read(making),
                      (int64_t)(making->layer->heads_kv * size)};
    if (dims[1] == 0)
        return GRAPH_NONE;
    return build_tensor(&making->build, GRAPH_CACHE, name, 3, dims);
}

static tensor_id score(struct making *making, const struct qkv *qkv)
{
    const struct decoder_layer *layer = making->layer;
    struct graph_attention attention = {
        .heads = (int64_t)layer->heads,
        .heads_kv = (int64_t)layer->heads_kv,
        .key_size = (int64_t)layer->key_size,
        .value_size = (int64_t)layer->value_size,
        .tokens = making->tokens,
        .before = making->before,
        .window = (int64_t)layer->window,
        .sequences = making->sequences,
        .is_causal = true,
    };
    tensor_id keys = earlier(making, "key_cache", layer->key_size);
    tensor_id values = earlier(making, "value_cache", layer->value_size);
    making->build.component = DECODER_ATTN_SCORES;
    return build_attention(&making->build, "scores", qkv->query, qkv->key, qkv->value, keys, values,
                           attention);
}

tensor_id making_attention(struct making *making, tensor_id x)
{
    tensor_id own = making_rotation(making), factors = own >= 0 ? own : making->rotation;
    struct qkv qkv = project(making, x);
    qkv.query = making_norm(making, DECODER_TENSOR_ATTN_Q_NORM, qkv.query);
    qkv.key = making_norm(making, DECODER_TENSOR_ATTN_K_NORM, qkv.key);
    qkv.query = rotate(making, "rotary_query", qkv.query, factors);
    qkv.key = rotate(making, "rotary_key", qkv.key, factors);
    qkv.key = write_cache(making, "key_cache.new", qkv.key);
    qkv.value = write_cache(making, "value_cache.new", qkv.value);
    return making_linear(making, DECODER_TENSOR_ATTN_OUTPUT, score(making, &qkv));
}
