/* Each block sets the component of the nodes that it adds, and resets it at its end. */
#include "graph/blocks.h"

static int64_t heads_kv(const struct block *block)
{
    return block->heads_kv > 0 ? block->heads_kv : block->heads;
}

static int64_t head_size(const struct block *block)
{
    if (block->head_size > 0)
        return block->head_size;
    return block->heads > 0 ? block->hidden / block->heads : 0;
}

tensor_id block_norm(struct build *build, const struct block *block, const char *name, tensor_id x)
{
    enum decoder_component previous = build->component;
    build->component = DECODER_NORM;
    x = build_norm(build, block->norm, name, x, block->norm == GRAPH_LAYER_NORM);
    build->component = previous;
    return x;
}

static void cache_write(struct build *build, const char *name, tensor_id x, int64_t size)
{
    struct graph_node node = {.op = GRAPH_CACHE_WRITE, .name = name};
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), size};
    tensor_id cache = build_node(build, &node, &x, 1, 3, dims);
    if (cache >= 0)
        build->graph->tensors[cache].role = GRAPH_CACHE;
}

/* One of several tensors that are fused along the last dimension. */
static tensor_id split(struct build *build, const char *name, tensor_id x, int64_t size)
{
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), size};
    return build_rearrange(build, name, x, 3, dims);
}

/* ---- attention ---- */

struct qkv {
    tensor_id query, key, value;
};

static tensor_id rotary(struct build *build, const struct block *block, const char *name,
                        tensor_id x)
{
    return block->has_rotary ? build_op(build, GRAPH_ROTATION, name, x) : x;
}

/* Cross-attention whose K and V were computed in an earlier pass. */
static struct qkv cached_cross(struct build *build, const struct block *block,
                               const struct block_attention_names *names,
                               const struct block_pass *pass, tensor_id x)
{
    int64_t dims[] = {build_dim(build, x, 0), pass->cross_tokens,
                      heads_kv(block) * head_size(block)};
    tensor_id query =
        build_linear(build, names->query, x, block->heads * head_size(block), block->has_qkv_bias);
    return (struct qkv){query, build_tensor(build, GRAPH_CACHE, "cross_key_cache", 3, dims),
                        build_tensor(build, GRAPH_CACHE, "cross_value_cache", 3, dims)};
}

static struct qkv project(struct build *build, const struct block *block,
                          const struct block_attention_names *names, const struct block_pass *pass,
                          tensor_id x)
{
    int64_t query_size = block->heads * head_size(block);
    int64_t key_size = heads_kv(block) * head_size(block);
    bool has_bias = block->has_qkv_bias;
    if (pass->cross_tokens > 0 && pass->cross_states < 0)
        return cached_cross(build, block, names, pass, x);
    tensor_id source = pass->cross_tokens > 0 ? pass->cross_states : x;
    struct qkv qkv;
    if (block->has_fused_qkv) {
        tensor_id fused = build_linear(build, names->query, x, query_size + 2 * key_size, has_bias);
        if (!block->has_rotary) /* attention reads the fused tensor, once */
            return (struct qkv){fused, fused, fused};
        qkv = (struct qkv){split(build, "query", fused, query_size),
                           split(build, "key", fused, key_size),
                           split(build, "value", fused, key_size)};
    } else {
        bool has_key_bias = has_bias && !block->has_no_key_bias;
        qkv = (struct qkv){build_linear(build, names->query, x, query_size, has_bias),
                           build_linear(build, names->key, source, key_size, has_key_bias),
                           build_linear(build, names->value, source, key_size, has_bias)};
    }
    qkv.query = rotary(build, block, "rotary_query", qkv.query);
    qkv.key = rotary(build, block, "rotary_key", qkv.key);
    return qkv;
}

static void write_caches(struct build *build, const struct block *block,
                         const struct block_pass *pass, const struct qkv *qkv)
{
    int64_t size = heads_kv(block) * head_size(block);
    if (!pass->has_cache || (pass->cross_tokens > 0 && pass->cross_states < 0))
        return;
    cache_write(build, pass->cross_tokens > 0 ? "cross_key_cache" : "key_cache.new", qkv->key,
                size);
    cache_write(build, pass->cross_tokens > 0 ? "cross_value_cache" : "value_cache.new", qkv->value,
                size);
}

/* The cached tokens that the first new token attends to: with a window, later ones attend to fewer. */
static int64_t cached_read(const struct block *block, const struct block_pass *pass)
{
    bool is_beyond = block->window > 0 && pass->cached > block->window - 1;
    return is_beyond ? block->window - 1 : pass->cached;
}

static tensor_id attend(struct build *build, const struct block *block, const char *name,
                        const struct block_pass *pass, const struct qkv *qkv)
{
    bool is_self = pass->cross_tokens == 0;
    int64_t cached = is_self ? cached_read(block, pass) : 0;
    int64_t dims[] = {build_dim(build, qkv->query, 0), cached, heads_kv(block) * head_size(block)};
    tensor_id key = GRAPH_NONE, value = GRAPH_NONE;
    if (cached > 0) {
        key = build_tensor(build, GRAPH_CACHE, "key_cache", 3, dims);
        value = build_tensor(build, GRAPH_CACHE, "value_cache", 3, dims);
    }
    struct graph_attention attention = {
        .heads = block->heads,
        .heads_kv = heads_kv(block),
        .key_size = head_size(block),
        .value_size = head_size(block),
        .tokens = build_dim(build, qkv->query, 1),
        .cached = cached,
        .cross_tokens = pass->cross_tokens,
        .window = is_self ? block->window : 0,
        .sequences = build_dim(build, qkv->query, 0),
        .is_causal = is_self && block->is_causal,
    };
    return build_attention(build, name, qkv->query, qkv->key, qkv->value, key, value, attention);
}

tensor_id block_attention(struct build *build, const struct block *block,
                          const struct block_attention_names *names, const struct block_pass *pass,
                          tensor_id x)
{
    tensor_id in = block->is_post_norm ? x : block_norm(build, block, names->norm, x);
    build->component = DECODER_ATTN_QKV;
    struct qkv qkv = project(build, block, names, pass, in);
    write_caches(build, block, pass, &qkv);
    build->component = DECODER_ATTN_SCORES;
    tensor_id out = attend(build, block, names->scores, pass, &qkv);
    build->component = DECODER_ATTN_OUT;
    out = build_linear(build, names->output, out, block->hidden, block->has_output_bias);
    out = build_binary(build, GRAPH_ADD, names->add, out, x);
    build->component = DECODER_COMPONENT_COUNT;
    return block->is_post_norm ? block_norm(build, block, names->norm, out) : out;
}

/* ---- feed-forward ---- */

static tensor_id up_projection(struct build *build, const struct block *block,
                               const struct block_feed_forward_names *names, tensor_id x)
{
    bool has_bias = block->has_feed_forward_bias, is_fused = block->is_gated && !names->gate;
    tensor_id up =
        build_linear(build, names->up, x, (is_fused ? 2 : 1) * block->intermediate, has_bias);
    if (!block->is_gated)
        return build_op(build, block->activation, names->activation, up);
    tensor_id gate = is_fused ? split(build, "gate", up, block->intermediate)
                              : build_linear(build, names->gate, x, block->intermediate, has_bias);
    if (is_fused)
        up = split(build, "up", up, block->intermediate);
    gate = build_op(build, block->activation, names->activation, gate);
    return build_binary(build, GRAPH_MUL, "gated", gate, up);
}

tensor_id block_feed_forward(struct build *build, const struct block *block,
                             const struct block_feed_forward_names *names, tensor_id x)
{
    tensor_id in = block->is_post_norm ? x : block_norm(build, block, names->norm, x);
    build->component = DECODER_FFN_GATE_UP;
    tensor_id out = up_projection(build, block, names, in);
    build->component = DECODER_FFN_DOWN;
    out = build_linear(build, names->down, out, block->hidden, block->has_feed_forward_bias);
    out = build_binary(build, GRAPH_ADD, names->add, out, x);
    build->component = DECODER_COMPONENT_COUNT;
    return block->is_post_norm ? block_norm(build, block, names->norm, out) : out;
}

tensor_id block_stack(struct build *build, const struct block *block,
                      const struct block_names *names, const struct block_pass *pass, int layers,
                      const char *prefix, tensor_id x)
{
    for (int i = 0; i < layers; i++) {
        build_scope(build, "%s%d.", prefix, i);
        build->layer = i;
        x = block_attention(build, block, &names->attention, pass, x);
        x = block_feed_forward(build, block, &names->feed_forward, x);
    }
    build_scope(build, "%s", "");
    build->layer = GRAPH_NONE;
    return x;
}

/* ---- input, positions, logits ---- */

struct build block_text_begin(const char *model_name, int64_t batch, int64_t tokens,
                              struct graph *out, struct error *why, tensor_id *ids)
{
    struct build build = build_begin(out, model_name, why);
    out->batch = (double)batch;
    out->tokens = (double)batch * (double)tokens;
    *ids = build_input(&build, "input_ids", GRAPH_INT64, 2, (int64_t[]){batch, tokens});
    return build;
}

tensor_id block_positions(struct build *build, const char *name, int64_t tokens, int64_t cached,
                          int64_t positions, int64_t hidden)
{
    if (!build->err && cached + tokens > positions)
        build->err = err_set(build->why, ERR_BAD_VALUE,
                             "%s has %lld positions, too few for %lld tokens", build->graph->name,
                             (long long)positions, (long long)cached + (long long)tokens);
    tensor_id ids = build_input(build, "position_ids", GRAPH_INT64, 2, (int64_t[]){1, tokens});
    return build_embedding(build, name, ids, positions, hidden);
}

tensor_id block_last_logits(struct build *build, const char *name, tensor_id x, tensor_id weight)
{
    int64_t dims[] = {build_dim(build, x, 0), 1, build_dim(build, x, -1)};
    build->component = DECODER_HEAD;
    if (build_dim(build, x, 1) > 1)
        x = build_rearrange(build, "last_token", x, 3, dims);
    x = build_linear_with(build, name, x, weight, GRAPH_NONE, build_dim(build, weight, 0));
    build->component = DECODER_COMPONENT_COUNT;
    return x;
}
