/* The sizes of models other than decoders, from the keys of a config.json. */
#include <string.h>

#include "core/text.h"
#include "graph/hf.h"
#include "graph/hf_keys.h"

enum { DEFAULT_TOKENS = 128 };

static int64_t size(struct hf_keys *keys, const char *names, uint64_t most, uint64_t otherwise)
{
    return (int64_t)hf_keys_size(keys, names, most, otherwise);
}

static int layers(struct hf_keys *keys, const char *names, uint64_t otherwise)
{
    return (int)hf_keys_size(keys, names, HF_MAX_LAYERS, otherwise);
}

static int64_t at_most(int64_t positions)
{
    return positions < DEFAULT_TOKENS ? positions : DEFAULT_TOKENS;
}

static bool is_for(struct hf_keys *keys, const char *purpose)
{
    return strcmp(hf_keys_purpose(keys), purpose) == 0;
}

static void reject_head(struct hf_keys *keys, const char *known)
{
    char what[200];
    str_format(what, sizeof what, "not supported with this model_type, only %s are", known);
    hf_keys_reject(keys, ERR_UNSUPPORTED, "architectures", what);
}

/* ---- heads of encoders ---- */

/* Without `architectures` it is the bare model.  Which models keep the pooler below a head, and which have a dense layer
 * before the classifier instead, is the family's. */
static struct transformer_head read_encoder_head(struct hf_keys *keys, bool pools, bool *has_pooler)
{
    static const char KNOWN[] = "...Model, ...ForMaskedLM, ...ForSequenceClassification, "
                                "...ForTokenClassification, ...ForQuestionAnswering";
    const char *purpose = hf_keys_purpose(keys);
    struct transformer_head head = {0};
    if (!purpose[0] || strcmp(purpose, "Model") == 0)
        return head;
    bool is_sequence = strcmp(purpose, "ForSequenceClassification") == 0;
    bool is_pretraining = strcmp(purpose, "ForPreTraining") == 0;
    bool is_pair = is_pretraining || strcmp(purpose, "ForNextSentencePrediction") == 0;
    bool is_choice = strcmp(purpose, "ForMultipleChoice") == 0;
    *has_pooler = *has_pooler && (is_pair || is_choice || (is_sequence && pools));
    head.has_vocabulary = is_pretraining || strcmp(purpose, "ForMaskedLM") == 0;
    head.has_dense = is_sequence && !pools;
    if (is_sequence)
        head.classes = hf_keys_labels(keys);
    else if (is_choice)
        head.classes = 1;
    else if (is_pair || strcmp(purpose, "ForQuestionAnswering") == 0)
        head.classes = 2;
    else if (strcmp(purpose, "ForTokenClassification") == 0)
        head.classes = hf_keys_labels(keys);
    else if (!head.has_vocabulary)
        reject_head(keys, KNOWN);
    head.is_per_token = head.classes > 0 && !is_sequence && !is_pair && !is_choice;
    return head;
}

/* ---- text ---- */

static void read_gpt2(struct hf_keys *keys, struct hf_config *out)
{
    struct transformer_gpt2 gpt2 = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "n_positions|n_ctx", HF_MAX_POSITIONS, 1024),
        .hidden = size(keys, "n_embd", HF_MAX_SIZE, 0),
        .layers = layers(keys, "n_layer", 0),
        .intermediate = (int64_t)hf_keys_optional(keys, "n_inner", HF_MAX_SIZE),
        .activation = hf_keys_activation(keys, "activation_function", GRAPH_GELU),
        .has_no_head = is_for(keys, "Model"),
    };
    gpt2.heads = hf_keys_heads(keys, "n_head", 0, gpt2.hidden, "n_embd");
    if (is_for(keys, "ForSequenceClassification"))
        gpt2.classes = hf_keys_labels(keys);
    else if (!gpt2.has_no_head && hf_keys_purpose(keys)[0] && !is_for(keys, "LMHeadModel") &&
             !is_for(keys, "ForCausalLM"))
        reject_head(keys, "GPT2LMHeadModel, GPT2Model, GPT2ForSequenceClassification");
    if (!hf_keys_bool(keys, "tie_word_embeddings", true))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "tie_word_embeddings",
                       "a head of its own is not supported with this model_type");
    out->as.gpt2 = gpt2;
    out->tokens = at_most(gpt2.positions);
    out->has_phases = true;
}

static void read_bert(struct hf_keys *keys, const char *type, struct hf_config *out)
{
    bool is_distilled = strcmp(type, "distilbert") == 0, is_bert = strcmp(type, "bert") == 0;
    static const char HIDDEN[] = "hidden_size|dim", HEADS[] = "num_attention_heads|n_heads";
    struct transformer_bert bert = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "max_position_embeddings", HF_MAX_POSITIONS, 512),
        .hidden = size(keys, is_distilled ? "dim|hidden_size" : HIDDEN, HF_MAX_SIZE, 0),
        .intermediate =
            size(keys, is_distilled ? "hidden_dim" : "intermediate_size", HF_MAX_SIZE, 0),
        .layers = layers(keys, is_distilled ? "n_layers" : "num_hidden_layers", 0),
        .activation =
            hf_keys_activation(keys, is_distilled ? "activation" : "hidden_act", GRAPH_GELU),
        .has_pooler = !is_distilled,
        .is_distilled = is_distilled,
    };
    if (!is_distilled)
        bert.types = (int64_t)hf_keys_optional(keys, "type_vocab_size", HF_MAX_SIZE);
    bert.heads = hf_keys_heads(keys, is_distilled ? "n_heads|num_attention_heads" : HEADS, 0,
                               bert.hidden, is_distilled ? "dim" : HIDDEN);
    bert.head = read_encoder_head(keys, is_bert, &bert.has_pooler);
    if (bert.head.has_vocabulary && !hf_keys_bool(keys, "tie_word_embeddings", true))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "tie_word_embeddings",
                       "a matrix of its own for the vocabulary is not supported");
    out->as.bert = bert;
    out->tokens = at_most(bert.positions);
}

/* ---- images ---- */

static void read_vit(struct hf_keys *keys, struct hf_config *out)
{
    struct transformer_vit vit = {
        .image = size(keys, "image_size", HF_MAX_PIXELS, 224),
        .patch = size(keys, "patch_size", HF_MAX_PIXELS, 16),
        .channels = size(keys, "num_channels", HF_MAX_HEADS, 3),
        .hidden = size(keys, "hidden_size", HF_MAX_SIZE, 0),
        .intermediate = size(keys, "intermediate_size", HF_MAX_SIZE, 0),
        .layers = layers(keys, "num_hidden_layers", 0),
        .activation = hf_keys_activation(keys, "hidden_act", GRAPH_GELU),
        .has_pooler = true,
        .has_no_qkv_bias = !hf_keys_bool(keys, "qkv_bias", true),
    };
    vit.heads = hf_keys_heads(keys, "num_attention_heads", 0, vit.hidden, "hidden_size");
    if (vit.image % vit.patch)
        hf_keys_reject(keys, ERR_BAD_VALUE, "patch_size", "does not divide 'image_size'");
    (void)hf_keys_optional(keys, "encoder_stride", HF_MAX_PIXELS); /* of pretraining */
    if (is_for(keys, "ForImageClassification"))
        vit.classes = hf_keys_labels(keys);
    else if (hf_keys_purpose(keys)[0] && !is_for(keys, "Model"))
        reject_head(keys, "ViTModel and ViTForImageClassification");
    out->as.vit = vit;
    out->image = vit.image;
}

/* ---- encoder and decoder ---- */

static void read_t5(struct hf_keys *keys, struct transformer_seq2seq *sizes)
{
    const char *form = hf_keys_string(keys, "feed_forward_proj");
    bool is_gated = form && strncmp(form, "gated-", 6) == 0;
    const char *name = form ? form + (is_gated ? 6 : 0) : "relu";
    sizes->family = SEQ2SEQ_T5;
    sizes->encoder_layers = layers(keys, "num_layers|num_hidden_layers", 6);
    sizes->decoder_layers = layers(keys, "num_decoder_layers", (uint64_t)sizes->encoder_layers);
    sizes->encoder_heads = sizes->decoder_heads =
        size(keys, "num_heads|num_attention_heads", HF_MAX_HEADS, 8);
    sizes->head_size = size(keys, "d_kv", HF_MAX_HEADS, 64);
    sizes->encoder_intermediate = sizes->decoder_intermediate =
        size(keys, "d_ff", HF_MAX_SIZE, 2048);
    sizes->buckets = size(keys, "relative_attention_num_buckets", HF_MAX_SIZE, 32);
    (void)hf_keys_optional(keys, "relative_attention_max_distance|n_positions", HF_MAX_POSITIONS);
    (void)hf_keys_bool(keys, "is_gated_act", is_gated);
    sizes->is_gated = is_gated;
    sizes->activation = strcmp(name, "relu") == 0   ? GRAPH_RELU
                        : strcmp(name, "silu") == 0 ? GRAPH_SILU
                                                    : GRAPH_GELU;
    if (sizes->activation == GRAPH_GELU && strncmp(name, "gelu", 4) != 0)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "feed_forward_proj",
                       "not supported, only relu, gelu and silu are, alone or after gated-");
    sizes->has_own_head = !hf_keys_bool(keys, "tie_word_embeddings", true);
}

/* BART and Whisper. */
static void read_bart(struct hf_keys *keys, bool is_audio, struct transformer_seq2seq *sizes)
{
    sizes->family = is_audio ? SEQ2SEQ_WHISPER : SEQ2SEQ_BART;
    sizes->encoder_layers = layers(keys, "encoder_layers|num_hidden_layers", 0);
    sizes->decoder_layers = layers(keys, "decoder_layers", 0);
    sizes->encoder_heads = hf_keys_heads(keys, "encoder_attention_heads|num_attention_heads", 0,
                                         sizes->hidden, "d_model");
    sizes->decoder_heads =
        hf_keys_heads(keys, "decoder_attention_heads", 0, sizes->hidden, "d_model");
    sizes->encoder_intermediate = size(keys, "encoder_ffn_dim", HF_MAX_SIZE, 0);
    sizes->decoder_intermediate = size(keys, "decoder_ffn_dim", HF_MAX_SIZE, 0);
    sizes->activation = hf_keys_activation(keys, "activation_function", GRAPH_GELU);
    sizes->positions = is_audio ? size(keys, "max_target_positions", HF_MAX_POSITIONS, 448)
                                : size(keys, "max_position_embeddings", HF_MAX_POSITIONS, 1024);
    if (is_audio) {
        sizes->source_positions = size(keys, "max_source_positions", HF_MAX_POSITIONS, 1500);
        sizes->bins = size(keys, "num_mel_bins", HF_MAX_SIZE, 80);
        (void)hf_keys_optional(keys, "classifier_proj_size|num_languages", HF_MAX_SIZE);
    }
    if (!hf_keys_bool(keys, "tie_word_embeddings", true))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "tie_word_embeddings",
                       "a head of its own is not supported with this model_type");
}

static void read_seq2seq(struct hf_keys *keys, const char *type, struct hf_config *out)
{
    enum { AUDIO_TOKENS = 4 }; /* what a transcription begins with */
    bool is_t5 = strcmp(type, "t5") == 0, is_audio = strcmp(type, "whisper") == 0;
    struct transformer_seq2seq sizes = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .hidden = size(keys, "d_model|hidden_size", HF_MAX_SIZE, 0),
        .has_no_head = is_for(keys, "Model"),
    };
    if (is_t5)
        read_t5(keys, &sizes);
    else
        read_bart(keys, is_audio, &sizes);
    sizes.is_encoder_only = is_t5 && is_for(keys, "EncoderModel");
    if (is_for(keys, "ForSequenceClassification") && !is_t5 && !is_audio)
        sizes.classes = hf_keys_labels(keys);
    else if (hf_keys_purpose(keys)[0] && !sizes.has_no_head && !sizes.is_encoder_only &&
             !is_for(keys, "ForConditionalGeneration") && !is_for(keys, "LMHeadModel"))
        reject_head(keys, "...ForConditionalGeneration, ...Model, T5EncoderModel and "
                          "BartForSequenceClassification");
    out->as.seq2seq = sizes;
    out->tokens = is_audio ? AUDIO_TOKENS : is_t5 ? DEFAULT_TOKENS : at_most(sizes.positions);
    out->has_phases = !sizes.is_encoder_only && !sizes.classes;
}

/* ---- all of them ---- */

void hf_transformer_read(struct hf_keys *keys, const char *type, struct hf_config *out)
{
    switch (out->kind) {
    case HF_GPT2:
        read_gpt2(keys, out);
        break;
    case HF_BERT:
        read_bert(keys, type, out);
        break;
    case HF_VIT:
        read_vit(keys, out);
        break;
    case HF_SEQ2SEQ:
        read_seq2seq(keys, type, out);
        break;
    case HF_DECODER:
        break;
    }
}
