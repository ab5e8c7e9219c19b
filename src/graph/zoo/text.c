/* Text and speech: BERT, GPT-2, LSTM and GRU classifiers, Whisper. */
#include <string.h>

#include "graph/blocks.h"
#include "graph/transformers.h"
#include "graph/zoo/family.h"

/* ---- BERT ---- */

struct bert_row {
    const char *name;
    struct transformer_bert sizes;
};

#define BERT(vocabulary, positions, types, layers, hidden, heads)                                  \
    {vocabulary, positions, types, hidden, heads, 4 * (hidden), layers, GRAPH_GELU, true, false}
static const struct bert_row BERTS[] = {
    {"bert-base-uncased", BERT(30522, 512, 2, 12, 768, 12)},
    {"bert-large-uncased", BERT(30522, 512, 2, 24, 1024, 16)},
    {"bert-base-cased", BERT(28996, 512, 2, 12, 768, 12)},
    {"bert-large-cased", BERT(28996, 512, 2, 24, 1024, 16)},
    {"all-MiniLM-L6-v2", BERT(30522, 512, 2, 6, 384, 12)},
    {"all-MiniLM-L12-v2", BERT(30522, 512, 2, 12, 384, 12)},
    {"distilbert-base-uncased", {30522, 512, 0, 768, 12, 3072, 6, GRAPH_GELU, false, true}},
    /* The first position is 2, so that 512 tokens need 514. */
    {"roberta-base", BERT(50265, 514, 1, 12, 768, 12)},
    {"roberta-large", BERT(50265, 514, 1, 24, 1024, 16)},
};
#undef BERT

tensor_id zoo_build_bert(struct build *b, const struct graph_options *options)
{
    const struct bert_row *row = ZOO_ROW(BERTS, b->graph->name);
    return transformer_bert(b, &row->sizes, options);
}

/* ---- GPT-2 ---- */

struct gpt2_row {
    const char *name;
    struct transformer_gpt2 sizes;
};

static const struct gpt2_row GPT2S[] = {
    {"gpt2", {50257, 1024, 768, 12, 0, 12, GRAPH_GELU}},
    {"gpt2-medium", {50257, 1024, 1024, 16, 0, 24, GRAPH_GELU}},
    {"gpt2-large", {50257, 1024, 1280, 20, 0, 36, GRAPH_GELU}},
    {"gpt2-xl", {50257, 1024, 1600, 25, 0, 48, GRAPH_GELU}},
    {"distilgpt2", {50257, 1024, 768, 12, 0, 6, GRAPH_GELU}},
};

tensor_id zoo_build_gpt2(struct build *b, const struct graph_options *options)
{
    const struct gpt2_row *row = ZOO_ROW(GPT2S, b->graph->name);
    return transformer_gpt2(b, &row->sizes, options);
}

/* ---- LSTM and GRU: the sizes of a common tutorial on sentiment, 4 810 857 parameters ---- */

enum { RNN_WORDS = 25002, RNN_EMBEDDING = 100, RNN_HIDDEN = 256, RNN_LAYERS = 2 };

tensor_id zoo_build_recurrent(struct build *b, const struct graph_options *options)
{
    static const char *const LAYER_NAMES[RNN_LAYERS] = {"rnn.l0", "rnn.l1"};
    enum graph_op op = strstr(b->graph->name, "gru") ? GRAPH_GRU : GRAPH_LSTM;
    tensor_id x = block_text_input(b, options->batch, options->tokens);
    b->component = DECODER_EMBEDDING;
    x = build_embedding(b, "embedding", x, RNN_WORDS, RNN_EMBEDDING);
    b->component = DECODER_COMPONENT_COUNT;
    for (int i = 0; i < RNN_LAYERS; i++) {
        b->layer = i;
        x = build_recurrent(b, op, LAYER_NAMES[i], x, RNN_HIDDEN, true);
    }
    b->layer = GRAPH_NONE;
    b->component = DECODER_HEAD;
    x = build_rearrange(b, "last_states", x, 2, (int64_t[]){options->batch, 2 * RNN_HIDDEN});
    return build_linear(b, "fc", zoo_dropout(b, "dropout", x), 1, true);
}

/* ---- Whisper: an encoder over half a minute of audio, a decoder over tokens ---- */

struct whisper {
    const char *name;
    int64_t bins, vocabulary, hidden, heads; /* bins: mel bins */
    int encoder_layers, decoder_layers;
};

static const struct whisper WHISPERS[] = {
    {"whisper-tiny", 80, 51865, 384, 6, 4, 4},
    {"whisper-base", 80, 51865, 512, 8, 6, 6},
    {"whisper-small", 80, 51865, 768, 12, 12, 12},
    {"whisper-medium", 80, 51865, 1024, 16, 24, 24},
    {"whisper-large-v2", 80, 51865, 1280, 20, 32, 32},
    {"whisper-large-v3", 128, 51866, 1280, 20, 32, 32},
    {"whisper-large-v3-turbo", 128, 51866, 1280, 20, 32, 4},
};

enum { MEL_FRAMES = 3000, AUDIO_STATES = 1500, POSITIONS = 448 };

static const struct block_names WHISPER_NAMES = {
    .attention = {"self_attn_layer_norm", "self_attn.q_proj", "self_attn.k_proj",
                  "self_attn.v_proj", "self_attn", "self_attn.out_proj", "self_attn.add"},
    .feed_forward = {"final_layer_norm", "fc1", "activation_fn", "fc2", "add"},
};

static const struct block_attention_names WHISPER_CROSS_NAMES = {
    "encoder_attn_layer_norm", "encoder_attn.q_proj", "encoder_attn.k_proj",
    "encoder_attn.v_proj",     "encoder_attn",        "encoder_attn.out_proj",
    "encoder_attn.add"};

static struct block whisper_block(const struct whisper *whisper, bool is_causal)
{
    return (struct block){.hidden = whisper->hidden,
                          .heads = whisper->heads,
                          .intermediate = 4 * whisper->hidden,
                          .activation = GRAPH_GELU,
                          .is_causal = is_causal,
                          .has_no_key_bias = true};
}

static tensor_id whisper_encoder(struct build *b, const struct whisper *whisper, int64_t batch)
{
    struct block block = whisper_block(whisper, false);
    int64_t hidden = whisper->hidden;
    struct build_conv conv = {.channels = hidden, .kernel = 3, .pad = 1, .has_bias = true};
    tensor_id x = build_input(b, "input_features", GRAPH_FLOAT, 3,
                              (int64_t[]){batch, whisper->bins, MEL_FRAMES});
    b->component = DECODER_EMBEDDING;
    build_scope(b, "%s", "model.encoder.");
    x = build_op(b, GRAPH_GELU, "gelu", build_conv(b, "conv1", x, conv));
    conv.stride = 2;
    x = build_op(b, GRAPH_GELU, "gelu_1", build_conv(b, "conv2", x, conv));
    x = build_rearrange(b, "permute", x, 3, (int64_t[]){batch, AUDIO_STATES, hidden});
    tensor_id positions = build_tensor(b, GRAPH_PARAMETER, "embed_positions.weight", 2,
                                       (int64_t[]){AUDIO_STATES, hidden});
    x = build_binary(b, GRAPH_ADD, "add_positions", x, positions);
    b->component = DECODER_COMPONENT_COUNT;
    x = block_stack(b, &block, &WHISPER_NAMES, &(struct block_pass){0}, whisper->encoder_layers,
                    "model.encoder.layers.", x);
    return block_norm(b, "model.encoder.layer_norm", x);
}

static tensor_id whisper_decoder(struct build *b, const struct whisper *whisper, int64_t cached,
                                 tensor_id ids, tensor_id states)
{
    struct block block = whisper_block(whisper, true);
    struct block_pass self = {.has_cache = true, .cached = cached};
    struct block_pass cross = {
        .has_cache = true, .cross_tokens = AUDIO_STATES, .cross_states = states};
    b->component = DECODER_EMBEDDING;
    build_scope(b, "%s", "model.decoder.");
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "embed_tokens.weight", 2,
                                   (int64_t[]){whisper->vocabulary, whisper->hidden});
    tensor_id x = build_embedding_with(b, "embed_tokens", ids, table);
    tensor_id positions = block_positions(b, "embed_positions", build_dim(b, ids, 1), cached,
                                          POSITIONS, whisper->hidden);
    x = build_binary(b, GRAPH_ADD, "add_positions", x, positions);
    b->component = DECODER_COMPONENT_COUNT;
    for (int i = 0; i < whisper->decoder_layers; i++) {
        build_scope(b, "model.decoder.layers.%d.", i);
        b->layer = whisper->encoder_layers + i;
        x = block_attention(b, &block, &WHISPER_NAMES.attention, &self, x);
        x = block_attention(b, &block, &WHISPER_CROSS_NAMES, &cross, x);
        x = block_feed_forward(b, &block, &WHISPER_NAMES.feed_forward, x);
    }
    build_scope(b, "%s", "");
    b->layer = GRAPH_NONE;
    x = block_norm(b, "model.decoder.layer_norm", x);
    return block_last_logits(b, "proj_out", x, table);
}

/* Parameters that a decode pass does not read: the encoder, and the K and V projections of its states. */
static void add_idle_parameters(struct build *b, const struct whisper *whisper)
{
    struct graph alone;
    struct build encoder = build_begin(&alone, whisper->name, b->why);
    int64_t hidden = whisper->hidden;
    (void)whisper_encoder(&encoder, whisper, 1);
    enum err err = build_end(&encoder);
    if (err && !b->err)
        b->err = err;
    if (err)
        return;
    build_tensor(b, GRAPH_PARAMETER, "model.encoder", 1,
                 (int64_t[]){(int64_t)graph_parameters(&alone)});
    build_tensor(b, GRAPH_PARAMETER, "model.decoder.encoder_attn.k_proj_v_proj", 1,
                 (int64_t[]){whisper->decoder_layers * (2 * hidden * hidden + hidden)});
    graph_release(&alone);
}

tensor_id zoo_build_whisper(struct build *b, const struct graph_options *options)
{
    const struct whisper *whisper = ZOO_ROW(WHISPERS, b->graph->name);
    bool is_decode = options->phase == GRAPH_DECODE;
    tensor_id ids = block_text_input(b, options->batch, is_decode ? 1 : options->tokens);
    tensor_id states = GRAPH_NONE;
    if (is_decode)
        add_idle_parameters(b, whisper);
    else
        states = whisper_encoder(b, whisper, options->batch);
    return whisper_decoder(b, whisper, is_decode ? options->context - 1 : 0, ids, states);
}
