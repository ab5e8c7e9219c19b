/* T5, BART and Whisper: an encoder over text or audio, and a decoder with cross-attention to its states.  They differ
 * in norms, positions, biases and names. */
#include "core/text.h"
#include "graph/blocks.h"
#include "graph/transformers.h"

struct seq2seq_names {
    const char *encoder, *decoder; /* prefixes; layers are "PREFIXlayers.N." or "PREFIXblock.N." */
    const char *layers;
    const char *final_norm; /* NULL: none */
    const char *head;
    struct block_names block;
    struct block_attention_names cross;
};

static const struct seq2seq_names T5_NAMES = {
    .encoder = "encoder.",
    .decoder = "decoder.",
    .layers = "block",
    .final_norm = "final_layer_norm",
    .head = "lm_head",
    .block = {.attention = {"layer.0.layer_norm", "layer.0.SelfAttention.q",
                            "layer.0.SelfAttention.k", "layer.0.SelfAttention.v",
                            "layer.0.SelfAttention", "layer.0.SelfAttention.o", "layer.0.add"},
              .feed_forward = {"layer.ff.layer_norm", "DenseReluDense.wi", "DenseReluDense.act",
                               "DenseReluDense.wo", "layer.ff.add"}},
    .cross = {"layer.1.layer_norm", "layer.1.EncDecAttention.q", "layer.1.EncDecAttention.k",
              "layer.1.EncDecAttention.v", "layer.1.EncDecAttention", "layer.1.EncDecAttention.o",
              "layer.1.add"},
};

#define ATTENTION_NAMES(name)                                                                      \
    {name "_layer_norm", name ".q_proj", name ".k_proj", name ".v_proj", name,                     \
     name ".out_proj",   name ".add"}
#define BLOCK_NAMES                                                                                \
    {.attention = ATTENTION_NAMES("self_attn"),                                                    \
     .feed_forward = {.norm = "final_layer_norm",                                                  \
                      .up = "fc1",                                                                 \
                      .activation = "activation_fn",                                               \
                      .down = "fc2",                                                               \
                      .add = "add"}}

static const struct seq2seq_names BART_NAMES = {.encoder = "model.encoder.",
                                                .decoder = "model.decoder.",
                                                .layers = "layers",
                                                .head = "lm_head",
                                                .block = BLOCK_NAMES,
                                                .cross = ATTENTION_NAMES("encoder_attn")};

static const struct seq2seq_names WHISPER_NAMES = {.encoder = "model.encoder.",
                                                   .decoder = "model.decoder.",
                                                   .layers = "layers",
                                                   .final_norm = "layer_norm",
                                                   .head = "proj_out",
                                                   .block = BLOCK_NAMES,
                                                   .cross = ATTENTION_NAMES("encoder_attn")};

struct pass {
    struct build *b;
    const struct transformer_seq2seq *sizes;
    const struct seq2seq_names *names;
    int64_t batch;
    int64_t source; /* tokens or states of the input */
    int64_t cached; /* tokens of the output in the KV cache */
    tensor_id table;
};

static struct block layer_of(const struct transformer_seq2seq *sizes,
                             const struct transformer_tower *tower)
{
    struct block block = block_of(tower);
    block.head_size = sizes->head_size;
    block.is_post_norm = sizes->family == SEQ2SEQ_BART;
    block.is_causal = tower == &sizes->decoder;
    block.has_gate = sizes->is_gated;
    block.is_rms_norm = block.has_no_bias = block.is_clamped = sizes->family == SEQ2SEQ_T5;
    block.has_no_key_bias = sizes->family == SEQ2SEQ_WHISPER;
    return block;
}

static void scope(struct pass *pass, const char *prefix)
{
    build_scope(pass->b, "%s", prefix);
}

/* ---- positions ---- */

/* The relative position biases of all layers, from a table of the first one. */
static tensor_id relative_bias(struct pass *pass, const char *prefix, int64_t heads, int64_t tokens,
                               int64_t keys)
{
    struct build *b = pass->b;
    b->component = DECODER_ATTN_SCORES;
    build_scope(b, "%sblock.0.", prefix);
    tensor_id ids = build_input(b, "relative_positions", GRAPH_INT64, DIMS(tokens, keys));
    tensor_id bias =
        build_embedding(b, "relative_attention_bias", ids, pass->sizes->buckets, heads);
    b->component = DECODER_COMPONENT_COUNT;
    return bias;
}

/* BART's tables have two unused rows. */
static tensor_id add_positions(struct pass *pass, tensor_id x, int64_t cached)
{
    struct build *b = pass->b;
    const struct transformer_seq2seq *sizes = pass->sizes;
    int64_t tokens = build_dim(b, x, 1);
    bool is_bart = sizes->family == SEQ2SEQ_BART;
    if (sizes->family == SEQ2SEQ_T5)
        return x;
    if (cached + tokens > sizes->positions && !b->err)
        b->err = err_set(b->why, ERR_BAD_VALUE, "%s has %lld positions, too few for %lld tokens",
                         b->graph->name, (long long)sizes->positions, (long long)(cached + tokens));
    tensor_id positions = block_positions(b, "embed_positions", tokens, cached,
                                          sizes->positions + (is_bart ? 2 : 0), sizes->hidden);
    x = build_binary(b, GRAPH_ADD, "add_positions", x, positions);
    return is_bart ? block_norm(b, "layernorm_embedding", x) : x;
}

/* ---- the encoder ---- */

static tensor_id embed_text(struct pass *pass, const char *prefix, tensor_id ids, int64_t cached)
{
    struct build *b = pass->b;
    b->component = DECODER_EMBEDDING;
    scope(pass, prefix);
    tensor_id x = build_embedding_with(b, "embed_tokens", ids, pass->table);
    x = add_positions(pass, x, cached);
    b->component = DECODER_COMPONENT_COUNT;
    return x;
}

static tensor_id embed_audio(struct pass *pass)
{
    struct build *b = pass->b;
    const struct transformer_seq2seq *sizes = pass->sizes;
    struct build_conv conv = {.channels = sizes->hidden, .kernel = 3, .pad = 1, .has_bias = true};
    int64_t dims[] = {pass->batch, sizes->source_positions, sizes->hidden};
    tensor_id x = build_input(b, "input_features", GRAPH_FLOAT,
                              DIMS(pass->batch, sizes->bins, 2 * sizes->source_positions));
    b->component = DECODER_EMBEDDING;
    scope(pass, pass->names->encoder);
    x = build_op(b, GRAPH_GELU, "gelu", build_conv(b, "conv1", x, conv));
    conv.stride = 2;
    x = build_op(b, GRAPH_GELU, "gelu_1", build_conv(b, "conv2", x, conv));
    x = build_rearrange(b, "permute", x, 3, dims);
    tensor_id positions = build_tensor(b, GRAPH_PARAMETER, "embed_positions.weight", 2, dims + 1);
    x = build_binary(b, GRAPH_ADD, "add_positions", x, positions);
    b->component = DECODER_COMPONENT_COUNT;
    return x;
}

static tensor_id encode(struct pass *pass)
{
    struct build *b = pass->b;
    const struct transformer_seq2seq *sizes = pass->sizes;
    struct block block = layer_of(sizes, &sizes->encoder);
    struct block_pass over = {0};
    char layers[64];
    tensor_id x = GRAPH_NONE;
    if (sizes->family == SEQ2SEQ_WHISPER) {
        x = embed_audio(pass);
    } else {
        tensor_id ids = build_input(b, "input_ids", GRAPH_INT64, DIMS(pass->batch, pass->source));
        x = embed_text(pass, pass->names->encoder, ids, 0);
    }
    if (sizes->buckets > 0) {
        over.has_bias = true;
        over.bias =
            relative_bias(pass, pass->names->encoder, block.heads, pass->source, pass->source);
    }
    chars_format(layers, "%s%s.", pass->names->encoder, pass->names->layers);
    x = block_stack(b, &block, &pass->names->block, &over, sizes->encoder.layers, layers, x);
    scope(pass, pass->names->encoder);
    return pass->names->final_norm ? block_norm_of(b, &block, pass->names->final_norm, x) : x;
}

/* ---- the decoder ---- */

static tensor_id decode_layers(struct pass *pass, const struct block *block, tensor_id x,
                               tensor_id states)
{
    struct build *b = pass->b;
    struct block_pass self = {.has_cache = true, .cached = pass->cached};
    struct block_pass cross = {
        .has_cache = true, .cross_tokens = pass->source, .cross_states = states};
    int64_t tokens = build_dim(b, x, 1);
    if (pass->sizes->buckets > 0) {
        self.has_bias = true;
        self.bias =
            relative_bias(pass, pass->names->decoder, block->heads, tokens, pass->cached + tokens);
    }
    for (int i = 0; i < pass->sizes->decoder.layers; i++) {
        build_scope(b, "%s%s.%d.", pass->names->decoder, pass->names->layers, i);
        b->layer = pass->sizes->encoder.layers + i;
        x = block_attention(b, block, &pass->names->block.attention, &self, x);
        x = block_attention(b, block, &pass->names->cross, &cross, x);
        x = block_feed_forward(b, block, &pass->names->block.feed_forward, x);
    }
    b->layer = GRAPH_NONE;
    return x;
}

static tensor_id classify(struct pass *pass, tensor_id x)
{
    struct build *b = pass->b;
    b->component = DECODER_HEAD;
    scope(pass, "classification_head.");
    x = block_first_token(b, "last_token", x);
    x = build_linear(b, "dense", x, pass->sizes->hidden, true);
    x = build_op(b, GRAPH_TANH, "activation", x);
    return build_linear(b, "out_proj", x, pass->sizes->classes, true);
}

static tensor_id decode(struct pass *pass, tensor_id ids, tensor_id states)
{
    struct build *b = pass->b;
    const struct transformer_seq2seq *sizes = pass->sizes;
    struct block block = layer_of(sizes, &sizes->decoder);
    tensor_id x = embed_text(pass, pass->names->decoder, ids, pass->cached);
    x = decode_layers(pass, &block, x, states);
    scope(pass, pass->names->decoder);
    if (pass->names->final_norm)
        x = block_norm_of(b, &block, pass->names->final_norm, x);
    scope(pass, "");
    if (sizes->has_no_head)
        return x;
    if (sizes->classes > 0)
        return classify(pass, x);
    tensor_id weight = pass->table;
    if (sizes->has_own_head)
        weight = build_tensor(b, GRAPH_PARAMETER, "lm_head.weight",
                              DIMS(sizes->vocabulary, sizes->hidden));
    return block_last_logits(b, pass->names->head, x, weight);
}

/* ---- a pass ---- */

static tensor_id embedding_table(struct build *b, const struct transformer_seq2seq *sizes)
{
    return build_tensor(b, GRAPH_PARAMETER, "shared.weight",
                        DIMS(sizes->vocabulary, sizes->hidden));
}

/* Parameters that a decode pass does not read: the encoder, and the K and V projections of its states. */
static void add_idle_parameters(struct pass *pass)
{
    struct build *b = pass->b;
    const struct transformer_seq2seq *sizes = pass->sizes;
    struct graph alone = {0};
    struct build encoder = build_begin(&alone, b->graph->name, b->why);
    struct pass over = {&encoder, sizes, pass->names, 1, pass->source, 0, GRAPH_NONE};
    over.table = embedding_table(&encoder, sizes);
    build_output(&encoder, encode(&over));
    enum err err = build_end(&encoder);
    if (err && !b->err)
        b->err = err;
    if (err)
        return;
    int64_t width = sizes->head_size ? sizes->head_size * sizes->decoder.heads : sizes->hidden;
    int64_t biases = sizes->family == SEQ2SEQ_T5 ? 0 : sizes->family == SEQ2SEQ_BART ? 2 : 1;
    build_tensor(b, GRAPH_PARAMETER, "encoder",
                 DIMS((int64_t)graph_parameters(&alone) - sizes->vocabulary * sizes->hidden));
    build_tensor(b, GRAPH_PARAMETER, "decoder.cross.k_proj_v_proj",
                 DIMS(sizes->decoder.layers * (2 * sizes->hidden + biases) * width));
    graph_release(&alone);
}

static const struct seq2seq_names *names_of(const struct transformer_seq2seq *sizes)
{
    if (sizes->family == SEQ2SEQ_WHISPER)
        return &WHISPER_NAMES;
    return sizes->family == SEQ2SEQ_T5 ? &T5_NAMES : &BART_NAMES;
}

tensor_id transformer_seq2seq(struct build *b, const struct transformer_seq2seq *sizes,
                              const struct graph_options *options)
{
    bool is_decode = options->phase == GRAPH_DECODE, is_audio = sizes->family == SEQ2SEQ_WHISPER;
    struct pass pass = {
        .b = b,
        .sizes = sizes,
        .names = names_of(sizes),
        .batch = options->batch,
        .source = is_audio ? sizes->source_positions : options->tokens,
    };
    /* The output begins with an implicit start token. */
    if (is_decode)
        pass.cached = options->context - (is_audio ? 1 : options->tokens);
    /* A classifier has the same input in encoder and decoder. */
    int64_t outputs = !is_decode && (is_audio || sizes->classes > 0) ? options->tokens : 1;
    if (pass.cached < !is_audio && is_decode && !b->err)
        b->err = err_set(b->why, ERR_USAGE,
                         "%s: a context of %lld has no output after %lld tokens of input",
                         b->graph->name, (long long)options->context, (long long)options->tokens);
    pass.table = embedding_table(b, sizes);
    b->graph->batch = (double)options->batch;
    b->graph->tokens =
        (double)options->batch * (double)(is_decode || is_audio ? outputs : options->tokens);
    if (sizes->is_encoder_only)
        return encode(&pass);
    tensor_id states = GRAPH_NONE;
    if (is_decode)
        add_idle_parameters(&pass);
    else
        states = encode(&pass);
    scope(&pass, "");
    tensor_id ids = build_input(b, "decoder_input_ids", GRAPH_INT64, DIMS(options->batch, outputs));
    return decode(&pass, ids, states);
}
