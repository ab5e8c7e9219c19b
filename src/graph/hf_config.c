/* config.json of Hugging Face.  Every size is range-checked before it is used.  The reader "hf_config" is at the
 * end. */
#include "graph/hf.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/registry.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graph/count.h"
#include "graph/decoder_shape.h"
#include "graph/hf_keys.h"
#include "graph/model_files.h"
#include "port/file.h"
#include "port/json_read.h"

/* ---- any model_type ---- */

/* model_types other than those of decoders (decoder_kinds.def). */
static const struct {
    const char *type;
    enum hf_kind kind;
} TYPES[] = {
#define HF_TYPE(type, kind) {type, HF_##kind},
#include "graph/hf_types.def"
#undef HF_TYPE
};
enum { TYPE_COUNT = COUNT_OF(TYPES) };

/* Multimodal models: only their text part is counted. */
static const struct {
    const char *type, *text;
} WRAPPERS[] = {{"gemma3", "gemma3_text"}, {"llama4", "llama4_text"}};

/* One line, as every error: the list of all types would not fit. */
static enum err unknown_type(const char *file, const char *type, struct error *why)
{
    enum { WRAPPER_COUNT = COUNT_OF(WRAPPERS), NAMES_MAX = 96 };
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < decoder_kind_count() && count < NAMES_MAX; i++)
        names[count++] = decoder_kind_at(i);
    for (size_t i = 0; i < WRAPPER_COUNT && count < NAMES_MAX; i++)
        names[count++] = WRAPPERS[i].type;
    for (size_t i = 0; i < TYPE_COUNT && count < NAMES_MAX; i++)
        names[count++] = TYPES[i].type;
    const char *nearest = nearest_name(type, names, count);
    return err_set(why, ERR_UNSUPPORTED,
                   "%.80s: unknown model_type '%.40s'%s%s%s; docs/formats.md lists the %zu known "
                   "ones, and an ONNX or GGUF file of the model is read too",
                   file, model_label(slice_of(type)).text, nearest ? ", did you mean '" : "",
                   nearest ? nearest : "", nearest ? "'?" : "", count);
}

static void read_decoder(struct hf_keys *keys, struct decoder_shape *shape, struct hf_config *out)
{
    out->kind = HF_DECODER;
    shape->name = out->name;
    hf_decoder_read(keys, shape, &out->as.decoder);
    out->is_quantized = shape->matrix_bits > 0;
    out->has_products = shape->has_products;
    if (out->is_quantized && (!out->file.is_known || out->file.floats == PRECISION_FP32))
        out->file = (struct graph_precision){.floats = PRECISION_BF16,
                                             .products = PRECISION_BF16,
                                             .is_known = shape->has_products,
                                             .share = 1};
    if (shape->has_products)
        out->file.products = shape->products;
}

/* The dtype of its weights as saved; transformers 5 renamed the key. */
static void read_dtype(const struct hf_keys *keys, struct graph_precision *out)
{
    static const struct {
        const char *name;
        enum precision precision;
    } DTYPES[] = {
        {"float32", PRECISION_FP32}, {"float16", PRECISION_FP16}, {"bfloat16", PRECISION_BF16}};
    const char *name = jv_get_text(keys->json, "dtype");
    name = name ? name : jv_get_text(keys->json, "torch_dtype");
    for (size_t i = 0; name && i < COUNT_OF(DTYPES); i++)
        if (str_equal(DTYPES[i].name, name))
            *out = (struct graph_precision){.is_known = true,
                                            .products = DTYPES[i].precision,
                                            .floats = DTYPES[i].precision,
                                            .share = 1};
}

static const char *unwrap(struct hf_keys *keys, const char *type)
{
    for (size_t i = 0; i < COUNT_OF(WRAPPERS); i++) {
        const struct jv *text = jv_get(keys->json, "text_config");
        if (!str_equal(WRAPPERS[i].type, type))
            continue;
        if (!jv_is_object(text)) {
            hf_keys_reject(keys, ERR_BAD_VALUE, "text_config", "must be an object");
            return type;
        }
        log_warn("%s: only the text part of a multimodal model is counted, not its vision part",
                 keys->file);
        keys->json = text;
        return WRAPPERS[i].text;
    }
    return type;
}

static enum err parse_type(struct hf_keys *keys, const char *type, struct hf_config *out)
{
    struct decoder_shape shape;
    if (decoder_shape_for_kind(type, &shape)) {
        read_decoder(keys, &shape, out);
        return keys->err;
    }
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (str_equal(TYPES[i].type, type)) {
            out->kind = TYPES[i].kind;
            hf_transformer_read(keys, type, out);
            return keys->err;
        }
    return unknown_type(keys->file, type, keys->why);
}

enum err hf_config_parse(const char *file, const char *name, const struct jv *json,
                         struct hf_config *out, struct error *why)
{
    struct hf_keys keys = hf_keys_of(file, json, why);
    *out = (struct hf_config){0};
    chars_copy(out->name, name);
    const char *type = hf_keys_string(&keys, "model_type");
    const char *class_name = hf_keys_string(&keys, "_class_name");
    if (!keys.err && !type && !class_name)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: 'model_type' is missing: not the config.json of a model", file);
    read_dtype(&keys, &out->file);
    if (!keys.err && type)
        type = unwrap(&keys, type);
    read_dtype(&keys, &out->file); /* a multimodal model may have it in text_config only */
    if (!keys.err && !type)
        hf_diffusion_read(&keys, class_name, out);
    enum err err = keys.err || !type ? keys.err : parse_type(&keys, type, out);
    if (!err)
        hf_keys_report(&keys);
    return err;
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
    return config->kind == HF_DECODER || config->has_phases;
}

int64_t hf_config_context(const struct hf_config *config)
{
    return config->kind == HF_DECODER ? (int64_t)config->as.decoder.context : 0;
}

static tensor_id build_model(struct build *b, const struct hf_config *config,
                             const struct graph_options *options)
{
    switch (config->kind) {
    case HF_GPT2:
        return transformer_gpt2(b, &config->as.gpt2, options);
    case HF_BERT:
        return transformer_bert(b, &config->as.bert, options);
    case HF_VIT:
        return transformer_vit(b, &config->as.vit, options);
    case HF_SEQ2SEQ:
        return transformer_seq2seq(b, &config->as.seq2seq, options);
    case HF_DEBERTA:
        return transformer_deberta(b, &config->as.deberta, options);
    case HF_CLIP:
        return transformer_clip(b, &config->as.clip, options);
    case HF_MAMBA:
        return transformer_mamba(b, &config->as.mamba, options);
    case HF_MAMBA2:
        return transformer_mamba2(b, &config->as.mamba2, options);
    case HF_SIGLIP:
        return transformer_siglip(b, &config->as.siglip, options);
    case HF_UNET:
    case HF_VAE:
    case HF_FLUX:
        return hf_diffusion_build(b, config, options);
    case HF_SEGFORMER:
        return transformer_segformer(b, &config->as.segformer, options);
    case HF_DETR:
        return transformer_detr(b, &config->as.detr, options);
    case HF_DECODER:
        break;
    }
    return build_fail(b, "", "has an unknown architecture");
}

/* Activations are quantized before a quantized matrix; other products keep the dtype of the floats. */
static void state_products(const struct hf_config *config, struct graph *graph)
{
    double quantized = 0, all = 0;
    graph->file = config->file;
    for (size_t i = 0; config->has_products && i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];
        if (graph_op_kind(node->op) != GRAPH_KIND_PRODUCT)
            continue;
        bool is_stored = false;
        for (uint32_t k = 0; k < node->input_count; k++) {
            tensor_id id = graph->links[node->first_input + k];
            is_stored = is_stored || (id >= 0 && graph->tensors[id].stored_bytes > 0);
        }
        double macs = graph_node_cost(graph, node).macs;
        node->has_precision = true;
        node->precision = is_stored ? config->file.products : config->file.floats;
        quantized += is_stored ? macs : 0;
        all += macs;
    }
    if (all > 0)
        graph->file.share = quantized / all;
}

enum err hf_config_graph(const struct hf_config *config, struct graph_options *options,
                         struct graph *out, struct error *why)
{
    if (config->kind == HF_DECODER) {
        enum err err = decoder_graph(&config->as.decoder, options, out, why);
        if (!err)
            state_products(config, out);
        return err;
    }
    bool is_translated = config->kind == HF_SEQ2SEQ && !config->as.seq2seq.bins;
    bool is_input = is_translated && options->phase == GRAPH_DECODE && options->context > 1;
    if (is_input && options->tokens == 0) /* the context without the new token */
        options->tokens = options->context - 1;
    const struct graph_options defaults = {
        .image = config->image,
        .tokens = config->tokens,
        .context = config->has_phases ? config->tokens + is_translated : 0,
    };
    enum err err =
        graph_options_complete(options, config->name, config->has_phases, &defaults, why);
    if (err)
        return err;
    struct build b = build_begin(out, config->name, why);
    build_output(&b, build_model(&b, config, options));
    err = build_end(&b);
    if (!err)
        out->file = config->file;
    return err;
}

/* ---- the reader ---- */

static bool begins_object(const unsigned char *head, size_t length)
{
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", head[at]) && head[at])
        at++;
    return at < length && head[at] == '{';
}

static int probe(const char *source, const unsigned char *head, size_t length)
{
    bool is_object = head && begins_object(head, length);
    if (is_object && model_path_ends(source, "config.json"))
        return 80;
    if (is_object)
        return model_path_ends(source, ".json") ? 50 : 0;
    if (head || !file_is_directory(source))
        return 0;
    char *path = model_find_sibling(source, "config.json");
    bool is_there = path;
    free(path);
    return is_there ? 50 : 0;
}

static enum err open_file(const char *source, struct model *model, struct error *why)
{
    struct hf_config *config = model->state;
    char *path = file_is_directory(source) ? path_join(source, "config.json") : xstrdup(source);
    enum err err = hf_config_read(path, config, why);
    free(path);
    if (err)
        return err;
    model->has_phases = hf_config_has_phases(config);
    model->context_length = hf_config_context(config);
    chars_copy(model->name, config->name);
    return ERR_OK;
}

static enum err build_graph(const struct model *model, struct graph_options *options,
                            struct graph *out, struct error *why)
{
    return hf_config_graph(model->state, options, out, why);
}

static void close_file(struct model *model)
{
    hf_config_release(model->state);
}

const struct graph_reader graph_reader_hf = {
    .name = "hf_config",
    .summary = "config.json of Hugging Face: decoders, encoders, encoder-decoders, images",
    .probe = probe,
    .state_size = sizeof(struct hf_config),
    .open = open_file,
    .build = build_graph,
    .close = close_file,
};
