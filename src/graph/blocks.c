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
    enum decoder_component before = build->component;
    build->component = DECODER_NORM;
    x = build_norm(build, block->norm, name, x, block->norm == GRAPH_LAYER_NORM);
    build->component = before;
    return x;
}

void block_cache_write(struct build *build, const char *name, tensor_id x, int64_t size)
{
    struct graph_node node = {.op = GRAPH_CACHE_WRITE, .name = name};
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), size};
    tensor_id kept = build_node(build, &node, &x, 1, 3, dims);
    if (kept >= 0)
        build->graph->tensors[kept].role = GRAPH_CACHE;
}

/* So many of the numbers of each token: one of several that lie side by side. */
static tensor_id part(struct build *build, const char *name, tensor_id x, int64_t size)
{
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), size};
    return build_rearrange(build, name, x, 3, dims);
}

/* ---- attention ---- */

struct qkv {
    tensor_id query, key, value;
};

static tensor_id rotate(struct build *build, const struct block *block, const char *name,
                        tensor_id x)
{
    return block->has_rotation ? build_op(build, GRAPH_ROTATION, name, x) : x;
}

/* Of cross attention whose keys and values were made in an earlier pass. */
static struct qkv from_cache(struct build *build, const struct block *block,
                             const struct block_attention_names *names,
                             const struct block_pass *pass, tensor_id x)
{
    int64_t dims[] = {build_dim(build, x, 0), pass->others, heads_kv(block) * head_size(block)};
    tensor_id query =
        build_linear(build, names->query, x, block->heads * head_size(block), block->has_qkv_bias);
    return (struct qkv){query, build_tensor(build, GRAPH_CACHE, "cross_key_cache", 3, dims),
                        build_tensor(build, GRAPH_CACHE, "cross_value_cache", 3, dims)};
}

static struct qkv project(struct build *build, const struct block *block,
                          const struct block_attention_names *names, const struct block_pass *pass,
                          tensor_id x)
{
    int64_t of_query = block->heads * head_size(block);
    int64_t of_key = heads_kv(block) * head_size(block);
    bool has_bias = block->has_qkv_bias;
    if (pass->others > 0 && pass->other_states < 0)
        return from_cache(build, block, names, pass, x);
    tensor_id source = pass->others > 0 ? pass->other_states : x;
    struct qkv qkv;
    if (block->has_fused_qkv) {
        tensor_id all = build_linear(build, names->query, x, of_query + 2 * of_key, has_bias);
        if (!block->has_rotation) /* attention reads the one tensor, once */
            return (struct qkv){all, all, all};
        qkv = (struct qkv){part(build, "query", all, of_query), part(build, "key", all, of_key),
                           part(build, "value", all, of_key)};
    } else {
        bool has_key_bias = has_bias && !block->lacks_key_bias;
        qkv = (struct qkv){build_linear(build, names->query, x, of_query, has_bias),
                           build_linear(build, names->key, source, of_key, has_key_bias),
                           build_linear(build, names->value, source, of_key, has_bias)};
    }
    qkv.query = rotate(build, block, "rotary_query", qkv.query);
    qkv.key = rotate(build, block, "rotary_key", qkv.key);
    return qkv;
}

static void keep(struct build *build, const struct block *block, const struct block_pass *pass,
                 const struct qkv *qkv)
{
    int64_t size = heads_kv(block) * head_size(block);
    if (!pass->has_cache || (pass->others > 0 && pass->other_states < 0))
        return;
    block_cache_write(build, pass->others > 0 ? "cross_key_cache" : "key_cache.new", qkv->key,
                      size);
    block_cache_write(build, pass->others > 0 ? "cross_value_cache" : "value_cache.new", qkv->value,
                      size);
}

/* How many of the tokens in the cache the first new one sees: all later ones see fewer. */
static int64_t seen_before(const struct block *block, const struct block_pass *pass)
{
    bool is_beyond = block->window > 0 && pass->before > block->window - 1;
    return is_beyond ? block->window - 1 : pass->before;
}

static tensor_id score(struct build *build, const struct block *block, const char *name,
                       const struct block_pass *pass, const struct qkv *qkv)
{
    bool is_own = pass->others == 0;
    int64_t before = is_own ? seen_before(block, pass) : 0;
    int64_t dims[] = {build_dim(build, qkv->query, 0), before, heads_kv(block) * head_size(block)};
    tensor_id key = GRAPH_NONE, value = GRAPH_NONE;
    if (before > 0) {
        key = build_tensor(build, GRAPH_CACHE, "key_cache", 3, dims);
        value = build_tensor(build, GRAPH_CACHE, "value_cache", 3, dims);
    }
    struct graph_attention attention = {
        .heads = block->heads,
        .heads_kv = heads_kv(block),
        .key_size = head_size(block),
        .value_size = head_size(block),
        .tokens = build_dim(build, qkv->query, 1),
        .before = before,
        .others = pass->others,
        .window = is_own ? block->window : 0,
        .sequences = build_dim(build, qkv->query, 0),
        .is_causal = is_own && block->is_causal,
    };
    return build_attention(build, name, qkv->query, qkv->key, qkv->value, key, value, attention);
}

tensor_id block_attention(struct build *build, const struct block *block,
                          const struct block_attention_names *names, const struct block_pass *pass,
                          tensor_id x)
{
    tensor_id in = block->norms_after ? x : block_norm(build, block, names->norm, x);
    build->component = DECODER_ATTN_QKV;
    struct qkv qkv = project(build, block, names, pass, in);
    keep(build, block, pass, &qkv);
    build->component = DECODER_ATTN_SCORES;
    tensor_id out = score(build, block, names->scores, pass, &qkv);
    build->component = DECODER_ATTN_OUT;
    out = build_linear(build, names->output, out, block->hidden, block->has_output_bias);
    out = build_binary(build, GRAPH_ADD, names->add, out, x);
    build->component = DECODER_COMPONENT_COUNT;
    return block->norms_after ? block_norm(build, block, names->norm, out) : out;
}

/* ---- feed-forward ---- */

static tensor_id widen(struct build *build, const struct block *block,
                       const struct block_feed_forward_names *names, tensor_id x)
{
    bool has_bias = block->has_feed_forward_bias, is_one = block->is_gated && !names->gate;
    tensor_id up =
        build_linear(build, names->up, x, (is_one ? 2 : 1) * block->intermediate, has_bias);
    if (!block->is_gated)
        return build_op(build, block->activation, names->activation, up);
    tensor_id gate = is_one ? part(build, "gate", up, block->intermediate)
                            : build_linear(build, names->gate, x, block->intermediate, has_bias);
    if (is_one)
        up = part(build, "up", up, block->intermediate);
    gate = build_op(build, block->activation, names->activation, gate);
    return build_binary(build, GRAPH_MUL, "gated", gate, up);
}

tensor_id block_feed_forward(struct build *build, const struct block *block,
                             const struct block_feed_forward_names *names, tensor_id x)
{
    tensor_id in = block->norms_after ? x : block_norm(build, block, names->norm, x);
    build->component = DECODER_FFN_GATE_UP;
    tensor_id out = widen(build, block, names, in);
    build->component = DECODER_FFN_DOWN;
    out = build_linear(build, names->down, out, block->hidden, block->has_feed_forward_bias);
    out = build_binary(build, GRAPH_ADD, names->add, out, x);
    build->component = DECODER_COMPONENT_COUNT;
    return block->norms_after ? block_norm(build, block, names->norm, out) : out;
}

tensor_id block_stack(struct build *build, const struct block *block,
                      const struct block_names *names, const struct block_pass *pass, int layers,
                      const char *prefix, tensor_id x)
{
    for (int i = 0; i < layers; i++) {
        build_inside(build, "%s%d.", prefix, i);
        build->layer = i;
        x = block_attention(build, block, &names->attention, pass, x);
        x = block_feed_forward(build, block, &names->feed_forward, x);
    }
    build_inside(build, "%s", "");
    build->layer = GRAPH_NONE;
    return x;
}

/* ---- the beginning and the end ---- */

struct build block_text_begin(const char *model_name, int64_t batch, int64_t tokens,
                              struct graph *out, struct error *why, tensor_id *ids)
{
    struct build build = build_begin(out, model_name, why);
    out->batch = (double)batch;
    out->tokens = (double)batch * (double)tokens;
    *ids = build_input(&build, "input_ids", GRAPH_INTEGERS_64, 2, (int64_t[]){batch, tokens});
    return build;
}

tensor_id block_positions(struct build *build, const char *name, int64_t tokens, int64_t before,
                          int64_t positions, int64_t hidden)
{
    if (!build->err && before + tokens > positions)
        build->err = err_set(build->why, ERR_BAD_VALUE,
                             "%s has %lld positions: %lld tokens do not fit", build->graph->name,
                             (long long)positions, (long long)before + (long long)tokens);
    tensor_id ids =
        build_input(build, "position_ids", GRAPH_INTEGERS_64, 2, (int64_t[]){1, tokens});
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
