/* Each block sets the component of the nodes that it adds, and resets it at its end. */
#include "graph/blocks.h"

#include "graph/transformers.h"

struct block block_of(const struct transformer_tower *tower)
{
    return (struct block){.hidden = tower->hidden,
                          .heads = tower->heads,
                          .intermediate = tower->intermediate,
                          .activation = tower->activation};
}

tensor_id block_norm_of(struct build *build, const struct block *block, const char *name,
                        tensor_id x)
{
    enum decoder_component previous = build->component;
    bool is_rms = block->is_rms_norm;
    build->component = DECODER_NORM;
    x = build_norm(build, is_rms ? GRAPH_RMS_NORM : GRAPH_LAYER_NORM, name, x);
    build->component = previous;
    return x;
}

tensor_id block_norm(struct build *build, const char *name, tensor_id x)
{
    return block_norm_of(build, &(struct block){0}, name, x);
}

static int64_t attention_width(const struct block *block)
{
    return block->head_size > 0 ? block->heads * block->head_size : block->hidden;
}

static void cache_write(struct build *build, const char *name, tensor_id x, int64_t size)
{
    struct graph_node node = {.op = GRAPH_CACHE_WRITE, .name = name};
    tensor_id cache =
        build_node(build, &node, &x, 1, DIMS(build_dim(build, x, 0), build_dim(build, x, 1), size));
    if (cache >= 0)
        build->graph->tensors[cache].role = GRAPH_CACHE;
}

/* ---- attention ---- */

struct qkv {
    tensor_id query, key, value;
};

static struct qkv project(struct build *build, const struct block *block,
                          const struct block_attention_names *names, const struct block_pass *pass,
                          tensor_id x)
{
    bool is_cross = pass->cross_tokens > 0;
    bool has_bias = !block->has_no_qkv_bias && !block->has_no_bias;
    int64_t width = attention_width(block);
    tensor_id source = is_cross ? pass->cross_states : x;
    if (block->has_fused_qkv) { /* attention reads the fused tensor once */
        tensor_id fused = build_linear(build, names->query, x, 3 * width, has_bias);
        return (struct qkv){fused, fused, fused};
    }
    tensor_id query = build_linear(build, names->query, x, width, has_bias);
    if (is_cross && source < 0) { /* K and V were computed in an earlier pass */
        int64_t dims[] = {build_dim(build, x, 0), pass->cross_tokens, width};
        return (struct qkv){query, build_tensor(build, GRAPH_CACHE, "cross_key_cache", 3, dims),
                            build_tensor(build, GRAPH_CACHE, "cross_value_cache", 3, dims)};
    }
    tensor_id key =
        build_linear(build, names->key, source, width, has_bias && !block->has_no_key_bias);
    return (struct qkv){query, key, build_linear(build, names->value, source, width, has_bias)};
}

static void write_caches(struct build *build, const struct block *block,
                         const struct block_pass *pass, const struct qkv *qkv)
{
    if (!pass->has_cache || (pass->cross_tokens > 0 && pass->cross_states < 0))
        return;
    cache_write(build, pass->cross_tokens > 0 ? "cross_key_cache" : "key_cache.new", qkv->key,
                attention_width(block));
    cache_write(build, pass->cross_tokens > 0 ? "cross_value_cache" : "value_cache.new", qkv->value,
                attention_width(block));
}

static tensor_id attend(struct build *build, const struct block *block, const char *name,
                        const struct block_pass *pass, const struct qkv *qkv)
{
    bool is_self = pass->cross_tokens == 0;
    int64_t cached = is_self ? pass->cached : 0;
    int64_t width = attention_width(block);
    int64_t dims[] = {build_dim(build, qkv->query, 0), cached, width};
    tensor_id key = GRAPH_NONE, value = GRAPH_NONE;
    if (cached > 0) {
        key = build_tensor(build, GRAPH_CACHE, "key_cache", 3, dims);
        value = build_tensor(build, GRAPH_CACHE, "value_cache", 3, dims);
    }
    struct graph_attention attention =
        build_heads(build, qkv->query, block->heads, attention_width(block));
    attention.cached = cached;
    attention.cross_tokens = pass->cross_tokens;
    attention.is_causal = is_self && block->is_causal;
    attention.is_in_fp32 = pass->has_bias;
    return build_attention_biased(build, name, qkv->query, qkv->key, qkv->value, key, value,
                                  pass->has_bias ? pass->bias : GRAPH_NONE, attention);
}

static tensor_id add_residual(struct build *build, const struct block *block, const char *name,
                              tensor_id out, tensor_id x)
{
    struct graph_node node = {.op = GRAPH_ADD, .name = name, .is_clamped = block->is_clamped};
    return build_like(build, &node, (tensor_id[]){out, x}, 2, x);
}

tensor_id block_attention(struct build *build, const struct block *block,
                          const struct block_attention_names *names, const struct block_pass *pass,
                          tensor_id x)
{
    tensor_id in = block->is_post_norm ? x : block_norm_of(build, block, names->norm, x);
    build->component = DECODER_ATTN_QKV;
    struct qkv qkv = project(build, block, names, pass, in);
    write_caches(build, block, pass, &qkv);
    build->component = DECODER_ATTN_SCORES;
    tensor_id out = attend(build, block, names->scores, pass, &qkv);
    build->component = DECODER_ATTN_OUT;
    out = build_linear(build, names->output, out, block->hidden, !block->has_no_bias);
    out = add_residual(build, block, names->add, out, x);
    build->component = DECODER_COMPONENT_COUNT;
    return block->is_post_norm ? block_norm_of(build, block, names->norm, out) : out;
}

/* ---- feed-forward ---- */

static tensor_id up_projection(struct build *build, const struct block *block,
                               const struct block_feed_forward_names *names, tensor_id x)
{
    if (block->has_gate) {
        tensor_id gate = build_linear(build, "gate", x, block->intermediate, false);
        gate = build_op(build, block->activation, names->activation, gate);
        tensor_id other = build_linear(build, names->up, x, block->intermediate, false);
        return build_binary(build, GRAPH_MUL, "gated", gate, other);
    }
    if (!block->is_gated)
        return build_op(
            build, block->activation, names->activation,
            build_linear(build, names->up, x, block->intermediate, !block->has_no_bias));
    tensor_id both = build_linear(build, names->up, x, 2 * block->intermediate, true);
    int64_t dims[] = {build_dim(build, x, 0), build_dim(build, x, 1), block->intermediate};
    tensor_id gate = build_rearrange(build, "gate", both, 3, dims);
    tensor_id up = build_rearrange(build, "up", both, 3, dims);
    gate = build_op(build, block->activation, names->activation, gate);
    return build_binary(build, GRAPH_MUL, "gated", gate, up);
}

tensor_id block_feed_forward(struct build *build, const struct block *block,
                             const struct block_feed_forward_names *names, tensor_id x)
{
    tensor_id in = block->is_post_norm ? x : block_norm_of(build, block, names->norm, x);
    build->component = DECODER_FFN_GATE_UP;
    tensor_id out = up_projection(build, block, names, in);
    build->component = DECODER_FFN_DOWN;
    out = build_linear(build, names->down, out, block->hidden, !block->has_no_bias);
    out = add_residual(build, block, names->add, out, x);
    build->component = DECODER_COMPONENT_COUNT;
    return block->is_post_norm ? block_norm_of(build, block, names->norm, out) : out;
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
    build_root(build);
    build->layer = GRAPH_NONE;
    return x;
}

/* ---- input, positions, logits ---- */

tensor_id block_text_input(struct build *build, int64_t batch, int64_t tokens)
{
    build->graph->batch = (double)batch;
    build->graph->tokens = (double)batch * (double)tokens;
    return build_input(build, "input_ids", GRAPH_INT64, DIMS(batch, tokens));
}

tensor_id block_image_input(struct build *build, int64_t channels,
                            const struct graph_options *options)
{
    build->graph->batch = (double)options->batch;
    return build_input(build, "pixel_values", GRAPH_FLOAT,
                       DIMS(options->batch, channels, options->image, options->image));
}

tensor_id block_positions(struct build *build, const char *name, int64_t tokens, int64_t cached,
                          int64_t positions, int64_t hidden)
{
    if (!build->err && cached + tokens > positions)
        build->err = err_set(build->why, ERR_BAD_VALUE,
                             "%s has %lld positions, too few for %lld tokens", build->graph->name,
                             (long long)positions, (long long)cached + (long long)tokens);
    tensor_id ids = build_input(build, "position_ids", GRAPH_INT64, DIMS(1, tokens));
    return build_embedding(build, name, ids, positions, hidden);
}

tensor_id block_first_token(struct build *build, const char *name, tensor_id x)
{
    return build_rearrange(build, name, x, DIMS(build_dim(build, x, 0), build_dim(build, x, -1)));
}

tensor_id block_last_logits(struct build *build, const char *name, tensor_id x, tensor_id weight)
{
    build->component = DECODER_HEAD;
    if (build_dim(build, x, 1) > 1)
        x = build_rearrange(build, "last_token", x,
                            DIMS(build_dim(build, x, 0), 1, build_dim(build, x, -1)));
    x = build_linear_with(build, name, x, weight, GRAPH_NONE, build_dim(build, weight, 0));
    build->component = DECODER_COMPONENT_COUNT;
    return x;
}
