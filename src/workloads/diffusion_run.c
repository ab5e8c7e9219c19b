/* Running the networks of a diffusion pipeline: values in float32 on our side, in the type that each file has on the
 * other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "graders/clip_tokens.h"
#include "workloads/diffusion_model.h"
#include "workloads/model_files.h"

/* ---- tensors ---- */

/* A tensor of this type and shape, of memory that free_tensor frees. */
static struct onnx_tensor new_tensor(enum onnx_type type, size_t rank, const int64_t *shape)
{
    struct onnx_tensor tensor = onnx_tensor_of(type, NULL, rank, shape);
    tensor.data = xcalloc(tensor.count ? tensor.count : 1, onnx_type_size(type));
    return tensor;
}

static void free_tensor(struct onnx_tensor *tensor)
{
    free(tensor->data);
    tensor->data = NULL;
}

/* An integer type takes the whole part, as NumPy's conversion does. */
static void set_element(struct onnx_tensor *tensor, size_t i, double value)
{
    switch (tensor->type) {
    case ONNX_FLOAT16:
        ((uint16_t *)tensor->data)[i] = half_from_float((float)value);
        break;
    case ONNX_DOUBLE:
        ((double *)tensor->data)[i] = value;
        break;
    case ONNX_INT32:
        ((int32_t *)tensor->data)[i] = (int32_t)value;
        break;
    case ONNX_INT64:
        ((int64_t *)tensor->data)[i] = (int64_t)value;
        break;
    default:
        ((float *)tensor->data)[i] = (float)value;
        break;
    }
}

/* Elements from `first` on. */
static void set_elements(struct onnx_tensor *tensor, size_t first, const float *values,
                         size_t count)
{
    if (tensor->type == ONNX_FLOAT)
        memcpy((float *)tensor->data + first, values, count * sizeof *values);
    else
        for (size_t i = 0; i < count; i++)
            set_element(tensor, first + i, values[i]);
}

static void get_elements(const struct onnx_tensor *tensor, size_t first, size_t count, float *to)
{
    if (tensor->type == ONNX_FLOAT)
        memcpy(to, (const float *)tensor->data + first, count * sizeof *to);
    else
        for (size_t i = 0; i < count; i++)
            to[i] = (float)onnx_tensor_at(tensor, first + i);
}

/* Runs for one output, which the caller releases, and checks it. */
static enum err run_for(struct onnx_session *session, const struct onnx_tensor *inputs, int output,
                        size_t rank, const atomic_bool *cancel, struct onnx_tensor *out,
                        struct error *why)
{
    struct onnx_tensor outputs[ONNX_PORTS_MAX] = {0};
    bool wanted[ONNX_PORTS_MAX] = {false};
    wanted[output] = true;
    enum err err = onnx_run(session, inputs, outputs, wanted, cancel, why);
    if (!err)
        err = model_output_check(session, output, &outputs[output], rank, why);
    *out = outputs[output];
    if (err)
        onnx_tensor_release(out);
    return err;
}

static void take_values(struct onnx_tensor *tensor, struct diffusion_values *out)
{
    *out = (struct diffusion_values){.rank = tensor->rank, .count = tensor->count};
    memcpy(out->shape, tensor->shape, sizeof out->shape);
    out->values = xcalloc(tensor->count, sizeof *out->values);
    get_elements(tensor, 0, tensor->count, out->values);
    onnx_tensor_release(tensor);
}

/* ---- the text encoder ---- */

enum err diffusion_encode(const struct diffusion_model *model, const int64_t *ids,
                          const atomic_bool *cancel, struct diffusion_values *out,
                          struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(model->text_encoder);
    size_t length = clip_tokenizer_length(model->tokenizer);
    struct onnx_tensor input =
        new_tensor(facts->inputs[0].type, 2, (int64_t[]){1, (int64_t)length});
    for (size_t i = 0; i < length; i++)
        set_element(&input, i, (double)ids[i]);
    struct onnx_tensor states = {0};
    int output = onnx_output(model->text_encoder, "last_hidden_state");
    enum err err =
        run_for(model->text_encoder, &input, output >= 0 ? output : 0, 3, cancel, &states, why);
    if (!err)
        take_values(&states, out);
    free_tensor(&input);
    return err;
}

/* ---- the U-Net ---- */

/* One number for all images, or one for each: a free dimension is the batch unless it has another name. */
static struct onnx_tensor timestep_tensor(const struct diffusion_model *model, size_t batch,
                                          double timestep)
{
    const struct onnx_facts *facts = onnx_session_facts(model->unet);
    const struct onnx_port *port = &facts->inputs[model->timestep_input];
    const char *batch_symbol = facts->inputs[model->sample_input].symbols[0];
    bool is_batch = !port->symbols[0][0] || str_equal(port->symbols[0], batch_symbol);
    int64_t length = is_batch ? (int64_t)batch : 1;
    if (port->rank && port->shape[0] >= 0)
        length = port->shape[0];
    struct onnx_tensor tensor = new_tensor(port->type, port->rank, &length);
    for (size_t i = 0; i < tensor.count; i++)
        set_element(&tensor, i, timestep);
    return tensor;
}

/* For the images from `first` on: 0 is without, 1 with the condition. */
static struct onnx_tensor condition_tensor(const struct diffusion_model *model,
                                           const struct diffusion_guide *guide, size_t first,
                                           size_t batch)
{
    const struct onnx_facts *facts = onnx_session_facts(model->unet);
    enum onnx_type type = facts->inputs[model->condition_input].type;
    int64_t shape[] = {(int64_t)batch, guide->tokens, guide->width};
    bool is_label = model->condition == CONDITION_CLASS;
    struct onnx_tensor tensor = new_tensor(type, is_label ? 1 : COUNT_OF(shape), shape);
    size_t each = (size_t)guide->tokens * (size_t)guide->width;
    for (size_t i = 0; i < batch; i++) {
        if (is_label)
            set_element(&tensor, i, (double)guide->label[first + i]);
        else
            set_elements(&tensor, i * each, guide->states[first + i], each);
    }
    return tensor;
}

static struct onnx_tensor sample_tensor(const struct diffusion_model *model,
                                        const struct diffusion_sample *sample, size_t batch)
{
    const struct onnx_facts *facts = onnx_session_facts(model->unet);
    const int64_t shape[] = {(int64_t)batch, (int64_t)model->channels, (int64_t)sample->height,
                             (int64_t)sample->width};
    struct onnx_tensor tensor =
        new_tensor(facts->inputs[model->sample_input].type, COUNT_OF(shape), shape);
    size_t each = tensor.count / batch;
    for (size_t i = 0; i < batch; i++)
        set_elements(&tensor, i * each, sample->values, each);
    return tensor;
}

static enum err check_prediction(const struct diffusion_model *model,
                                 const struct onnx_tensor *expected,
                                 const struct onnx_tensor *prediction, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(model->unet);
    for (size_t i = 0; i < expected->rank; i++)
        if (prediction->shape[i] != expected->shape[i])
            return err_set(why, ERR_BAD_VALUE,
                           "%s: output %s has the shape %s: expected that of the sample, %s",
                           facts->path, facts->outputs[0].name,
                           shape_text(prediction->shape, prediction->rank).text,
                           shape_text(expected->shape, expected->rank).text);
    return ERR_OK;
}

/* One run for the images from `first` on; their predictions follow each other in `to`. */
static enum err run_unet(const struct diffusion_model *model, const struct diffusion_sample *sample,
                         const struct diffusion_guide *guide, size_t first, size_t batch,
                         const atomic_bool *cancel, float *to, struct error *why)
{
    struct onnx_tensor inputs[ONNX_PORTS_MAX] = {0};
    struct onnx_tensor prediction = {0};
    struct onnx_tensor *tensor = &inputs[model->sample_input];
    *tensor = sample_tensor(model, sample, batch);
    inputs[model->timestep_input] = timestep_tensor(model, batch, sample->timestep);
    if (model->condition != CONDITION_NONE)
        inputs[model->condition_input] = condition_tensor(model, guide, first, batch);
    enum err err = run_for(model->unet, inputs, 0, 4, cancel, &prediction, why);
    if (!err) {
        err = check_prediction(model, tensor, &prediction, why);
        if (!err)
            get_elements(&prediction, 0, prediction.count, to);
        onnx_tensor_release(&prediction);
    }
    for (size_t i = 0; i < onnx_session_facts(model->unet)->input_count; i++)
        free_tensor(&inputs[i]);
    return err;
}

enum err diffusion_predict(const struct diffusion_model *model,
                           const struct diffusion_sample *sample,
                           const struct diffusion_guide *guide, const atomic_bool *cancel,
                           float *prediction, struct error *why)
{
    size_t count = model->channels * sample->height * sample->width;
    bool is_guided = guide->scale > 1;
    /* A file with a fixed batch of two is always run for both. */
    if (!is_guided && model->batch != 2)
        return run_unet(model, sample, guide, 1, 1, cancel, prediction, why);
    float *both = xcalloc(2 * count, sizeof *both);
    enum err err = ERR_OK;
    if (model->batch != 1) {
        err = run_unet(model, sample, guide, 0, 2, cancel, both, why);
    } else {
        err = run_unet(model, sample, guide, 0, 1, cancel, both, why);
        if (!err)
            err = run_unet(model, sample, guide, 1, 1, cancel, both + count, why);
    }
    float scale = is_guided ? (float)guide->scale : 1;
    for (size_t i = 0; !err && i < count; i++)
        prediction[i] = both[i] + scale * (both[count + i] - both[i]);
    free(both);
    return err;
}

/* ---- the VAE decoder ---- */

static enum err check_image(const struct diffusion_model *model,
                            const struct diffusion_values *image, struct error *why)
{
    const char *path = onnx_session_facts(model->vae ? model->vae : model->unet)->path;
    bool has_planes = image->shape[1] == 1 || image->shape[1] == 3;
    if (has_planes && image->shape[0] == 1)
        return ERR_OK;
    return err_set(why, ERR_BAD_VALUE,
                   "%s: makes an image of the shape %s: expected 1x1 or 1x3 "
                   "planes",
                   path, shape_text(image->shape, image->rank).text);
}

static enum err run_vae(const struct diffusion_model *model, const struct diffusion_sample *sample,
                        const atomic_bool *cancel, struct diffusion_values *out, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(model->vae);
    const int64_t shape[] = {1, (int64_t)model->channels, (int64_t)sample->height,
                             (int64_t)sample->width};
    struct onnx_tensor input = new_tensor(facts->inputs[0].type, COUNT_OF(shape), shape);
    struct onnx_tensor image = {0};
    for (size_t i = 0; i < input.count; i++)
        set_element(&input, i, sample->values[i] / (float)model->scaling);
    enum err err = run_for(model->vae, &input, 0, 4, cancel, &image, why);
    if (!err)
        take_values(&image, out);
    free_tensor(&input);
    return err;
}

enum err diffusion_decode(const struct diffusion_model *model,
                          const struct diffusion_sample *sample, const atomic_bool *cancel,
                          struct diffusion_values *out, struct error *why)
{
    *out = (struct diffusion_values){0};
    enum err err = ERR_OK;
    if (model->vae) {
        err = run_vae(model, sample, cancel, out, why);
    } else {
        out->rank = 4;
        out->count = model->channels * sample->height * sample->width;
        out->shape[0] = 1;
        out->shape[1] = (int64_t)model->channels;
        out->shape[2] = (int64_t)sample->height;
        out->shape[3] = (int64_t)sample->width;
        out->values = xmemdup(sample->values, out->count * sizeof *out->values);
    }
    if (!err)
        err = check_image(model, out, why);
    if (err) {
        free(out->values);
        *out = (struct diffusion_values){0};
    }
    return err;
}
