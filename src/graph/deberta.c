/* DeBERTa: BERT with disentangled attention, whose scores add content-to-position and position-to-content terms.  The
 * table of relative positions is projected in every layer; its scores are looked up by distance. */
#include "graph/blocks.h"
#include "graph/transformers.h"

static const struct block_feed_forward_names FEED_FORWARD = {
    "output.LayerNorm", "intermediate.dense", "intermediate.intermediate_act_fn", "output.dense",
    "output.add"};

struct pass {
    struct build *b;
    const struct transformer_deberta *sizes;
    int64_t batch, tokens;
    tensor_id distances; /* the table, normalized; GRAPH_NONE: none */
    tensor_id relative;  /* relative distance of each pair of tokens */
};

/* A matrix with its bias, which may be applied twice. */
struct projection {
    tensor_id weight, bias;
};

static struct projection projection_of(struct pass *pass, const char *weight, const char *bias)
{
    int64_t dims[] = {pass->sizes->tower.hidden, pass->sizes->tower.hidden};
    return (struct projection){build_tensor(pass->b, GRAPH_PARAMETER, weight, 2, dims),
                               bias ? build_tensor(pass->b, GRAPH_PARAMETER, bias, 1, dims)
                                    : GRAPH_NONE};
}

static tensor_id apply(struct pass *pass, const char *name, struct projection by, tensor_id x)
{
    return build_linear_with(pass->b, name, x, by.weight, by.bias, pass->sizes->tower.hidden);
}

/* Scores of each token with each row of the projected table, then gathered by distance and scaled. */
static tensor_id position_scores(struct pass *pass, const char *name, tensor_id states,
                                 tensor_id rows)
{
    struct build *b = pass->b;
    const struct transformer_deberta *sizes = pass->sizes;
    int64_t size = sizes->tower.hidden / sizes->tower.heads;
    b->component = DECODER_ATTN_SCORES;
    states = build_rearrange(b, "heads", states,
                             DIMS(pass->batch, sizes->tower.heads, pass->tokens, size));
    rows =
        build_rearrange(b, "distances", rows, DIMS(1, sizes->tower.heads, size, sizes->distances));
    tensor_id scores = build_matmul(b, name, states, rows);
    tensor_id index = build_op(b, GRAPH_UNARY, "shift", pass->relative);
    index = build_op(b, GRAPH_CLIP, "clamp", index);
    struct graph_node gather = {.op = GRAPH_MOVE, .name = "gather"};
    scores = build_node(b, &gather, (tensor_id[]){scores, index}, 2,
                        DIMS(pass->batch, sizes->tower.heads, pass->tokens, pass->tokens));
    return build_op(b, GRAPH_UNARY, "scale", scores);
}

static tensor_id relative_scores(struct pass *pass, struct projection for_keys,
                                 struct projection for_queries, tensor_id query, tensor_id key)
{
    struct build *b = pass->b;
    tensor_id bias = GRAPH_NONE;
    if (pass->distances < 0)
        return bias;
    b->component = DECODER_ATTN_QKV;
    if (pass->sizes->by_key)
        bias = position_scores(pass, "content_to_position", query,
                               apply(pass, "pos_key", for_keys, pass->distances));
    b->component = DECODER_ATTN_QKV;
    if (pass->sizes->by_query) {
        tensor_id more = position_scores(pass, "position_to_content", key,
                                         apply(pass, "pos_query", for_queries, pass->distances));
        bias = bias >= 0 ? build_binary(b, GRAPH_ADD, "position_scores", bias, more) : more;
    }
    return bias;
}

static tensor_id attention(struct pass *pass, tensor_id x)
{
    struct build *b = pass->b;
    const struct transformer_deberta *sizes = pass->sizes;
    bool is_first = sizes->is_first_version, is_own = is_first || sizes->has_own_projections;
    b->component = DECODER_ATTN_QKV;
    struct projection q = projection_of(pass, "query_proj.weight", "query_proj.bias");
    struct projection k = projection_of(pass, "key_proj.weight", is_first ? NULL : "key_proj.bias");
    struct projection v = projection_of(pass, "value_proj.weight", "value_proj.bias");
    struct projection for_keys = k, for_queries = q;
    if (is_own && sizes->distances > 0 && sizes->by_key)
        for_keys =
            projection_of(pass, "pos_key_proj.weight", is_first ? NULL : "pos_key_proj.bias");
    if (is_own && sizes->distances > 0 && sizes->by_query)
        for_queries = projection_of(pass, "pos_query_proj.weight", "pos_query_proj.bias");
    tensor_id query = apply(pass, "query_proj", q, x), key = apply(pass, "key_proj", k, x);
    tensor_id value = apply(pass, "value_proj", v, x);
    tensor_id bias = relative_scores(pass, for_keys, for_queries, query, key);
    b->component = DECODER_ATTN_SCORES;
    tensor_id out =
        build_attention_biased(b, "attention.self", query, key, value, GRAPH_NONE, GRAPH_NONE, bias,
                               build_heads(b, x, sizes->tower.heads, sizes->tower.hidden));
    b->component = DECODER_ATTN_OUT;
    out = build_linear(b, "attention.output.dense", out, sizes->tower.hidden, true);
    out = build_binary(b, GRAPH_ADD, "attention.output.add", out, x);
    b->component = DECODER_COMPONENT_COUNT;
    return block_norm(b, "attention.output.LayerNorm", out);
}

static void add_distances(struct pass *pass)
{
    struct build *b = pass->b;
    pass->distances = GRAPH_NONE;
    if (pass->sizes->distances == 0)
        return;
    build_scope(b, "encoder.");
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "rel_embeddings.weight",
                                   DIMS(1, pass->sizes->distances, pass->sizes->tower.hidden));
    pass->relative =
        build_input(b, "relative_positions", GRAPH_INT64, DIMS(pass->tokens, pass->tokens));
    pass->distances = pass->sizes->has_distance_norm ? block_norm(b, "LayerNorm", table) : table;
}

/* Parallel to the first layer: a convolution over neighboring tokens. */
static tensor_id convolve(struct pass *pass, tensor_id before, tensor_id x)
{
    struct build *b = pass->b;
    int64_t hidden = pass->sizes->tower.hidden;
    struct build_conv conv = {.channels = hidden,
                              .kernel = (int32_t)pass->sizes->kernel,
                              .pad = (int32_t)(pass->sizes->kernel - 1) / 2,
                              .has_bias = true};
    build_scope(b, "encoder.conv.");
    before = build_rearrange(b, "transpose", before, DIMS(pass->batch, hidden, pass->tokens));
    tensor_id out = build_op(b, GRAPH_TANH, "act", build_conv(b, "conv", before, conv));
    out = build_rearrange(b, "transpose_1", out, DIMS(pass->batch, pass->tokens, hidden));
    return block_norm(b, "LayerNorm", build_binary(b, GRAPH_ADD, "add", x, out));
}

tensor_id transformer_deberta(struct build *b, const struct transformer_deberta *sizes,
                              const struct graph_options *options)
{
    struct pass pass = {.b = b, .sizes = sizes, .batch = options->batch, .tokens = options->tokens};
    struct block block = block_of(&sizes->tower);
    tensor_id ids = block_text_input(b, options->batch, options->tokens);
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "embeddings.word_embeddings.weight",
                                   DIMS(sizes->vocabulary, sizes->tower.hidden));
    tensor_id embedded = transformer_embed(b, ids, table, sizes->types, sizes->positions);
    tensor_id x = embedded;
    block.is_post_norm = true;
    add_distances(&pass);
    for (int i = 0; i < sizes->tower.layers; i++) {
        build_scope(b, "encoder.layer.%d.", i);
        b->layer = i;
        x = attention(&pass, x);
        x = block_feed_forward(b, &block, &FEED_FORWARD, x);
        if (i == 0 && sizes->kernel > 0)
            x = convolve(&pass, embedded, x);
    }
    build_root(b);
    b->layer = GRAPH_NONE;
    build_output(b, x);
    tensor_id pooled = sizes->has_pooler ? transformer_pooler(b, GRAPH_GELU, x) : GRAPH_NONE;
    return transformer_heads(b, &sizes->head, sizes->tower.activation, x, pooled, table);
}
