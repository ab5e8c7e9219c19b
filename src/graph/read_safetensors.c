/* Safetensors: with the config.json beside them, its graph, and whether the tensors are those of it; without, a
 * graph that is guessed from names and shapes. */
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "graph/decoder_graph.h"
#include "graph/hf_config.h"
#include "graph/model_files.h"
#include "graph/reader.h"
#include "graph/safetensors.h"
#include "graph/safetensors/guess.h"

struct opened {
    struct hf_config config;
    bool is_guessed;
};

/* ---- which file ---- */

/* The file, or of a directory the one that there is. */
static bool find_file(const char *word, char *to, size_t size)
{
    static const char *const NAMES[] = {"model.safetensors.index.json", "model.safetensors"};
    if (!model_path_is_directory(word))
        return str_copy(to, size, word);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (model_path_beside(word, NAMES[i], to, size) && model_path_is_file(to))
            return true;
    return false;
}

static int probe(const char *word, const unsigned char *head, size_t length)
{
    char path[MODEL_PATH_MAX];
    if (head && model_path_ends(word, ".safetensors.index.json"))
        return 90;
    if (head)
        return model_path_ends(word, ".safetensors") ? 90 : length > 9 && head[8] == '{' ? 30 : 0;
    return model_path_is_directory(word) && find_file(word, path, sizeof path) ? 60 : 0;
}

/* ---- how many parameters ---- */

static bool ends_with_one_of(const char *name, const char *const *ends, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (model_path_ends(name, ends[i]))
            return true;
    return false;
}

/* What a file may hold beside what was trained: tables, masks, scales of quantised matrices. */
static bool is_buffer(const char *name)
{
    static const char *const ENDS[] = {".inv_freq", ".masked_bias", ".attn.bias", "_scale",
                                       ".weight_scale_inv"};
    return ends_with_one_of(name, ENDS, sizeof ENDS / sizeof *ENDS);
}

/* False when some are packed, so that their shapes are not those of the model. */
static bool count_parameters(const struct safetensors *tensors, bool has_tied_head, double *out)
{
    *out = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        const struct safetensors_tensor *tensor = &tensors->tensors[i];
        bool is_copy = has_tied_head && strcmp(tensor->name, "lm_head.weight") == 0;
        if (is_buffer(tensor->name) || is_copy || model_path_ends(tensor->name, "position_ids"))
            continue;
        if (!tensor->is_float)
            return false;
        *out += (double)tensor->elements;
    }
    return true;
}

/* ---- with a config.json ---- */

static enum err config_parameters(const struct hf_config *config, double *out, struct error *why)
{
    struct graph_setting setting = {.batch = 1, .tokens = 1};
    struct graph graph = {0};
    enum err err = hf_config_graph(config, &setting, &graph, why);
    *out = err ? 0 : graph_parameters(&graph);
    graph_release(&graph);
    return err;
}

/* A decoder that differs is another model; of others a file may hold a head more or a pooler less. */
static enum err compare(const char *file, const struct safetensors *tensors, struct opened *opened,
                        struct error *why)
{
    const struct hf_config *config = &opened->config;
    bool is_decoder = config->kind == HF_DECODER;
    double of_file, of_config;
    enum err err = config_parameters(config, &of_config, why);
    if (err)
        return err;
    bool is_tied = config->kind == HF_GPT2 || (is_decoder && config->as.decoder.has_tied_head);
    if (!count_parameters(tensors, is_tied, &of_file)) {
        log_info("%s: its tensors are packed, and are not compared with config.json", file);
        return ERR_OK;
    }
    if (of_file == of_config)
        return ERR_OK;
    if (is_decoder)
        return err_set(
            why, ERR_BAD_VALUE,
            "%s: has %.0f parameters, and config.json beside it makes %.0f: they are not "
            "of the same model",
            file, of_file, of_config);
    opened->is_guessed = true;
    log_warn("%s: has %.0f parameters, and config.json beside it makes %.0f: heads are not counted",
             file, of_file, of_config);
    return ERR_OK;
}

/* ---- without ---- */

static enum err guess(const char *file, const struct safetensors *tensors, struct opened *out,
                      struct error *why)
{
    struct decoder_shape shape;
    struct error inner = {0};
    double parameters;
    model_path_name(file, out->config.name, sizeof out->config.name);
    bool is_whole = count_parameters(tensors, false, &parameters);
    bool is_known = is_whole && safetensors_guess(tensors, &shape);
    if (is_known) {
        shape.name = out->config.name;
        is_known = decoder_of_shape(&shape, &out->config.as.decoder, &inner) == ERR_OK;
    }
    if (is_known && (double)out->config.as.decoder.parameters == parameters) {
        out->is_guessed = true;
        return ERR_OK;
    }
    decoder_release(&out->config.as.decoder);
    if (!is_whole)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: its tensors are packed: put the model's config.json beside it", file);
    return err_set(why, ERR_UNSUPPORTED,
                   "%s: %zu tensors with %.0f parameters, which are not those of a decoder that is "
                   "known: put the model's config.json beside it",
                   file, tensors->count, parameters);
}

/* ---- the driver ---- */

static enum err open_tensors(const char *file, struct opened *out, struct error *why)
{
    struct safetensors tensors;
    char config[MODEL_PATH_MAX];
    enum err err = safetensors_open(file, &tensors, why);
    if (err)
        return err;
    if (model_path_beside(file, "config.json", config, sizeof config) &&
        model_path_is_file(config)) {
        err = hf_config_read(config, &out->config, why);
        if (!err)
            err = compare(file, &tensors, out, why);
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

static enum err open_model(const char *word, struct model *model, struct error *why)
{
    char file[MODEL_PATH_MAX];
    if (!find_file(word, file, sizeof file))
        return err_set(why, ERR_NOT_FOUND, "%.200s: no safetensors file is there", word);
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
    model->trained = hf_config_trained(&opened->config);
    str_copy(model->name, sizeof model->name, opened->config.name);
    return ERR_OK;
}

static enum err build_graph(const struct model *model, struct graph_setting *setting,
                            struct graph *out, struct error *why)
{
    const struct opened *opened = model->state;
    enum err err = hf_config_graph(&opened->config, setting, out, why);
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
    .summary = "safetensors files, with config.json beside them or decoders guessed without",
    .probe = probe,
    .open = open_model,
    .build = build_graph,
    .close = close_model,
};
