/* The sizes of models other than decoders, from the keys of a config.json. */
#include <string.h>

#include "core/text.h"
#include "graph/hf.h"
#include "graph/hf_keys.h"
#include "port/json_read.h"

enum { DEFAULT_TOKENS = 128 };

static int64_t size(struct hf_keys *keys, const char *names, uint64_t max, uint64_t otherwise)
{
    return (int64_t)hf_keys_size(keys, names, max, otherwise);
}

static int layers(struct hf_keys *keys, const char *names, uint64_t otherwise)
{
    return (int)hf_keys_size(keys, names, HF_MAX_LAYERS, otherwise);
}

/* Names of the keys of a stack of layers. */
struct tower_keys {
    const char *hidden, *heads, *intermediate, *layers, *activation;
};

static const struct tower_keys PLAIN = {"hidden_size", "num_attention_heads", "intermediate_size",
                                        "num_hidden_layers", "hidden_act"};
static const struct tower_keys ENCODER = {
    "d_model|hidden_size", "encoder_attention_heads|num_attention_heads", "encoder_ffn_dim",
    "encoder_layers|num_hidden_layers", "activation_function"};
static const struct tower_keys DECODER = {"d_model|hidden_size", "decoder_attention_heads",
                                          "decoder_ffn_dim", "decoder_layers",
                                          "activation_function"};

/* The defaults are those of `otherwise`; 0: the key is required. */
static struct transformer_tower read_tower(struct hf_keys *keys, const struct tower_keys *names,
                                           const struct transformer_tower *otherwise)
{
    struct transformer_tower tower = {
        .hidden = size(keys, names->hidden, HF_MAX_SIZE, (uint64_t)otherwise->hidden),
        .intermediate =
            size(keys, names->intermediate, HF_MAX_SIZE, (uint64_t)otherwise->intermediate),
        .layers = layers(keys, names->layers, (uint64_t)otherwise->layers),
        .activation = hf_keys_activation(keys, names->activation, otherwise->activation),
    };
    tower.heads =
        hf_keys_heads(keys, names->heads, (uint64_t)otherwise->heads, tower.hidden, names->hidden);
    return tower;
}

static const struct transformer_tower GELU = {.activation = GRAPH_GELU};

static int64_t clamp_positions(int64_t positions)
{
    return positions < DEFAULT_TOKENS ? positions : DEFAULT_TOKENS;
}

static bool is_for(struct hf_keys *keys, const char *purpose)
{
    return str_equal(hf_keys_purpose(keys), purpose);
}

static void reject_head(struct hf_keys *keys, const char *known)
{
    char what[200];
    chars_format(what, "not supported with this model_type, only %s are", known);
    hf_keys_reject(keys, ERR_UNSUPPORTED, "architectures", what);
}

/* ---- heads of encoders ---- */

/* Without `architectures` it is the bare model.  Whether a model keeps the pooler below a head, or has a dense layer
 * before the classifier instead, depends on the family. */
static struct transformer_head read_encoder_head(struct hf_keys *keys, bool pools, bool *has_pooler)
{
    static const char KNOWN[] = "...Model, ...ForMaskedLM, ...ForSequenceClassification, "
                                "...ForTokenClassification, ...ForQuestionAnswering";
    const char *purpose = hf_keys_purpose(keys);
    struct transformer_head head = {0};
    if (!purpose[0] || str_equal(purpose, "Model"))
        return head;
    bool is_sequence = str_equal(purpose, "ForSequenceClassification");
    bool is_pretraining = str_equal(purpose, "ForPreTraining");
    bool is_pair = is_pretraining || str_equal(purpose, "ForNextSentencePrediction");
    bool is_choice = str_equal(purpose, "ForMultipleChoice");
    *has_pooler = *has_pooler && (is_pair || is_choice || (is_sequence && pools));
    head.has_vocabulary = is_pretraining || str_equal(purpose, "ForMaskedLM");
    head.has_dense = is_sequence && !pools;
    if (is_sequence)
        head.classes = hf_keys_labels(keys, 2);
    else if (is_choice)
        head.classes = 1;
    else if (is_pair || str_equal(purpose, "ForQuestionAnswering"))
        head.classes = 2;
    else if (str_equal(purpose, "ForTokenClassification"))
        head.classes = hf_keys_labels(keys, 2);
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
        .tower = {size(keys, "n_embd", HF_MAX_SIZE, 0), 0,
                  (int64_t)hf_keys_optional(keys, "n_inner", HF_MAX_SIZE),
                  layers(keys, "n_layer", 0),
                  hf_keys_activation(keys, "activation_function", GRAPH_GELU_NEW)},
        .has_no_head = is_for(keys, "Model"),
    };
    gpt2.tower.heads = hf_keys_heads(keys, "n_head", 0, gpt2.tower.hidden, "n_embd");
    if (!gpt2.tower.intermediate)
        gpt2.tower.intermediate = 4 * gpt2.tower.hidden;
    if (is_for(keys, "ForSequenceClassification"))
        gpt2.classes = hf_keys_labels(keys, 2);
    else if (!gpt2.has_no_head && hf_keys_purpose(keys)[0] && !is_for(keys, "LMHeadModel") &&
             !is_for(keys, "ForCausalLM"))
        reject_head(keys, "GPT2LMHeadModel, GPT2Model, GPT2ForSequenceClassification");
    if (!hf_keys_bool(keys, "tie_word_embeddings", true))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "tie_word_embeddings",
                       "a head of its own is not supported with this model_type");
    out->as.gpt2 = gpt2;
    out->tokens = gpt2.positions < DECODER_DEFAULT_TOKENS ? gpt2.positions : DECODER_DEFAULT_TOKENS;
    out->has_phases = true;
}

static void read_bert(struct hf_keys *keys, const char *type, struct hf_config *out)
{
    static const struct tower_keys DISTILBERT = {"dim|hidden_size", "n_heads|num_attention_heads",
                                                 "hidden_dim", "n_layers", "activation"};
    bool is_distilled = str_equal(type, "distilbert"), is_bert = str_equal(type, "bert");
    struct transformer_bert bert = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "max_position_embeddings", HF_MAX_POSITIONS, 512),
        .tower = read_tower(keys, is_distilled ? &DISTILBERT : &PLAIN, &GELU),
        .has_pooler = !is_distilled,
        .is_distilled = is_distilled,
    };
    if (!is_distilled)
        bert.types = hf_keys_get(keys, "type_vocab_size")
                         ? (int64_t)hf_keys_optional(keys, "type_vocab_size", HF_MAX_SIZE)
                         : 2;
    bert.head = read_encoder_head(keys, is_bert, &bert.has_pooler);
    if (bert.head.has_vocabulary && !hf_keys_bool(keys, "tie_word_embeddings", true))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "tie_word_embeddings",
                       "a matrix of its own for the vocabulary is not supported");
    out->as.bert = bert;
    out->tokens = clamp_positions(bert.positions);
}

/* ---- images ---- */

static void read_vit(struct hf_keys *keys, struct hf_config *out)
{
    struct transformer_vit vit = {
        .image = size(keys, "image_size", HF_MAX_PIXELS, 224),
        .patch = size(keys, "patch_size", HF_MAX_PIXELS, 16),
        .channels = size(keys, "num_channels", HF_MAX_HEADS, 3),
        .tower = read_tower(keys, &PLAIN, &GELU),
        .has_pooler = true,
        .has_no_qkv_bias = !hf_keys_bool(keys, "qkv_bias", true),
    };
    if (vit.image % vit.patch)
        hf_keys_reject(keys, ERR_BAD_VALUE, "patch_size", "does not divide 'image_size'");
    (void)hf_keys_optional(keys, "encoder_stride", HF_MAX_PIXELS); /* used in pretraining only */
    if (is_for(keys, "ForImageClassification"))
        vit.classes = hf_keys_labels(keys, 2);
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
    sizes->encoder = (struct transformer_tower){
        .hidden = sizes->hidden,
        .heads = size(keys, "num_heads|num_attention_heads", HF_MAX_HEADS, 8),
        .intermediate = size(keys, "d_ff", HF_MAX_SIZE, 2048),
        .layers = layers(keys, "num_layers|num_hidden_layers", 6),
        .activation = GRAPH_GELU,
    };
    sizes->head_size = size(keys, "d_kv", HF_MAX_HEADS, 64);
    sizes->buckets = size(keys, "relative_attention_num_buckets", HF_MAX_SIZE, 32);
    (void)hf_keys_optional(keys, "relative_attention_max_distance|n_positions", HF_MAX_POSITIONS);
    (void)hf_keys_bool(keys, "is_gated_act", is_gated);
    sizes->is_gated = is_gated;
    if (str_equal(name, "relu"))
        sizes->encoder.activation = GRAPH_RELU;
    else if (str_equal(name, "silu"))
        sizes->encoder.activation = GRAPH_SILU;
    else if (strncmp(name, "gelu", 4) != 0)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "feed_forward_proj",
                       "not supported, only relu, gelu and silu are, alone or after gated-");
    sizes->has_own_head = !hf_keys_bool(keys, "tie_word_embeddings", true);
    sizes->decoder = sizes->encoder;
    sizes->decoder.layers = layers(keys, "num_decoder_layers", (uint64_t)sizes->encoder.layers);
}

/* BART and Whisper. */
static void read_bart(struct hf_keys *keys, bool is_audio, struct transformer_seq2seq *sizes)
{
    sizes->family = is_audio ? SEQ2SEQ_WHISPER : SEQ2SEQ_BART;
    sizes->encoder = read_tower(keys, &ENCODER, &GELU);
    sizes->decoder = read_tower(keys, &DECODER, &GELU);
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
    enum { AUDIO_TOKENS = 4 }; /* start-of-transcript tokens */
    bool is_t5 = str_equal(type, "t5"), is_audio = str_equal(type, "whisper");
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
        sizes.classes = hf_keys_labels(keys, 3); /* Bart alone */
    else if (hf_keys_purpose(keys)[0] && !sizes.has_no_head && !sizes.is_encoder_only &&
             !is_for(keys, "ForConditionalGeneration") && !is_for(keys, "LMHeadModel"))
        reject_head(keys, "...ForConditionalGeneration, ...Model, T5EncoderModel and "
                          "BartForSequenceClassification");
    out->as.seq2seq = sizes;
    if (is_audio)
        out->tokens = AUDIO_TOKENS;
    else
        out->tokens = is_t5 ? DEFAULT_TOKENS : clamp_positions(sizes.positions);
    out->has_phases = !sizes.is_encoder_only && !sizes.classes;
}

/* ---- DeBERTa ---- */

/* A list of names, or one string with "|" between them. */
static bool has_position_type(struct hf_keys *keys, const char *name)
{
    const struct jv *value = hf_keys_get(keys, "pos_att_type");
    if (jv_text(value))
        return strstr(jv_text(value), name);
    for (const struct jv *one = jv_first(value); one; one = jv_next(one))
        if (jv_text(one) && str_equal(jv_text(one), name))
            return true;
    return false;
}

/* -1 in max_relative_positions and position_buckets means no limit. */
static int64_t distance_key(struct hf_keys *keys, const char *name)
{
    int64_t value = -1;
    return jv_integer(hf_keys_get(keys, name), &value) && value == -1
               ? 0
               : (int64_t)hf_keys_optional(keys, name, HF_MAX_POSITIONS);
}

static void read_distances(struct hf_keys *keys, bool is_first, struct transformer_deberta *sizes)
{
    const char *norm = is_first ? NULL : hf_keys_string(keys, "norm_rel_ebd");
    int64_t buckets = is_first ? 0 : distance_key(keys, "position_buckets");
    int64_t max = distance_key(keys, "max_relative_positions");
    if (!hf_keys_bool(keys, "relative_attention", false))
        return;
    sizes->distances = 2 * (buckets ? buckets : max ? max : sizes->positions);
    sizes->by_key = has_position_type(keys, "c2p");
    sizes->by_query = has_position_type(keys, "p2c");
    sizes->has_own_projections = !is_first && !hf_keys_bool(keys, "share_att_key", false);
    sizes->has_distance_norm = norm && strstr(norm, "layer_norm");
}

static void read_deberta(struct hf_keys *keys, bool is_first, struct hf_config *out)
{
    struct transformer_deberta sizes = {
        .vocabulary = size(keys, "vocab_size", UINT32_MAX, 0),
        .positions = size(keys, "max_position_embeddings", HF_MAX_POSITIONS, 512),
        .types = (int64_t)hf_keys_optional(keys, "type_vocab_size", HF_MAX_SIZE),
        .tower = read_tower(keys, &PLAIN, &GELU),
        .is_first_version = is_first,
        .has_pooler = true,
    };
    uint64_t hidden = (uint64_t)sizes.tower.hidden;
    read_distances(keys, is_first, &sizes);
    if (!is_first)
        sizes.kernel = (int64_t)hf_keys_optional(keys, "conv_kernel_size", HF_MAX_HEADS);
    if (sizes.kernel && (sizes.kernel % 2 == 0 || size(keys, "conv_groups", HF_MAX_SIZE, 1) != 1))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "conv_kernel_size",
                       "only odd sizes without groups are supported");
    if (hf_keys_size(keys, "embedding_size", HF_MAX_SIZE, hidden) != hidden)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "embedding_size", "must be 'hidden_size'");
    if (hf_keys_size(keys, "pooler_hidden_size", HF_MAX_SIZE, hidden) != hidden)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "pooler_hidden_size", "must be 'hidden_size'");
    (void)hf_keys_size(keys, "attention_head_size", HF_MAX_SIZE, 1);
    sizes.head = read_encoder_head(keys, true, &sizes.has_pooler);
    if (!sizes.head.classes && !sizes.head.has_vocabulary)
        sizes.has_pooler = false; /* only a classifier has it */
    out->tokens = clamp_positions(sizes.positions);
    if (!hf_keys_bool(keys, "position_biased_input", true))
        sizes.positions = 0;
    out->as.deberta = sizes;
}

/* ---- CLIP ---- */

static void read_clip_text(struct hf_keys *keys, struct transformer_clip *clip)
{
    clip->has_text = true;
    clip->text =
        read_tower(keys, &PLAIN, &(struct transformer_tower){512, 8, 4 * 512, 12, GRAPH_SILU});
    (void)size(keys, "projection_dim", HF_MAX_SIZE, 512);
    clip->vocabulary = size(keys, "vocab_size", UINT32_MAX, 49408);
    clip->positions = size(keys, "max_position_embeddings", HF_MAX_POSITIONS, 77);
}

static void read_clip_vision(struct hf_keys *keys, struct transformer_clip *clip)
{
    clip->has_image = true;
    clip->vision =
        read_tower(keys, &PLAIN, &(struct transformer_tower){768, 12, 4 * 768, 12, GRAPH_SILU});
    (void)size(keys, "projection_dim", HF_MAX_SIZE, 512);
    clip->image = size(keys, "image_size", HF_MAX_PIXELS, 224);
    clip->patch = size(keys, "patch_size", HF_MAX_PIXELS, 32);
    clip->channels = size(keys, "num_channels", HF_MAX_HEADS, 3);
    if (clip->image % clip->patch)
        hf_keys_reject(keys, ERR_BAD_VALUE, "patch_size", "does not divide 'image_size'");
}

/* The keys of the towers are in separate objects; CLIPTextModel and CLIPVisionModel are one of them. */
static void read_towers(struct hf_keys *keys, const char *name, struct transformer_clip *clip)
{
    struct hf_keys text = hf_keys_of(keys->file, hf_keys_get(keys, "text_config"), keys->why);
    struct hf_keys vision = hf_keys_of(keys->file, hf_keys_get(keys, "vision_config"), keys->why);
    if (!name || !strstr(name, "Vision"))
        read_clip_text(&text, clip);
    if (!text.err && (!name || !strstr(name, "Text")))
        read_clip_vision(&vision, clip);
    keys->err = text.err ? text.err : vision.err ? vision.err : keys->err;
}

static void read_clip(struct hf_keys *keys, const char *type, struct hf_config *out)
{
    const char *name = jv_text(jv_first(hf_keys_get(keys, "architectures")));
    struct transformer_clip clip = {0};
    if (str_equal(type, "clip"))
        read_towers(keys, name, &clip);
    else if (str_equal(type, "clip_text_model"))
        read_clip_text(keys, &clip);
    else
        read_clip_vision(keys, &clip);
    clip.projection = size(keys, "projection_dim", HF_MAX_SIZE, 512);
    clip.has_projection =
        (clip.has_text && clip.has_image) || (name && strstr(name, "WithProjection"));
    if (name && strstr(name, "For"))
        reject_head(keys, "CLIPModel, CLIPTextModel and CLIPVisionModel");
    out->as.clip = clip;
    out->tokens = clip.has_text ? clip.positions : 0;
    out->image = clip.has_image ? clip.image : 0;
}

/* ---- SigLIP ---- */

static const struct transformer_tower SIGLIP = {768, 12, 4 * 768, 12, GRAPH_GELU};

static void read_siglip_text(struct hf_keys *keys, struct transformer_siglip *siglip)
{
    siglip->has_text = true;
    siglip->text = read_tower(keys, &PLAIN, &SIGLIP);
    siglip->vocabulary = size(keys, "vocab_size", UINT32_MAX, 32000);
    siglip->positions = size(keys, "max_position_embeddings", HF_MAX_POSITIONS, 64);
    siglip->projection = size(keys, "projection_size", HF_MAX_SIZE, (uint64_t)siglip->text.hidden);
}

static void read_siglip_vision(struct hf_keys *keys, struct transformer_siglip *siglip)
{
    siglip->has_image = true;
    siglip->vision = read_tower(keys, &PLAIN, &SIGLIP);
    siglip->image = size(keys, "image_size", HF_MAX_PIXELS, 224);
    siglip->patch = size(keys, "patch_size", HF_MAX_PIXELS, 16);
    siglip->channels = size(keys, "num_channels", HF_MAX_HEADS, 3);
    siglip->has_pooling = hf_keys_bool(keys, "vision_use_head", true);
    if (siglip->image < siglip->patch)
        hf_keys_reject(keys, ERR_BAD_VALUE, "patch_size", "is larger than 'image_size'");
}

static void read_siglip_towers(struct hf_keys *keys, const char *name,
                               struct transformer_siglip *siglip)
{
    struct hf_keys text = hf_keys_of(keys->file, hf_keys_get(keys, "text_config"), keys->why);
    struct hf_keys vision = hf_keys_of(keys->file, hf_keys_get(keys, "vision_config"), keys->why);
    if (!name || !strstr(name, "Vision"))
        read_siglip_text(&text, siglip);
    if (!text.err && (!name || !strstr(name, "Text")))
        read_siglip_vision(&vision, siglip);
    keys->err = text.err ? text.err : vision.err ? vision.err : keys->err;
    bool has_both = siglip->has_text && siglip->has_image && !keys->err;
    if (has_both && (siglip->projection != siglip->vision.hidden || !siglip->has_pooling))
        hf_keys_reject(keys, ERR_BAD_VALUE, "text_config",
                       "its projection_size must be the hidden_size of vision_config, which needs "
                       "its head");
}

static void read_siglip(struct hf_keys *keys, const char *type, struct hf_config *out)
{
    const char *name = jv_text(jv_first(hf_keys_get(keys, "architectures")));
    struct transformer_siglip siglip = {0};
    if (str_equal(type, "siglip"))
        read_siglip_towers(keys, name, &siglip);
    else if (str_equal(type, "siglip_text_model"))
        read_siglip_text(keys, &siglip);
    else
        read_siglip_vision(keys, &siglip);
    if (name && strstr(name, "For"))
        reject_head(keys, "SiglipModel, SiglipTextModel and SiglipVisionModel");
    out->as.siglip = siglip;
    out->tokens = siglip.has_text ? siglip.positions : 0;
    out->image = siglip.has_image ? siglip.image : 0;
}

/* ---- SegFormer ---- */

static void read_segformer(struct hf_keys *keys, struct hf_config *out)
{
    static const int64_t DEPTHS[] = {2, 2, 2, 2}, HIDDEN[] = {32, 64, 160, 256};
    static const int64_t HEADS[] = {1, 2, 5, 8}, REDUCTIONS[] = {8, 4, 2, 1};
    static const int64_t RATIOS[] = {4, 4, 4, 4}, PATCHES[] = {7, 3, 3, 3},
                         STRIDES[] = {4, 2, 2, 2};
    enum { N = SEGFORMER_STAGES };
    struct transformer_segformer sizes = {
        .channels = size(keys, "num_channels", HF_MAX_HEADS, 3),
        .activation = hf_keys_activation(keys, "hidden_act", GRAPH_GELU),
    };
    hf_keys_sizes(keys, "depths", HF_MAX_LAYERS, N, DEPTHS, sizes.depths);
    hf_keys_sizes(keys, "hidden_sizes", HF_MAX_SIZE, N, HIDDEN, sizes.hidden);
    hf_keys_sizes(keys, "num_attention_heads", HF_MAX_HEADS, N, HEADS, sizes.heads);
    hf_keys_sizes(keys, "sr_ratios", HF_MAX_HEADS, N, REDUCTIONS, sizes.reductions);
    hf_keys_sizes(keys, "mlp_ratios", 64, N, RATIOS, sizes.ratios);
    hf_keys_sizes(keys, "patch_sizes", HF_MAX_HEADS, N, PATCHES, sizes.patches);
    hf_keys_sizes(keys, "strides", HF_MAX_HEADS, N, STRIDES, sizes.strides);
    for (int i = 0; i < N; i++)
        if (sizes.hidden[i] % sizes.heads[i])
            hf_keys_reject(keys, ERR_BAD_VALUE, "num_attention_heads",
                           "does not divide 'hidden_sizes'");
    if (size(keys, "num_encoder_blocks", N, N) != N)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "num_encoder_blocks", "must be 4");
    if (is_for(keys, "ForSemanticSegmentation"))
        sizes.head_hidden = size(keys, "decoder_hidden_size", HF_MAX_SIZE, 256);
    if (is_for(keys, "ForSemanticSegmentation") || is_for(keys, "ForImageClassification"))
        sizes.classes = hf_keys_labels(keys, 2);
    else if (hf_keys_purpose(keys)[0] && !is_for(keys, "Model"))
        reject_head(keys, "SegformerModel, SegformerForSemanticSegmentation and "
                          "SegformerForImageClassification");
    (void)hf_keys_get(keys, "decoder_hidden_size|downsampling_rates|image_size|reshape_last_stage");
    (void)hf_keys_get(keys, "reshape_last_stage");
    out->as.segformer = sizes;
    out->image = size(keys, "image_size", HF_MAX_PIXELS, 512);
}

/* ---- DETR ---- */

static void read_backbone(struct hf_keys *keys, struct transformer_detr *detr)
{
    static const struct {
        const char *name;
        int64_t depths[4];
    } BACKBONES[] = {
        {"resnet50", {3, 4, 6, 3}}, {"resnet101", {3, 4, 23, 3}}, {"resnet152", {3, 8, 36, 3}}};
    const char *name = hf_keys_string(keys, "backbone");
    const struct jv *config = hf_keys_get(keys, "backbone_config"); /* key of transformers 5 */
    name = name ? name : jv_get_text(config, "backbone");
    (void)hf_keys_bool(keys, "use_timm_backbone", true);
    (void)hf_keys_bool(keys, "use_pretrained_backbone", true);
    if (config && !name)
        hf_keys_reject(keys, ERR_UNSUPPORTED, "backbone_config",
                       "not supported, only 'backbone' with resnet50, resnet101 or resnet152 is");
    if (hf_keys_bool(keys, "dilation", false))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "dilation", "a dilated backbone is not supported");
    for (size_t i = 0; i < COUNT_OF(BACKBONES); i++)
        if (str_equal(BACKBONES[i].name, name ? name : "resnet50")) {
            memcpy(detr->depths, BACKBONES[i].depths, sizeof detr->depths);
            return;
        }
    hf_keys_reject(keys, ERR_UNSUPPORTED, "backbone",
                   "not supported, only resnet50, resnet101 and resnet152 are");
}

static void read_detr(struct hf_keys *keys, struct hf_config *out)
{
    static const struct transformer_tower USUAL = {256, 8, 2048, 6, GRAPH_RELU};
    const char *positions = hf_keys_string(keys, "position_embedding_type");
    struct transformer_detr detr = {
        .channels = size(keys, "num_channels", HF_MAX_HEADS, 3),
        .encoder = read_tower(keys, &ENCODER, &USUAL),
        .decoder = read_tower(keys, &DECODER, &USUAL),
        .queries = size(keys, "num_queries", HF_MAX_SIZE, 100),
    };
    read_backbone(keys, &detr);
    if (positions && !str_equal(positions, "sine"))
        hf_keys_reject(keys, ERR_UNSUPPORTED, "position_embedding_type", "only sine is supported");
    if (is_for(keys, "ForObjectDetection"))
        detr.classes = hf_keys_labels(keys, 2);
    else if (hf_keys_purpose(keys)[0] && !is_for(keys, "Model"))
        reject_head(keys, "DetrModel and DetrForObjectDetection");
    (void)hf_keys_get(keys, "max_position_embeddings");
    out->as.detr = detr;
    out->image = 800;
}

/* ---- all kinds ---- */

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
    case HF_DEBERTA:
        read_deberta(keys, str_equal(type, "deberta"), out);
        break;
    case HF_CLIP:
        read_clip(keys, type, out);
        break;
    case HF_MAMBA:
        hf_mamba_read(keys, out);
        break;
    case HF_MAMBA2:
        hf_mamba2_read(keys, out);
        break;
    case HF_SIGLIP:
        read_siglip(keys, type, out);
        break;
    case HF_SEGFORMER:
        read_segformer(keys, out);
        break;
    case HF_DETR:
        read_detr(keys, out);
        break;
    case HF_UNET:
    case HF_VAE:
    case HF_FLUX:
    case HF_DECODER:
        break;
    }
}
