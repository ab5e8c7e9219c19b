/* Whisper as Hugging Face has it: an encoder over half a minute of sound, a decoder over tokens.
 *
 * Whole and prefill are one pass of both, which leaves keys and values of the sound in the cache; decode
 * is the decoder alone, one token.  What rests then is part of the model too, though no node reads it. */
#include "graph/blocks.h"
#include "graph/zoo/family.h"

struct whisper {
    const char *name;
    int64_t bins, vocabulary, hidden, heads; /* bins: of the spectrum */
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

enum { FRAMES = 3000, STATES = 1500, POSITIONS = 448 };

static const struct block_names NAMES = {
    .attention = {.norm = "self_attn_layer_norm",
                  .query = "self_attn.q_proj",
                  .key = "self_attn.k_proj",
                  .value = "self_attn.v_proj",
                  .scores = "self_attn",
                  .output = "self_attn.out_proj",
                  .add = "self_attn.add"},
    .feed_forward = {.norm = "final_layer_norm",
                     .up = "fc1",
                     .activation = "activation_fn",
                     .down = "fc2",
                     .add = "add"},
};

static const struct block_attention_names CROSS_NAMES = {
    .norm = "encoder_attn_layer_norm",
    .query = "encoder_attn.q_proj",
    .key = "encoder_attn.k_proj",
    .value = "encoder_attn.v_proj",
    .scores = "encoder_attn",
    .output = "encoder_attn.out_proj",
    .add = "encoder_attn.add",
};

static struct block block_of(const struct whisper *whisper, bool is_causal)
{
    return (struct block){.hidden = whisper->hidden,
                          .heads = whisper->heads,
                          .intermediate = 4 * whisper->hidden,
                          .norm = GRAPH_LAYER_NORM,
                          .activation = GRAPH_GELU,
                          .is_causal = is_causal,
                          .has_qkv_bias = true,
                          .has_no_key_bias = true,
                          .has_output_bias = true,
                          .has_feed_forward_bias = true};
}

static tensor_id encode(struct build *b, const struct whisper *whisper, int64_t batch)
{
    struct block block = block_of(whisper, false);
    int64_t hidden = whisper->hidden;
    struct build_conv conv = {.channels = hidden, .kernel = 3, .pad = 1, .has_bias = true};
    tensor_id x =
        build_input(b, "input_features", GRAPH_FLOAT, 3, (int64_t[]){batch, whisper->bins, FRAMES});
    b->component = DECODER_EMBEDDING;
    build_scope(b, "%s", "model.encoder.");
    x = build_op(b, GRAPH_GELU, "gelu", build_conv(b, "conv1", x, conv));
    conv.stride = 2;
    x = build_op(b, GRAPH_GELU, "gelu_1", build_conv(b, "conv2", x, conv));
    x = build_rearrange(b, "permute", x, 3, (int64_t[]){batch, STATES, hidden});
    tensor_id places =
        build_tensor(b, GRAPH_PARAMETER, "embed_positions.weight", 2, (int64_t[]){STATES, hidden});
    x = build_binary(b, GRAPH_ADD, "add_positions", x, places);
    b->component = DECODER_COMPONENT_COUNT;
    x = block_stack(b, &block, &NAMES, &(struct block_pass){0}, whisper->encoder_layers,
                    "model.encoder.layers.", x);
    return block_norm(b, &block, "model.encoder.layer_norm", x);
}

static void decode(struct build *b, const struct whisper *whisper, int64_t before, tensor_id ids,
                   tensor_id states)
{
    struct block block = block_of(whisper, true);
    struct block_pass own = {.has_cache = true, .cached = before};
    struct block_pass cross = {.has_cache = true, .cross_tokens = STATES, .cross_states = states};
    b->component = DECODER_EMBEDDING;
    build_scope(b, "%s", "model.decoder.");
    tensor_id table = build_tensor(b, GRAPH_PARAMETER, "embed_tokens.weight", 2,
                                   (int64_t[]){whisper->vocabulary, whisper->hidden});
    tensor_id x = build_embedding_with(b, "embed_tokens", ids, table);
    tensor_id places = block_positions(b, "embed_positions", build_dim(b, ids, 1), before,
                                       POSITIONS, whisper->hidden);
    x = build_binary(b, GRAPH_ADD, "add_positions", x, places);
    b->component = DECODER_COMPONENT_COUNT;
    for (int i = 0; i < whisper->decoder_layers; i++) {
        build_scope(b, "model.decoder.layers.%d.", i);
        b->layer = whisper->encoder_layers + i;
        x = block_attention(b, &block, &NAMES.attention, &own, x);
        x = block_attention(b, &block, &CROSS_NAMES, &cross, x);
        x = block_feed_forward(b, &block, &NAMES.feed_forward, x);
    }
    build_scope(b, "%s", "");
    b->layer = GRAPH_NONE;
    x = block_norm(b, &block, "model.decoder.layer_norm", x);
    build_output(b, block_last_logits(b, "proj_out", x, table));
}

/* What rests while tokens are decoded: the encoder, and what makes keys and values of its states. */
static void add_resting(struct build *b, const struct whisper *whisper)
{
    struct graph alone;
    struct build encoder = build_begin(&alone, whisper->name, b->why);
    int64_t hidden = whisper->hidden;
    (void)encode(&encoder, whisper, 1);
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

enum err zoo_build_whisper(const char *name, const struct graph_options *setting, struct graph *out,
                           struct error *why)
{
    const struct whisper *whisper = ZOO_ROW(WHISPERS, name);
    bool decodes = setting->phase == GRAPH_DECODE;
    tensor_id ids, states = GRAPH_NONE;
    struct build b =
        block_text_begin(name, setting->batch, decodes ? 1 : setting->tokens, out, why, &ids);
    if (decodes)
        add_resting(&b, whisper);
    else
        states = encode(&b, whisper, setting->batch);
    decode(&b, whisper, decodes ? setting->context - 1 : 0, ids, states);
    return build_end(&b);
}
