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

#define BERT(words, places, kinds, depth, width, number)                                           \
    {.vocabulary = words,                                                                          \
     .positions = places,                                                                          \
     .types = kinds,                                                                               \
     .tower = {width, number, 4 * (width), depth, GRAPH_GELU},                                     \
     .has_pooler = (kinds) > 0,                                                                    \
     .is_distilled = (kinds) == 0}
static const struct bert_row BERTS[] = {
    {"bert-base-uncased", BERT(30522, 512, 2, 12, 768, 12)},
    {"bert-large-uncased", BERT(30522, 512, 2, 24, 1024, 16)},
    {"bert-base-cased", BERT(28996, 512, 2, 12, 768, 12)},
    {"bert-large-cased", BERT(28996, 512, 2, 24, 1024, 16)},
    {"all-MiniLM-L6-v2", BERT(30522, 512, 2, 6, 384, 12)},
    {"all-MiniLM-L12-v2", BERT(30522, 512, 2, 12, 384, 12)},
    {"distilbert-base-uncased", BERT(30522, 512, 0, 6, 768, 12)},
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

#define GPT2(width, number, depth)                                                                 \
    {                                                                                              \
        .vocabulary = 50257, .positions = 1024, .tower = {                                         \
            width,                                                                                 \
            number,                                                                                \
            4 * (width),                                                                           \
            depth,                                                                                 \
            GRAPH_GELU_NEW                                                                         \
        }                                                                                          \
    }
static const struct gpt2_row GPT2S[] = {
    {"gpt2", GPT2(768, 12, 12)},        {"gpt2-medium", GPT2(1024, 16, 24)},
    {"gpt2-large", GPT2(1280, 20, 36)}, {"gpt2-xl", GPT2(1600, 25, 48)},
    {"distilgpt2", GPT2(768, 12, 6)},
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
    x = build_rearrange(b, "last_states", x, DIMS(options->batch, 2 * RNN_HIDDEN));
    return build_linear(b, "fc", zoo_dropout(b, "dropout", x), 1, true);
}

/* ---- Whisper ---- */

struct whisper_row {
    const char *name;
    struct transformer_seq2seq sizes;
};

#define WHISPER(mel_bins, words, width, number, encoders, decoders)                                \
    {.family = SEQ2SEQ_WHISPER,                                                                    \
     .vocabulary = words,                                                                          \
     .hidden = width,                                                                              \
     .encoder = {width, number, 4 * (width), encoders, GRAPH_GELU},                                \
     .decoder = {width, number, 4 * (width), decoders, GRAPH_GELU},                                \
     .positions = 448,                                                                             \
     .source_positions = 1500, /* half a minute */                                                 \
     .bins = mel_bins}
static const struct whisper_row WHISPERS[] = {
    {"whisper-tiny", WHISPER(80, 51865, 384, 6, 4, 4)},
    {"whisper-base", WHISPER(80, 51865, 512, 8, 6, 6)},
    {"whisper-small", WHISPER(80, 51865, 768, 12, 12, 12)},
    {"whisper-medium", WHISPER(80, 51865, 1024, 16, 24, 24)},
    {"whisper-large-v2", WHISPER(80, 51865, 1280, 20, 32, 32)},
    {"whisper-large-v3", WHISPER(128, 51866, 1280, 20, 32, 32)},
    {"whisper-large-v3-turbo", WHISPER(128, 51866, 1280, 20, 32, 4)},
};
#undef WHISPER

tensor_id zoo_build_whisper(struct build *b, const struct graph_options *options)
{
    const struct whisper_row *row = ZOO_ROW(WHISPERS, b->graph->name);
    return transformer_seq2seq(b, &row->sizes, options);
}
