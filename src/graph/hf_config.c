#include "graph/hf_config.h"

#include <string.h>

#include "core/text.h"
#include "graph/decoder_graph.h"
#include "graph/hf/decoder.h"
#include "graph/hf/keys.h"
#include "graph/hf/others.h"
#include "graph/model_files.h"
#include "port/json_read.h"

/* As in the zoo. */
enum { DEFAULT_TOKENS = 128, MOST_BATCH = 1000000, MOST_PIXELS = 100000 };

/* Those that are no decoders of Llama's kind. */
static const struct {
    const char *type;
    enum hf_kind kind;
} TYPES[] = {
    {"gpt2", HF_GPT2},        {"bert", HF_BERT},       {"roberta", HF_BERT},
    {"xlm-roberta", HF_BERT}, {"distilbert", HF_BERT}, {"vit", HF_VIT},
};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

/* ---- reading ---- */

static enum err not_known(const char *file, const char *type, struct error *why)
{
    struct text known = {0};
    for (size_t i = 0; i < decoder_kind_count(); i++)
        text_addf(&known, "%s, ", decoder_kind_at(i));
    for (size_t i = 0; i < TYPE_COUNT; i++)
        text_addf(&known, "%s%s", TYPES[i].type, i + 1 < TYPE_COUNT ? ", " : "");
    enum err err =
        err_set(why, ERR_UNSUPPORTED, "%.80s: the model_type '%.40s' is not one of those known: %s",
                file, model_plain(type).text, text_get(&known));
    text_release(&known);
    return err;
}

static void read_decoder(struct hf_keys *keys, struct decoder_shape *shape, struct hf_config *out)
{
    out->kind = HF_DECODER;
    shape->name = out->name;
    hf_decoder_read(keys, shape, &out->as.decoder);
    out->is_quantised = shape->matrix_bits > 0;
}

static void read_other(struct hf_keys *keys, const char *type, struct hf_config *out)
{
    if (out->kind == HF_GPT2)
        out->as.gpt2 = hf_gpt2_read(keys);
    else if (out->kind == HF_VIT)
        out->as.vit = hf_vit_read(keys);
    else if (strcmp(type, "distilbert") == 0)
        out->as.bert = hf_distilbert_read(keys);
    else
        out->as.bert = hf_bert_read(keys);
}

enum err hf_config_parse(const char *file, const char *name, const struct jv *json,
                         struct hf_config *out, struct error *why)
{
    struct hf_keys keys = {file, json, why, ERR_OK};
    struct decoder_shape shape;
    *out = (struct hf_config){0};
    str_copy(out->name, sizeof out->name, name);
    const char *type = hf_text(&keys, "model_type");
    if (!keys.err && !type)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: 'model_type' is missing: this is no config.json of a model", file);
    if (keys.err)
        return keys.err;
    if (decoder_shape_of_kind(type, &shape)) {
        read_decoder(&keys, &shape, out);
        return keys.err;
    }
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (strcmp(TYPES[i].type, type) == 0) {
            out->kind = TYPES[i].kind;
            read_other(&keys, type, out);
            return keys.err;
        }
    return not_known(file, type, why);
}

enum err hf_config_read(const char *path, struct hf_config *out, struct error *why)
{
    struct jv *json;
    char name[128];
    model_path_name(path, name, sizeof name);
    enum err err = model_json_read(path, &json, why);
    if (err)
        return err;
    err = hf_config_parse(path, name, json, out, why);
    jv_free(json);
    return err;
}

void hf_config_release(struct hf_config *config)
{
    if (config->kind == HF_DECODER)
        decoder_release(&config->as.decoder);
    *config = (struct hf_config){0};
}

/* ---- building ---- */

bool hf_config_has_phases(const struct hf_config *config)
{
    return config->kind == HF_DECODER || config->kind == HF_GPT2;
}

int64_t hf_config_trained(const struct hf_config *config)
{
    return config->kind == HF_DECODER ? (int64_t)config->as.decoder.context : 0;
}

static int64_t tokens_at_most(const struct hf_config *config)
{
    int64_t positions = config->kind == HF_GPT2   ? config->as.gpt2.positions
                        : config->kind == HF_BERT ? config->as.bert.positions
                                                  : 1;
    return positions < DEFAULT_TOKENS ? positions : DEFAULT_TOKENS;
}

static void fill_in(const struct hf_config *config, struct graph_setting *setting)
{
    if (setting->batch == 0)
        setting->batch = 1;
    if (config->kind == HF_VIT && setting->image == 0)
        setting->image = config->as.vit.image;
    if (config->kind != HF_VIT && setting->tokens == 0)
        setting->tokens = tokens_at_most(config);
    if (config->kind == HF_GPT2 && setting->context == 0)
        setting->context = tokens_at_most(config);
}

static enum err complete(const struct hf_config *config, struct graph_setting *setting,
                         struct error *why)
{
    fill_in(config, setting);
    if (setting->batch < 0 || setting->batch > MOST_BATCH)
        return err_set(why, ERR_USAGE, "a batch of %lld: 1 to %d can be computed",
                       (long long)setting->batch, MOST_BATCH);
    if (setting->tokens < 0 || setting->context < 0)
        return err_set(why, ERR_USAGE, "less than no tokens cannot be computed");
    if (config->kind == HF_VIT && (setting->image < 0 || setting->image > MOST_PIXELS))
        return err_set(why, ERR_USAGE, "an image of %lld pixels a side: 1 to %d can be computed",
                       (long long)setting->image, MOST_PIXELS);
    if (setting->phase == GRAPH_DECODE && !hf_config_has_phases(config))
        return err_set(why, ERR_UNSUPPORTED, "%s does not answer token by token: it has no decode",
                       config->name);
    return ERR_OK;
}

enum err hf_config_graph(const struct hf_config *config, struct graph_setting *setting,
                         struct graph *out, struct error *why)
{
    if (config->kind == HF_DECODER)
        return decoder_graph(&config->as.decoder, setting, out, why);
    enum err err = complete(config, setting, why);
    if (err)
        return err;
    switch (config->kind) {
    case HF_GPT2:
        return transformer_gpt2(config->name, &config->as.gpt2, setting, out, why);
    case HF_BERT:
        return transformer_bert(config->name, &config->as.bert, setting, out, why);
    default:
        return transformer_vit(config->name, &config->as.vit, setting, out, why);
    }
}
