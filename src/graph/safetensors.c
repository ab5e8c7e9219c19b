/* Safetensors: the header of one file or of several shards, and the reader "safetensors".  With a config.json next to
 * the tensors, the graph is that of the config, after comparing the number of parameters; without one, a decoder is
 * guessed from the names and shapes of the tensors. */
#include "graph/hf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graph/decoder_shape.h"
#include "graph/model_files.h"
#include "graph/reader.h"
#include "port/file.h"
#include "port/json_read.h"

enum { LENGTH_BYTES = 8, LONGEST_HEADER = 1 << 26 };

static const struct dtype {
    const char *name;
    unsigned bits;
    bool is_float;
} DTYPES[] = {
    {"F64", 64, true},     {"F32", 32, true},    {"F16", 16, true},     {"BF16", 16, true},
    {"F8_E4M3", 8, true},  {"F8_E5M2", 8, true}, {"F8_E8M0", 8, false}, {"F6_E2M3", 6, false},
    {"F6_E3M2", 6, false}, {"F4", 4, false},     {"I64", 64, false},    {"U64", 64, false},
    {"I32", 32, false},    {"U32", 32, false},   {"I16", 16, false},    {"U16", 16, false},
    {"I8", 8, false},      {"U8", 8, false},     {"BOOL", 8, false},    {"C64", 64, false},
};
static const enum precision FLOATS[] = {PRECISION_FP64, PRECISION_FP32, PRECISION_FP16,
                                        PRECISION_BF16}; /* precisions of the first dtypes */

struct reading {
    const char *file;
    uint64_t data_length; /* bytes of all tensors, after the header */
    struct safetensors *out;
    struct error *why;
};

/* ---- one tensor ---- */

static enum err tensor_failed(const struct reading *reading, const char *name, const char *what)
{
    return err_set(reading->why, ERR_BAD_VALUE, "%s: tensor '%s' %s", reading->file,
                   model_label(slice_of(name)).text, what);
}

static const struct dtype *find_dtype(const char *name)
{
    for (size_t i = 0; name && i < COUNT_OF(DTYPES); i++)
        if (str_equal(DTYPES[i].name, name))
            return &DTYPES[i];
    return NULL;
}

/* False for anything except a list of sizes, and for more than 2^53 elements. */
static bool read_shape(const struct jv *shape, struct safetensors_tensor *out)
{
    double elements = 1;
    if (!jv_is_array(shape) || jv_count(shape) > SAFETENSORS_MAX_RANK)
        return false;
    for (const struct jv *item = jv_first(shape); item; item = jv_next(item)) {
        int64_t size;
        if (!jv_integer(item, &size) || size < 0)
            return false;
        out->dims[out->rank++] = (uint64_t)size;
        elements *= (double)size;
        if (elements > 9007199254740992.0)
            return false;
    }
    out->elements = (uint64_t)elements;
    return true;
}

static bool read_offsets(const struct jv *offsets, uint64_t data_length, uint64_t *bytes)
{
    int64_t from, to;
    if (!jv_is_array(offsets) || jv_count(offsets) != 2 || !jv_integer(jv_first(offsets), &from) ||
        !jv_integer(jv_next(jv_first(offsets)), &to))
        return false;
    if (from < 0 || to < from || (uint64_t)to > data_length)
        return false;
    *bytes = (uint64_t)(to - from);
    return true;
}

/* Adds its bytes to *sum. */
static enum err read_tensor(const struct reading *reading, const struct jv *value, uint64_t *sum)
{
    struct safetensors *out = reading->out;
    const char *name = jv_key(value);
    struct safetensors_tensor tensor = {0};
    if (!jv_is_object(value))
        return tensor_failed(reading, name, "is not an object");
    const struct dtype *dtype = find_dtype(jv_get_text(value, "dtype"));
    if (!dtype)
        return tensor_failed(reading, name, "has an unknown dtype");
    if (!read_shape(jv_get(value, "shape"), &tensor))
        return tensor_failed(reading, name, "has an invalid shape");
    if (!read_offsets(jv_get(value, "data_offsets"), reading->data_length, &tensor.bytes))
        return tensor_failed(reading, name, "is not inside the file");
    if ((tensor.elements * dtype->bits + 7) / 8 != tensor.bytes)
        return tensor_failed(reading, name, "has a size that contradicts its shape");
    tensor.is_float = dtype->is_float;
    XGROW(out->tensors, out->count, out->capacity);
    tensor.name = arena_string(&out->names, name, strlen(name));
    out->tensors[out->count++] = tensor;
    size_t index = (size_t)(dtype - DTYPES);
    if (index < COUNT_OF(FLOATS))
        out->floats[FLOATS[index]] += (double)tensor.elements;
    *sum += tensor.bytes;
    return ERR_OK;
}

/* ---- one file ---- */

static enum err read_header(const struct reading *reading, const struct jv *json)
{
    uint64_t bytes = 0;
    size_t before = reading->out->count;
    for (const struct jv *value = jv_first_member(json); value; value = jv_next(value)) {
        if (str_equal(jv_key(value), "__metadata__"))
            continue;
        enum err err = read_tensor(reading, value, &bytes);
        if (err)
            return err;
    }
    if (reading->out->count == before)
        return err_set(reading->why, ERR_BAD_VALUE, "%s: no tensors found", reading->file);
    if (bytes != reading->data_length)
        return err_set(reading->why, ERR_BAD_VALUE,
                       "%s: its tensors take %llu bytes, the file has %llu after its header",
                       reading->file, (unsigned long long)bytes,
                       (unsigned long long)reading->data_length);
    return ERR_OK;
}

enum err safetensors_read(const char *file, const char *bytes, size_t length, uint64_t file_length,
                          struct safetensors *out, struct error *why)
{
    if (length < LENGTH_BYTES)
        return err_set(why, ERR_BAD_VALUE, "%s: too short for a safetensors file", file);
    uint64_t header = model_little_endian(bytes, LENGTH_BYTES);
    if (header > LONGEST_HEADER || header > length - LENGTH_BYTES || header < 2 ||
        file_length < length)
        return err_set(why, ERR_BAD_VALUE, "%s: invalid header length %llu", file,
                       (unsigned long long)header);
    struct reading reading = {file, file_length - LENGTH_BYTES - header, out, why};
    struct jv *json;
    size_t before = out->count;
    enum err err = model_json_parse(file, bytes + LENGTH_BYTES, (size_t)header, &json, why);
    if (err)
        return err;
    err = read_header(&reading, json);
    jv_free(json);
    if (err)
        out->count = before;
    return err;
}

static enum err open_one(const char *path, struct safetensors *out, struct error *why)
{
    struct slice bytes;
    enum err err = model_file_map(path, &bytes, why);
    if (err)
        return err;
    err = safetensors_read(path, bytes.start, bytes.length, bytes.length, out, why);
    munmap((void *)bytes.start, bytes.length);
    return err;
}

/* ---- sharded files ---- */

/* Each file once. */
static enum err open_files(const char *path, const char **files, size_t count,
                           struct safetensors *out, struct error *why)
{
    qsort(files, count, sizeof *files, compare_strings);
    for (size_t i = 0; i < count; i++) {
        if (i && str_equal(files[i], files[i - 1]))
            continue;
        if (strchr(files[i], '/') || !model_path_ends(files[i], ".safetensors"))
            return err_set(why, ERR_BAD_VALUE, "%s: weight_map entry '%s' is not a file next to it",
                           path, model_label(slice_of(files[i])).text);
        char *sibling = model_path_sibling(path, files[i]);
        enum err err = open_one(sibling, out, why);
        free(sibling);
        if (err)
            return err;
    }
    return ERR_OK;
}

static enum err open_index(const char *path, const struct jv *json, struct safetensors *out,
                           struct error *why)
{
    const struct jv *map = jv_get(json, "weight_map");
    size_t count = jv_count(map), used = 0;
    if (!jv_is_object(map) || count == 0)
        return err_set(why, ERR_BAD_VALUE, "%s: 'weight_map' is missing", path);
    const char **files = xreallocarray(NULL, count, sizeof *files);
    enum err err = ERR_OK;
    for (const struct jv *item = jv_first(map); item && !err; item = jv_next(item)) {
        files[used] = jv_text(item);
        if (!files[used++])
            err = err_set(why, ERR_BAD_VALUE, "%s: weight_map entry is not a file name", path);
    }
    if (!err)
        err = open_files(path, files, used, out, why);
    free(files);
    return err;
}

/* ---- all tensors ---- */

static int compare_names(const void *a, const void *b)
{
    const struct safetensors_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

enum err safetensors_sort(const char *file, struct safetensors *tensors, struct error *why)
{
    if (!tensors->tensors)
        return ERR_OK;
    qsort(tensors->tensors, tensors->count, sizeof *tensors->tensors, compare_names);
    for (size_t i = 1; i < tensors->count; i++)
        if (str_equal(tensors->tensors[i].name, tensors->tensors[i - 1].name))
            return err_set(why, ERR_BAD_VALUE, "%s: tensor '%s' is defined more than once", file,
                           model_label(slice_of(tensors->tensors[i].name)).text);
    return ERR_OK;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *tensors,
                                                  const char *name)
{
    struct safetensors_tensor wanted = {.name = name};
    if (!tensors->count)
        return NULL;
    return bsearch(&wanted, tensors->tensors, tensors->count, sizeof wanted, compare_names);
}

void safetensors_release(struct safetensors *tensors)
{
    free(tensors->tensors);
    arena_release(&tensors->names);
    *tensors = (struct safetensors){0};
}

/* A file, or an index (*.index.json) with its shards next to it; sorted. */
static enum err open_safetensors(const char *path, struct safetensors *out, struct error *why)
{
    enum err err;
    *out = (struct safetensors){0};
    if (model_path_ends(path, ".json")) {
        struct jv *json;
        err = model_json_read(path, &json, why);
        if (err)
            return err;
        err = open_index(path, json, out, why);
        jv_free(json);
    } else {
        err = open_one(path, out, why);
    }
    if (!err)
        err = safetensors_sort(path, out, why);
    if (err)
        safetensors_release(out);
    return err;
}

/* ---- guessing the shape of a decoder ---- */

struct decoder_names {
    const struct safetensors *tensors;
    const char *prefix; /* "model." */
};

PRINTF_LIKE(2, 3)
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

/* Rows (outputs) of a PyTorch matrix, or the elements of a vector; 0 if missing. */
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
    for (size_t i = 0; i < COUNT_OF(PREFIXES); i++) {
        names->prefix = PREFIXES[i];
        if (find(names, "embed_tokens.weight"))
            return true;
    }
    return false;
}

/* The usual size of a head.  It does not change the cost of the products of attention, only that of the softmax. */
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
    out->qk_norm = DECODER_NO_QK_NORM;
    if (normed)
        out->qk_norm = normed == query ? DECODER_QK_NORM_ALL_HEADS : DECODER_QK_NORM_PER_HEAD;
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

/* ---- finding the file ---- */

/* The file, or the one in a directory. */
static char *find_file(const char *source)
{
    if (!file_is_directory(source))
        return xstrdup(source);
    char *index = model_find_sibling(source, "model.safetensors.index.json");
    return index ? index : model_find_sibling(source, "model.safetensors");
}

static int probe(const char *source, const unsigned char *head, size_t length)
{
    if (head && (model_path_ends(source, ".safetensors.index.json") ||
                 model_path_ends(source, ".safetensors")))
        return 90;
    if (head)
        return length > 9 && head[8] == '{' ? 30 : 0;
    char *file = file_is_directory(source) ? find_file(source) : NULL;
    bool is_there = file;
    free(file);
    return is_there ? 60 : 0;
}

/* ---- counting parameters ---- */

/* Tensors that are not trained: tables, masks, scales of quantized matrices. */
static bool is_buffer(const char *name)
{
    static const char *const ENDS[] = {".inv_freq", ".masked_bias",      ".attn.bias",
                                       "_scale",    ".weight_scale_inv", "position_ids"};
    for (size_t i = 0; i < COUNT_OF(ENDS); i++)
        if (model_path_ends(name, ENDS[i]))
            return true;
    return false;
}

/* False if some are packed, so that their shapes are not those of the model. */
static bool count_parameters(const struct safetensors *tensors, bool has_tied_embeddings,
                             double *out)
{
    *out = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        const struct safetensors_tensor *tensor = &tensors->tensors[i];
        bool is_copy = has_tied_embeddings && str_equal(tensor->name, "lm_head.weight");
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
    struct graph_precision file;
};

/* The dtype of most elements, unless most are not floats: a quantized file. */
static struct graph_precision precision_of(const struct safetensors *tensors)
{
    struct graph_precision found = {.share = 1};
    double all = 0;
    for (size_t i = 0; i < tensors->count; i++)
        all += (double)tensors->tensors[i].elements;
    for (enum precision p = 0; p < PRECISION_COUNT; p++)
        if (2 * tensors->floats[p] > all) {
            found.is_known = true;
            found.products = found.floats = p;
        }
    return found;
}

static enum err config_parameters(const struct hf_config *config, double *out, struct error *why)
{
    struct graph_options options = {.batch = 1, .tokens = 1};
    struct graph graph = {0};
    enum err err = hf_config_graph(config, &options, &graph, why);
    *out = err ? 0 : graph_parameters(&graph);
    graph_release(&graph);
    return err;
}

/* A decoder with another count is another model; files of other models may have an extra head or no pooler. */
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
                       "%s: has %.0f parameters, config.json next to it gives %.0f: they are not "
                       "of the same model",
                       file, in_file, in_config);
    opened->is_guessed = true;
    log_warn("%s: has %.0f parameters, config.json next to it gives %.0f: some of its tensors are "
             "not counted",
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
                       "%s: its tensors are packed: put the model's config.json next to it", file);
    return err_set(why, ERR_UNSUPPORTED,
                   "%s: %zu tensors with %.0f parameters, not those of a known decoder: put the "
                   "model's config.json next to it",
                   file, tensors->count, parameters);
}

/* ---- the reader ---- */

static enum err open_tensors(const char *file, struct opened *out, struct error *why)
{
    struct safetensors tensors;
    enum err err = open_safetensors(file, &tensors, why);
    if (err)
        return err;
    out->file = precision_of(&tensors);
    char *config = model_find_sibling(file, "config.json");
    if (config) {
        err = hf_config_read(config, &out->config, why);
        if (!err)
            err = compare_with_config(file, &tensors, out, why);
    } else {
        err = guess(file, &tensors, out, why);
    }
    free(config);
    safetensors_release(&tensors);
    return err;
}

static enum err open_model(const char *source, struct model *model, struct error *why)
{
    char *file = find_file(source);
    if (!file)
        return err_set(why, ERR_NOT_FOUND, "%.200s: no safetensors file found", source);
    struct opened *opened = model->state;
    enum err err = open_tensors(file, opened, why);
    free(file);
    if (err)
        return err;
    model->has_phases = hf_config_has_phases(&opened->config);
    model->context_length = hf_config_context(&opened->config);
    chars_copy(model->name, opened->config.name);
    return ERR_OK;
}

static enum err build_graph(const struct model *model, struct graph_options *options,
                            struct graph *out, struct error *why)
{
    const struct opened *opened = model->state;
    enum err err = hf_config_graph(&opened->config, options, out, why);
    if (!err) {
        out->is_guessed = opened->is_guessed;
        if (!opened->config.is_quantized) /* otherwise packed, which config.json explains */
            out->file = opened->file;
    }
    return err;
}

static void close_model(struct model *model)
{
    struct opened *opened = model->state;
    hf_config_release(&opened->config);
}

const struct graph_reader graph_reader_safetensors = {
    .name = "safetensors",
    .summary = "safetensors files with a config.json next to them; else decoders are inferred",
    .probe = probe,
    .state_size = sizeof(struct opened),
    .open = open_model,
    .build = build_graph,
    .close = close_model,
};
