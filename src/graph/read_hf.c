/* A config.json of Hugging Face, or a directory that holds one. */
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "graph/hf_config.h"
#include "graph/model_files.h"
#include "graph/reader.h"

static bool begins_object(const unsigned char *head, size_t length)
{
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", head[at]) && head[at])
        at++;
    return at < length && head[at] == '{';
}

static int probe(const char *word, const unsigned char *head, size_t length)
{
    char path[MODEL_PATH_MAX];
    if (head && begins_object(head, length))
        return model_path_ends(word, "config.json") ? 80 : model_path_ends(word, ".json") ? 50 : 0;
    bool is_there = !head && model_path_is_directory(word) &&
                    model_path_beside(word, "config.json", path, sizeof path) &&
                    model_path_is_file(path);
    return is_there ? 50 : 0;
}

static enum err open_file(const char *word, struct model *model, struct error *why)
{
    char path[MODEL_PATH_MAX];
    if (model_path_is_directory(word)) {
        if (!model_path_beside(word, "config.json", path, sizeof path))
            return err_set(why, ERR_BAD_VALUE, "%.200s: too long for a path", word);
        word = path;
    }
    struct hf_config *config = calloc(1, sizeof *config);
    if (!config)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    enum err err = hf_config_read(word, config, why);
    if (err) {
        free(config);
        return err;
    }
    model->state = config;
    model->has_phases = hf_config_has_phases(config);
    model->trained = hf_config_trained(config);
    str_copy(model->name, sizeof model->name, config->name);
    return ERR_OK;
}

static enum err build_graph(const struct model *model, struct graph_setting *setting,
                            struct graph *out, struct error *why)
{
    return hf_config_graph(model->state, setting, out, why);
}

static void close_file(struct model *model)
{
    hf_config_release(model->state);
    free(model->state);
}

const struct graph_reader graph_reader_hf = {
    .name = "hf_config",
    .summary = "config.json of Hugging Face: decoders of Llama's kind, GPT-2, BERT, ViT",
    .probe = probe,
    .open = open_file,
    .build = build_graph,
    .close = close_file,
};
