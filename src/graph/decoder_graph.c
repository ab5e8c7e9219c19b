#include "graph/decoder_graph.h"

#include "graph/decoder/making.h"
#include "graph/decoder/weigh.h"

/* Beyond any pass: so bounded, products of shapes stay far below 2^63. */
enum { MOST_TOKENS = 1 << 28, MOST_SEQUENCES = 1 << 20 };

/* ---- the setting ---- */

static int64_t default_tokens(const struct decoder *decoder)
{
    bool is_small = decoder->context && decoder->context < DECODER_DEFAULT_TOKENS;
    return is_small ? (int64_t)decoder->context : DECODER_DEFAULT_TOKENS;
}

static enum err complete(const struct decoder *decoder, struct graph_setting *setting,
                         struct error *why)
{
    if (setting->phase == GRAPH_WHOLE)
        setting->phase = GRAPH_PREFILL;
    if (setting->batch == 0)
        setting->batch = 1;
    if (setting->tokens == 0)
        setting->tokens = default_tokens(decoder);
    if (setting->context == 0)
        setting->context = default_tokens(decoder);
    if (setting->batch < 0 || setting->batch > MOST_SEQUENCES)
        return err_set(why, ERR_USAGE, "a batch of %lld sequences: 1 to %d can be computed",
                       (long long)setting->batch, MOST_SEQUENCES);
    int64_t tokens = setting->phase == GRAPH_DECODE ? setting->context : setting->tokens;
    if (tokens < 0 || tokens > MOST_TOKENS)
        return err_set(why, ERR_USAGE, "a %s of %lld tokens: 1 to %d can be computed",
                       setting->phase == GRAPH_DECODE ? "context" : "prompt", (long long)tokens,
                       MOST_TOKENS);
    return ERR_OK;
}

/* What the reading of a file does not need, and a graph does. */
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

static tensor_id add(struct making *making, enum decoder_component component, const char *name,
                     tensor_id x, tensor_id stream)
{
    making->build.component = component;
    return build_binary(&making->build, GRAPH_ADD, name, stream, x);
}

/* Attention and feed-forward beside each other, behind one norm. */
static bool is_parallel(const struct making *making)
{
    return making_has(making, DECODER_TENSOR_ATTN_NORM) &&
           !making_has(making, DECODER_TENSOR_FFN_NORM) &&
           !making_has(making, DECODER_TENSOR_POST_ATTENTION_NORM) &&
           !making_has(making, DECODER_TENSOR_POST_FFW_NORM);
}

static tensor_id make_layer(struct making *making, tensor_id stream)
{
    tensor_id normed = making_norm(making, DECODER_TENSOR_ATTN_NORM, stream);
    tensor_id attended = making_attention(making, normed);
    attended = making_norm(making, DECODER_TENSOR_POST_ATTENTION_NORM, attended);
    stream = add(making, DECODER_ATTN_OUT, "attn_add", attended, stream);
    if (!is_parallel(making))
        normed = making_norm(making, DECODER_TENSOR_FFN_NORM, stream);
    tensor_id forward = making_feed_forward(making, normed);
    forward = making_norm(making, DECODER_TENSOR_POST_FFW_NORM, forward);
    return add(making, DECODER_FFN_DOWN, "ffn_add", forward, stream);
}

static tensor_id make_layers(struct making *making, tensor_id stream)
{
    for (size_t i = 0; i < making->decoder->layer_count && !making->build.err; i++) {
        making->layer = &making->decoder->layers[i];
        making->weights = making->layer->weights;
        making->build.layer = (int32_t)i;
        build_inside(&making->build, "blk.%zu.", i);
        stream = make_layer(making, stream);
    }
    making->layer = NULL;
    making->weights = making->decoder->outside_weights;
    making->build.layer = GRAPH_NONE;
    build_inside(&making->build, "%s", "");
    return stream;
}

/* ---- the whole ---- */

/* Logits of the last token of each sequence. */
static void make_head(struct making *making, tensor_id stream, tensor_id table)
{
    struct build *build = &making->build;
    build->component = DECODER_HEAD;
    if (making->tokens > 1)
        stream = build_rearrange(build, "last_token", stream, 3,
                                 (int64_t[]){making->sequences, 1, build_dim(build, stream, 2)});
    stream = making_norm(making, DECODER_TENSOR_OUTPUT_NORM, stream);
    build->component = DECODER_HEAD;
    if (making->decoder->has_tied_head)
        stream = build_linear_with(build, "output", stream, table, GRAPH_NONE,
                                   (int64_t)making->decoder->vocabulary);
    else
        stream = making_linear(making, DECODER_TENSOR_OUTPUT, stream);
    build_output(build, stream);
}

static void make_all(struct making *making)
{
    struct build *build = &making->build;
    tensor_id ids = build_input(build, "tokens", GRAPH_INTEGERS_32, 2,
                                (int64_t[]){making->sequences, making->tokens});
    making->weights = making->decoder->outside_weights;
    tensor_id table = making_weight(making, DECODER_TENSOR_TOKEN_EMBD);
    build->component = DECODER_EMBEDDING;
    tensor_id stream = build_embedding_with(build, "token_embd", ids, table);
    making->rotation = making_rotation(making);
    stream = make_layers(making, stream);
    make_head(making, stream, table);
}

enum err decoder_graph(const struct decoder *decoder, struct graph_setting *setting,
                       struct graph *out, struct error *why)
{
    enum err err = complete(decoder, setting, why);
    for (size_t i = 0; i < decoder->layer_count && !err; i++)
        err = check_layer(decoder, i, why);
    if (err)
        return err;
    bool is_decode = setting->phase == GRAPH_DECODE;
    struct making making = {
        .build = build_begin(out, decoder->name[0] ? decoder->name : decoder->architecture, why),
        .decoder = decoder,
        .sequences = setting->batch,
        .tokens = is_decode ? 1 : setting->tokens,
        .before = is_decode ? setting->context - 1 : 0,
        .rotation = GRAPH_NONE,
    };
    out->batch = (double)making.sequences;
    out->tokens = (double)making.sequences * (double)making.tokens;
    make_all(&making);
    return build_end(&making.build);
}
