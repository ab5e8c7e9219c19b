#include <stdlib.h>

#include "engine/engine.h"
#include "engine/llama/objects.h"
#include "engine/llama/pool.h"
#include "engine/llama/gguf.h"
#include "engine/llama/trial.h"
#include "engine/llama/words.h"

static void read_facts(const struct llama_api *api, struct engine_model *model)
{
    struct engine_model_facts *facts = &model->facts;
    const struct llama_model *llama = model->llama;
    if (api->llama_model_desc(llama, facts->description, sizeof facts->description) < 0)
        facts->description[0] = '\0';
    facts->parameters = api->llama_model_n_params(llama);
    facts->tensor_bytes = api->llama_model_size(llama);
    facts->layers = api->llama_model_n_layer(llama);
    facts->embedding = api->llama_model_n_embd(llama);
    facts->heads = api->llama_model_n_head(llama);
    facts->heads_kv = api->llama_model_n_head_kv(llama);
    facts->trained_context = api->llama_model_n_ctx_train(llama);
    facts->vocabulary = api->llama_vocab_n_tokens(model->vocabulary);
    facts->has_chat_template = model->chat_template != NULL;
}

/* What the library would stop the whole process for, were it asked to go on. */
static enum err look_at(const struct llama_api *api, const struct engine_model *model,
                        const char *path, struct error *why)
{
    if (api->llama_vocab_type(model->vocabulary) == LLAMA_VOCAB_NONE)
        return err_set(why, ERR_UNSUPPORTED, "%s has no vocabulary", path);
    if (api->llama_model_has_encoder(model->llama) || !api->llama_model_has_decoder(model->llama))
        return err_set(why, ERR_UNSUPPORTED, "%s is not a model that continues a text", path);
    const struct engine_model_facts *facts = &model->facts;
    if (facts->layers <= 0 || facts->embedding <= 0 || facts->vocabulary <= 0)
        return err_set(why, ERR_BAD_VALUE, "%s has no layers, or no vocabulary", path);
    return ERR_OK;
}

static enum err failed_to_load(const char *path, struct error *why)
{
    const char *complaint = words_complaint();
    return err_set(why, trial_meaning(complaint), "llama.cpp cannot load %s: %s", path,
                   complaint[0] ? complaint : "it does not say why");
}

enum err engine_model_open(const char *path, const struct engine_model_options *options,
                           struct engine_model **out, struct error *why)
{
    const struct engine_library *library;
    enum err err = engine_library_open(&library, why);
    if (!err && options->gpu_layers != 0 && !library->has_gpu)
        return err_set(why, ERR_UNSUPPORTED, "layers on a GPU: %s can use no GPU here",
                       library->path);
    if (!err)
        err = gguf_look(path, why);
    if (!err)
        err = trial_load(llama_api(), path, library->has_gpu, why);
    if (err)
        return err;
    struct engine_model *model = calloc(1, sizeof *model);
    if (!model)
        return err_set(why, ERR_NO_MEMORY, "out of memory for a model");
    const struct llama_api *api = llama_api();
    struct llama_model_params params = api->model_params;
    params.n_gpu_layers = options->gpu_layers;
    params.load_mode = options->no_map ? LLAMA_LOAD_READ : LLAMA_LOAD_AUTO;
    params.check_tensors = options->check_tensors;
    words_forget();
    model->llama = api->llama_model_load_from_file(path, params);
    if (!model->llama) {
        free(model);
        return failed_to_load(path, why);
    }
    model->vocabulary = api->llama_model_get_vocab(model->llama);
    model->chat_template = api->llama_model_chat_template(model->llama, NULL);
    read_facts(api, model);
    err = look_at(api, model, path, why);
    if (err) {
        engine_model_close(model);
        return err;
    }
    *out = model;
    return ERR_OK;
}

void engine_model_close(struct engine_model *model)
{
    if (!model)
        return;
    llama_api()->llama_model_free(model->llama);
    pool_free(model->threads);
    free(model);
}

const struct engine_model_facts *engine_model_facts(const struct engine_model *model)
{
    return &model->facts;
}
