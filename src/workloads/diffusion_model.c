/* Opening a diffusion pipeline: which networks it has, what they take, and the settings in the files beside them. */
#include "workloads/diffusion_model.h"

#include <stdlib.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graders/clip_tokens.h"
#include "workloads/model_files.h"
#include "workloads/scheduler.h"

enum { VAE_PIXELS = 8, LATENT_CHANNELS = 4, IMAGE_CHANNELS = 3, EMBEDDINGS_MAX = 256 << 20 };
static const double VAE_SCALING = 0.18215;

void diffusion_model_close(struct diffusion_model *model)
{
    onnx_session_close(model->unet);
    onnx_session_close(model->text_encoder);
    onnx_session_close(model->vae);
    clip_tokenizer_free(model->tokenizer);
    jv_free(model->index);
    jv_free(model->scheduler);
    free(model->classes);
    npy_release(&model->embeddings);
    *model = (struct diffusion_model){0};
}

/* ---- the settings of the pipeline ---- */

static enum err read_classes(struct diffusion_model *model, struct error *why)
{
    const struct jv *classes = jv_get(model->index, "ipw_classes");
    model->classes = xcalloc(jv_count(classes) + 1, sizeof *model->classes);
    JV_EACH (name, jv_first(classes)) {
        const char *text = str_or_null(text_or_empty(jv_text(name)));
        if (!text)
            return err_set(why, ERR_BAD_VALUE,
                           "model_index.json: ipw_classes must be names of classes");
        model->classes[model->class_count++] = text;
    }
    return ERR_OK;
}

static enum err read_index(const struct model_files *files, struct diffusion_model *model,
                           struct error *why)
{
    if (files->is_file)
        return err_set(why, ERR_USAGE,
                       "%s: expected the directory of a diffusion pipeline, with model_index.json",
                       files->path);
    enum err err = model_files_json(files, "model_index.json", &model->index, why);
    if (!err && !model->index)
        err = err_set(why, ERR_NOT_FOUND,
                      "no model_index.json in %s: expected a diffusion pipeline as diffusers "
                      "exports it to ONNX",
                      files->path);
    return err ? err : read_classes(model, why);
}

static enum err read_scheduler(const struct model_files *files, struct diffusion_model *model,
                               struct error *why)
{
    static const char NAME[] = "scheduler/scheduler_config.json";
    char *path = model_files_find(files, NAME);
    if (!path)
        return err_set(why, ERR_NOT_FOUND, "no %s in %s", NAME, files->path);
    enum err err = scheduler_config_read(path, &model->scheduler, why);
    free(path);
    return err;
}

/* ---- the U-Net ---- */

static enum err check_unet_inputs(const struct onnx_facts *facts, struct error *why)
{
    static const char *const KNOWN[] = {"sample", "timestep", "encoder_hidden_states",
                                        "class_labels"};
    for (size_t i = 0; i < facts->input_count; i++)
        if (!str_is_listed(facts->inputs[i].name, KNOWN, COUNT_OF(KNOWN)))
            return err_set(why, ERR_UNSUPPORTED,
                           "%s: input %s is not supported: expected sample, timestep and "
                           "encoder_hidden_states or class_labels",
                           facts->path, facts->inputs[i].name);
    return ERR_OK;
}

static enum err check_unet_types(const struct diffusion_model *model, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(model->unet);
    const struct onnx_port *sample = &facts->inputs[model->sample_input];
    const struct onnx_port *timestep = &facts->inputs[model->timestep_input];
    if (sample->rank != 4 || sample->shape[1] == 0 || sample->shape[0] > 2)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: input sample has the shape %s: expected a batch of 1, 2 or any x "
                       "channels x height x width",
                       facts->path, shape_text(sample->shape, sample->rank).text);
    for (size_t i = 0; i < facts->input_count; i++) {
        enum onnx_type type = facts->inputs[i].type;
        bool is_number = type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == ONNX_DOUBLE ||
                         type == ONNX_INT64 || type == ONNX_INT32;
        if (!is_number)
            return err_set(why, ERR_UNSUPPORTED, "%s: input %s is %s: expected float or int64",
                           facts->path, facts->inputs[i].name, onnx_type_name(type));
    }
    if (timestep->rank > 1)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: input timestep has the shape %s: expected a "
                       "number, or one for each image",
                       facts->path, shape_text(timestep->shape, timestep->rank).text);
    return ERR_OK;
}

/* sample_size is a number or [height, width]. */
static void set_default_size(struct diffusion_model *model, const struct jv *config)
{
    const struct jv *size = jv_get(config, "sample_size");
    double sides[2] = {jv_number(size), jv_number(size)};
    if (jv_is_array(size) && !jv_numbers(size, sides, COUNT_OF(sides)))
        sides[0] = 0;
    model->default_height = model->height > 0 ? (size_t)model->height : 0;
    model->default_width = model->width > 0 ? (size_t)model->width : 0;
    if (!model->default_height && sides[0] >= 1 && sides[0] <= 4096)
        model->default_height = (size_t)sides[0];
    if (!model->default_width && sides[1] >= 1 && sides[1] <= 4096)
        model->default_width = (size_t)sides[1];
}

static enum err open_unet(const struct model_files *files, struct diffusion_model *model,
                          struct error *why)
{
    static const char *const NAMES[] = {"unet/model.onnx", NULL};
    struct jv *config = NULL;
    enum err err = model_files_session(files, NAMES, &model->unet, why);
    if (err)
        return err;
    const struct onnx_facts *facts = onnx_session_facts(model->unet);
    model->sample_input = onnx_input(model->unet, "sample");
    model->timestep_input = onnx_input(model->unet, "timestep");
    if (model->sample_input < 0 || model->timestep_input < 0)
        return err_set(why, ERR_UNSUPPORTED, "%s: has no input sample or no input timestep",
                       facts->path);
    err = check_unet_inputs(facts, why);
    if (!err)
        err = check_unet_types(model, why);
    if (!err)
        err = model_files_json(files, "unet/config.json", &config, why);
    if (err)
        return err;
    const struct onnx_port *sample = &facts->inputs[model->sample_input];
    int64_t channels = sample->shape[1];
    int64_t otherwise = model->vae ? LATENT_CHANNELS : IMAGE_CHANNELS;
    if (channels < 0 && !jv_integer(jv_get(config, "in_channels"), &channels))
        channels = otherwise;
    model->channels = channels > 0 && channels <= 64 ? (size_t)channels : (size_t)otherwise;
    model->batch = sample->shape[0];
    model->height = sample->shape[2];
    model->width = sample->shape[3];
    set_default_size(model, config);
    jv_free(config);
    return ERR_OK;
}

/* ---- the condition ---- */

static enum err open_embeddings(const char *path, struct diffusion_model *model, struct error *why)
{
    struct npy *npy = &model->embeddings;
    enum err err = npy_read(path, EMBEDDINGS_MAX, npy, why);
    if (err)
        return err;
    if (npy->rank != 3 || npy->count == 0 || (size_t)npy->shape[0] != model->class_count + 1) {
        struct text shape = {0};
        npy_add_shape(npy->shape, npy->rank, &shape);
        err = err_set(why, ERR_BAD_VALUE,
                      "%s: has the shape %s: expected (%zu, tokens, width), one row more than the "
                      "ipw_classes of model_index.json",
                      path, text_get(&shape), model->class_count + 1);
        text_release(&shape);
    }
    model->condition = CONDITION_CLASS_EMBEDDING;
    return err;
}

static enum err check_encoder(const struct diffusion_model *model, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(model->text_encoder);
    const struct onnx_port *ids = &facts->inputs[0];
    if (facts->input_count != 1 || ids->rank != 2 ||
        (ids->type != ONNX_INT32 && ids->type != ONNX_INT64))
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: expected one input of token ids, int32 or int64, batch x tokens",
                       facts->path);
    size_t length = clip_tokenizer_length(model->tokenizer);
    if (ids->shape[1] >= 0 && (size_t)ids->shape[1] != length)
        return err_set(why, ERR_UNSUPPORTED, "%s: takes %lld tokens, but its tokenizer makes %zu",
                       facts->path, (long long)ids->shape[1], length);
    return ERR_OK;
}

static enum err open_text(const struct model_files *files, struct diffusion_model *model,
                          struct error *why)
{
    static const char *const NAMES[] = {"text_encoder/model.onnx", NULL};
    enum err err = model_files_session(files, NAMES, &model->text_encoder, why);
    char *tokenizer = path_join(files->directory, "tokenizer");
    if (!err)
        err = clip_tokenizer_load(tokenizer, &model->tokenizer, why);
    free(tokenizer);
    if (!err)
        err = check_encoder(model, why);
    model->condition = CONDITION_TEXT;
    return err;
}

static enum err open_condition(const struct model_files *files, struct diffusion_model *model,
                               struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(model->unet);
    int labels = onnx_input(model->unet, "class_labels");
    int states = onnx_input(model->unet, "encoder_hidden_states");
    model->condition = CONDITION_NONE;
    model->condition_input = labels >= 0 ? labels : states;
    if (labels >= 0 && states >= 0)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: has both class_labels and encoder_hidden_states: one is supported",
                       facts->path);
    if (labels >= 0 && !model->class_count)
        return err_set(why, ERR_NOT_FOUND,
                       "%s: takes class_labels, but model_index.json has no ipw_classes",
                       facts->path);
    if (labels >= 0)
        model->condition = CONDITION_CLASS;
    if (states < 0)
        return ERR_OK;
    char *embeddings = model_files_find(files, "class_embeddings.npy");
    enum err err =
        embeddings ? open_embeddings(embeddings, model, why) : open_text(files, model, why);
    free(embeddings);
    return err;
}

/* ---- the VAE ---- */

/* Each block of the decoder but the first doubles the size. */
static size_t pixels_of(const struct jv *config)
{
    size_t blocks = jv_count(jv_get(config, "block_out_channels"));
    return blocks >= 1 && blocks <= 8 ? (size_t)1 << (blocks - 1) : VAE_PIXELS;
}

static enum err open_vae(const struct model_files *files, struct diffusion_model *model,
                         struct error *why)
{
    static const char *const NAMES[] = {"vae_decoder/model.onnx", NULL};
    struct jv *config = NULL;
    char *path = model_files_find(files, NAMES[0]);
    bool is_listed = !jv_is_null(jv_get(model->index, "vae_decoder")) ||
                     !jv_is_null(jv_get(model->index, "vae"));
    bool is_present = path != NULL;
    free(path);
    model->pixels = 1;
    if (!is_present && !is_listed)
        return ERR_OK;
    enum err err = model_files_session(files, NAMES, &model->vae, why);
    if (!err)
        err = model_files_json(files, "vae_decoder/config.json", &config, why);
    if (err)
        return err;
    const struct onnx_facts *facts = onnx_session_facts(model->vae);
    double scaling = jv_get_number(config, "scaling_factor");
    model->scaling = scaling > 0 ? scaling : VAE_SCALING;
    model->pixels = pixels_of(config);
    jv_free(config);
    if (facts->input_count != 1 || facts->inputs[0].rank != 4)
        err = err_set(why, ERR_UNSUPPORTED,
                      "%s: expected one input, batch x channels x height x width", facts->path);
    return err;
}

/* ---- opening ---- */

enum err diffusion_model_open(const struct model_files *files, struct diffusion_model *out,
                              struct error *why)
{
    *out = (struct diffusion_model){0};
    enum err err = read_index(files, out, why);
    if (!err)
        err = read_scheduler(files, out, why);
    if (!err)
        err = open_vae(files, out, why);
    if (!err)
        err = open_unet(files, out, why);
    if (!err)
        err = open_condition(files, out, why);
    if (err)
        diffusion_model_close(out);
    return err;
}

void diffusion_model_describe(const struct diffusion_model *model, struct json *json)
{
    static const char *const CONDITIONS[] = {"none", "text", "class", "class embedding"};
    model_describe_runtime(model->unet, json);
    json_string(json, "pipeline", jv_get_text(model->index, "_class_name"));
    json_string(json, "scheduler_class", jv_get_text(model->scheduler, "_class_name"));
    json_string(json, "condition", CONDITIONS[model->condition]);
    json_integer(json, "classes", (int64_t)model->class_count);
    model_describe(model->unet, "unet", json);
    if (model->text_encoder)
        model_describe(model->text_encoder, "text_encoder", json);
    if (model->vae)
        model_describe(model->vae, "vae_decoder", json);
}
