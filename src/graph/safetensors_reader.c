/* The reader "safetensors": with a config.json beside the tensors, its graph, after comparing the number of
 * parameters; without one, a decoder that is guessed from the names and shapes of the tensors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "graph/decoder_shape.h"
#include "graph/hf_config.h"
#include "graph/model_files.h"
#include "graph/reader.h"
#include "graph/safetensors.h"
#include "port/file.h"

/* ---- guessing the shape of a decoder ---- */

struct decoder_names {
    const struct safetensors *tensors;
    const char *prefix; /* "model." */
};

static const struct safetensors_tensor *find(const struct decoder_names *names, const char *format,
                                             ...) PRINTF_LIKE(2, 3);

static const struct safetensors_tensor *find(const struct decoder_names *names, const char *format,
                                             ...)
{
    char name[160];
    va_list arguments;
    int used = snprintf(name, sizeof name, "%s", names->prefix);
    va_start(arguments, format);
    vsnprintf(name + used, sizeof name - (size_t)used, format, arguments);
    va_end(arguments);
    return safetensors_find(names->tensors, name);
}

/* Rows (outputs) of a PyTorch matrix, or the elements of a vector; 0 without. */
static uint64_t rows(const struct safetensors_tensor *tensor)
{
    return tensor && tensor->rank ? tensor->dims[0] : 0;
}

static uint64_t columns(const struct safetensors_tensor *tensor)
{
    return tensor && tensor->rank == 2 ? tensor->dims[1] : 0;
}

static bool find_prefix(struct decoder_names *names)
{
    static const char *const PREFIXES[] = {"model.", "", "language_model.model.",
                                           "model.language_model."};
    for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; i++) {
        names->prefix = PREFIXES[i];
        if (find(names, "embed_tokens.weight"))
            return true;
    }
    return false;
}

/* The usual size of a head.  The products of attention cost the same whatever it is; the softmax does not. */
static uint64_t head_size(uint64_t embedding, uint64_t query, uint64_t key)
{
    uint64_t size = embedding <= 2048 ? 64 : 128;
    while (size > 1 && (query % size || key % size))
        size /= 2;
    return size;
}

static bool guess_attention(const struct decoder_names *names, struct decoder_shape *out)
{
    uint64_t query = columns(find(names, "layers.0.self_attn.o_proj.weight"));
    uint64_t key = rows(find(names, "layers.0.self_attn.k_proj.weight"));
    uint64_t fused = rows(find(names, "layers.0.self_attn.qkv_proj.weight"));
    uint64_t normed = rows(find(names, "layers.0.self_attn.q_norm.weight"));
    out->has_fused_qkv = fused > query;
    if (out->has_fused_qkv)
        key = (fused - query) / 2;
    if (!query || !key || key > query)
        return false;
    out->qk_norm = !normed           ? DECODER_NO_QK_NORM
                   : normed == query ? DECODER_QK_NORM_ALL_HEADS
                                     : DECODER_QK_NORM_PER_HEAD;
    out->head_size =
        out->qk_norm == DECODER_QK_NORM_PER_HEAD ? normed : head_size(out->embedding, query, key);
    if (query % out->head_size || key % out->head_size)
        return false;
    out->heads = query / out->head_size;
    out->heads_kv = key / out->head_size;
    out->has_qkv_bias = find(names, "layers.0.self_attn.q_proj.bias");
    out->has_output_bias = find(names, "layers.0.self_attn.o_proj.bias");
    return true;
}

static void guess_experts(const struct decoder_names *names, struct decoder_shape *out)
{
    const struct safetensors_tensor *mixtral = find(names, "layers.0.block_sparse_moe.gate.weight");
    out->experts = rows(mixtral ? mixtral : find(names, "layers.0.mlp.gate.weight"));
    if (!out->experts)
        return;
    out->expert_feed_forward =
        mixtral ? rows(find(names, "layers.0.block_sparse_moe.experts.0.w1.weight"))
                : rows(find(names, "layers.0.mlp.experts.0.up_proj.weight"));
    out->shared_feed_forward = rows(find(names, "layers.0.mlp.shared_expert.up_proj.weight"));
    out->experts_used = out->experts <= 16 ? 2 : 8; /* as in Mixtral, as in Qwen */
    if (out->experts_used > out->experts)
        out->experts_used = out->experts;
}

static void guess_feed_forward(const struct decoder_names *names, struct decoder_shape *out)
{
    uint64_t fused = rows(find(names, "layers.0.mlp.gate_up_proj.weight"));
    out->feed_forward = fused ? fused / 2 : rows(find(names, "layers.0.mlp.up_proj.weight"));
    out->has_fused_gate = fused;
    out->has_no_gate = out->feed_forward && !fused && !find(names, "layers.0.mlp.gate_proj.weight");
    out->has_mlp_bias = find(names, "layers.0.mlp.down_proj.bias");
}

static void guess_norms(const struct decoder_names *names, struct decoder_shape *out)
{
    if (!find(names, "layers.0.input_layernorm.weight"))
        out->norms = DECODER_POST_NORM;
    else if (find(names, "layers.0.pre_feedforward_layernorm.weight"))
        out->norms = DECODER_SANDWICH_NORM;
    out->has_layer_norm = find(names, "layers.0.input_layernorm.bias");
}

bool safetensors_guess(const struct safetensors *tensors, struct decoder_shape *out)
{
    struct decoder_names names = {.tensors = tensors};
    *out = (struct decoder_shape){.architecture = "guessed"};
    if (!find_prefix(&names))
        return false;
    const struct safetensors_tensor *table = find(&names, "embed_tokens.weight");
    out->vocabulary = rows(table);
    out->embedding = columns(table);
    while (out->layers <= DECODER_MAX_LAYERS &&
           find(&names, "layers.%llu.self_attn.o_proj.weight", (unsigned long long)out->layers))
        out->layers++;
    out->has_tied_embeddings = !safetensors_find(tensors, "lm_head.weight") &&
                               !safetensors_find(tensors, "language_model.lm_head.weight");
    if (!guess_attention(&names, out))
        return false;
    guess_feed_forward(&names, out);
    guess_experts(&names, out);
    guess_norms(&names, out);
    return true;
}

/* ---- which file ---- */

/* The file, or the one in a directory. */
static bool find_file(const char *source, char *to, size_t size)
{
    static const char *const NAMES[] = {"model.safetensors.index.json", "model.safetensors"};
    if (!file_is_directory(source))
        return str_copy(to, size, source);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (model_path_beside(source, NAMES[i], to, size) && file_is_regular(to))
            return true;
    return false;
}

static int probe(const char *source, const unsigned char *head, size_t length)
{
    char path[FILE_PATH_MAX];
    if (head && model_path_ends(source, ".safetensors.index.json"))
        return 90;
    if (head)
        return model_path_ends(source, ".safetensors") ? 90 : length > 9 && head[8] == '{' ? 30 : 0;
    return file_is_directory(source) && find_file(source, path, sizeof path) ? 60 : 0;
}

/* ---- counting parameters ---- */

/* Tensors that are not trained: tables, masks, scales of quantized matrices. */
static bool is_buffer(const char *name)
{
    static const char *const ENDS[] = {".inv_freq", ".masked_bias",      ".attn.bias",
                                       "_scale",    ".weight_scale_inv", "position_ids"};
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        if (model_path_ends(name, ENDS[i]))
            return true;
    return false;
}

/* False when some are packed, so that their shapes are not those of the model. */
static bool count_parameters(const struct safetensors *tensors, bool has_tied_embeddings,
                             double *out)
{
    *out = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        const struct safetensors_tensor *tensor = &tensors->tensors[i];
        bool is_copy = has_tied_embeddings && strcmp(tensor->name, "lm_head.weight") == 0;
        if (is_buffer(tensor->name) || is_copy)
            continue;
        if (!tensor->is_float)
            return false;
        *out += (double)tensor->elements;
    }
    return true;
}

/* ---- with a config.json ---- */

struct opened {
    struct hf_config config;
    bool is_guessed;
};

static enum err config_parameters(const struct hf_config *config, double *out, struct error *why)
{
    struct graph_options options = {.batch = 1, .tokens = 1};
    struct graph graph = {0};
    enum err err = hf_config_graph(config, &options, &graph, why);
    *out = err ? 0 : graph_parameters(&graph);
    graph_release(&graph);
    return err;
}

/* A decoder that differs is another model; of other models a file may have an extra head or no pooler. */
static enum err compare_with_config(const char *file, const struct safetensors *tensors,
                                    struct opened *opened, struct error *why)
{
    const struct hf_config *config = &opened->config;
    bool is_decoder = config->kind == HF_DECODER;
    double in_file, in_config;
    enum err err = config_parameters(config, &in_config, why);
    if (err)
        return err;
    bool is_tied =
        config->kind == HF_GPT2 || (is_decoder && config->as.decoder.has_tied_embeddings);
    if (!count_parameters(tensors, is_tied, &in_file)) {
        log_info("%s: its tensors are packed and are not compared with config.json", file);
        return ERR_OK;
    }
    if (in_file == in_config)
        return ERR_OK;
    if (is_decoder)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: has %.0f parameters, config.json beside it gives %.0f: they are not "
                       "of the same model",
                       file, in_file, in_config);
    opened->is_guessed = true;
    log_warn("%s: has %.0f parameters, config.json beside it gives %.0f: heads are not counted",
             file, in_file, in_config);
    return ERR_OK;
}

/* ---- without a config.json ---- */

static enum err guess(const char *file, const struct safetensors *tensors, struct opened *out,
                      struct error *why)
{
    struct decoder_shape shape;
    struct error inner = {0};
    double parameters;
    model_path_name(file, out->config.name, sizeof out->config.name);
    bool is_unpacked = count_parameters(tensors, false, &parameters);
    bool is_known = is_unpacked && safetensors_guess(tensors, &shape);
    if (is_known) {
        shape.name = out->config.name;
        is_known = decoder_from_shape(&shape, &out->config.as.decoder, &inner) == ERR_OK;
    }
    if (is_known && (double)out->config.as.decoder.parameters == parameters) {
        out->is_guessed = true;
        return ERR_OK;
    }
    decoder_release(&out->config.as.decoder);
    if (!is_unpacked)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: its tensors are packed: put the model's config.json beside it", file);
    return err_set(why, ERR_UNSUPPORTED,
                   "%s: %zu tensors with %.0f parameters, not those of a known decoder: put the "
                   "model's config.json beside it",
                   file, tensors->count, parameters);
}

/* ---- the reader ---- */

static enum err open_tensors(const char *file, struct opened *out, struct error *why)
{
    struct safetensors tensors;
    char config[FILE_PATH_MAX];
    enum err err = safetensors_open(file, &tensors, why);
    if (err)
        return err;
    if (model_path_beside(file, "config.json", config, sizeof config) && file_is_regular(config)) {
        err = hf_config_read(config, &out->config, why);
        if (!err)
            err = compare_with_config(file, &tensors, out, why);
    } else {
        err = guess(file, &tensors, out, why);
    }
    safetensors_release(&tensors);
    return err;
}

static void free_opened(struct opened *opened)
{
    hf_config_release(&opened->config);
    free(opened);
}

static enum err open_model(const char *source, struct model *model, struct error *why)
{
    char file[FILE_PATH_MAX];
    if (!find_file(source, file, sizeof file))
        return err_set(why, ERR_NOT_FOUND, "%.200s: no safetensors file found", source);
    struct opened *opened = calloc(1, sizeof *opened);
    if (!opened)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    enum err err = open_tensors(file, opened, why);
    if (err) {
        free_opened(opened);
        return err;
    }
    model->state = opened;
    model->has_phases = hf_config_has_phases(&opened->config);
    model->context_length = hf_config_context(&opened->config);
    str_copy(model->name, sizeof model->name, opened->config.name);
    return ERR_OK;
}

static enum err build_graph(const struct model *model, struct graph_options *options,
                            struct graph *out, struct error *why)
{
    const struct opened *opened = model->state;
    enum err err = hf_config_graph(&opened->config, options, out, why);
    if (!err)
        out->is_guessed = opened->is_guessed;
    return err;
}

static void close_model(struct model *model)
{
    free_opened(model->state);
}

const struct graph_reader graph_reader_safetensors = {
    .name = "safetensors",
    .summary = "safetensors files with a config.json beside them; without it, decoders are guessed",
    .probe = probe,
    .open = open_model,
    .build = build_graph,
    .close = close_model,
};
