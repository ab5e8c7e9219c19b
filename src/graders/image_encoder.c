#include "graders/image_encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "engine/onnx.h"
#include "graders/features.h"
#include "media/image.h"

enum { CHANNELS = 3, RANK = 4, IMAGES_MAX = 2 };

/* ---- how images are taken ---- */

static const char *const PIXELS[] = {[PIXELS_SIGNED] = "signed",
                                     [PIXELS_UNIT] = "unit",
                                     [PIXELS_IMAGENET] = "imagenet",
                                     [PIXELS_CLIP] = "clip",
                                     NULL};

static const struct image_norm NORMS[] = {
    [PIXELS_SIGNED] = {1 / 255.0, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
    [PIXELS_UNIT] = {1 / 255.0, {0, 0, 0}, {1, 1, 1}},
    [PIXELS_IMAGENET] = {1 / 255.0, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    [PIXELS_CLIP] = {1 / 255.0,
                     {0.48145466, 0.4578275, 0.40821073},
                     {0.26862954, 0.26130258, 0.27577711}},
};

void image_input_read(struct params_reader *read, struct image_input *input)
{
    enum { SIDE_MAX = 4096 };
    input->pixels = params_word(read, "pixels", PIXELS, input->pixels);
    input->side = (uint32_t)params_count(read, "size", input->side, 1, SIDE_MAX);
}

struct image_encoder {
    struct onnx_session *session;
    struct image_input input;
    size_t images;         /* that it takes */
    int64_t width, height; /* -1: any */
    float *planes[IMAGES_MAX];
    size_t capacity[IMAGES_MAX];
};

/* ---- opening ---- */

/* One or more images as 3 planes of floats. */
static bool is_image_port(const struct onnx_port *port)
{
    return port->type == ONNX_FLOAT && port->rank == RANK && port->shape[0] <= 1 &&
           (port->shape[1] == CHANNELS || port->shape[1] < 0);
}

static enum err check_ports(struct image_encoder *encoder, const char *path, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(encoder->session);
    if (facts->input_count != encoder->images)
        return err_set(why, ERR_USAGE, "%.200s: a model with %zu inputs, expected %zu", path,
                       facts->input_count, encoder->images);
    for (size_t i = 0; i < facts->input_count; i++)
        if (!is_image_port(&facts->inputs[i]))
            return err_set(why, ERR_USAGE,
                           "%.200s: input '%s' is not a batch of images (float, 1 x 3 x height x "
                           "width)",
                           path, facts->inputs[i].name);
    encoder->height = facts->inputs[0].shape[2];
    encoder->width = facts->inputs[0].shape[3];
    return ERR_OK;
}

enum err image_encoder_open(const char *path, const struct image_input *input, size_t images,
                            struct image_encoder **out, struct error *why)
{
    const struct onnx_options options = {0};
    struct image_encoder *encoder = XNEW(encoder);
    encoder->input = *input;
    encoder->images = images;
    enum err err = onnx_session_open(path, &options, &encoder->session, why);
    if (!err)
        err = check_ports(encoder, path, why);
    if (err) {
        image_encoder_close(encoder);
        encoder = NULL;
    }
    *out = encoder;
    return err;
}

void image_encoder_close(struct image_encoder *encoder)
{
    if (!encoder)
        return;
    onnx_session_close(encoder->session);
    for (size_t i = 0; i < IMAGES_MAX; i++)
        free(encoder->planes[i]);
    free(encoder);
}

/* ---- images ---- */

/* Stretched to the size, or its shorter side resized to it and the center cropped, as CLIP takes images. */
static void fit(const struct image *image, uint32_t width, uint32_t height, bool is_cropped,
                struct image *out)
{
    if (image->width == width && image->height == height) {
        image_resize(image, width, height, IMAGE_NEAREST, out);
        return;
    }
    if (!is_cropped) {
        image_resize(image, width, height, IMAGE_BILINEAR, out);
        return;
    }
    struct image resized = {0};
    double scale = fmax((double)width / image->width, (double)height / image->height);
    image_resize(image, (uint32_t)lround(scale * image->width),
                 (uint32_t)lround(scale * image->height), IMAGE_BICUBIC, &resized);
    image_crop_center(&resized, width, height, out);
    image_release(&resized);
}

/* The size that an image gets: that of the model, of the parameter, or its own. */
static uint32_t side_of(int64_t of_model, uint32_t of_input, uint32_t own)
{
    if (of_model > 0)
        return (uint32_t)of_model;
    return of_input ? of_input : own;
}

static enum err load_planes(struct image_encoder *encoder, const char *path, size_t which,
                            struct onnx_tensor *out, struct error *why)
{
    struct image image = {0}, fitted = {0};
    enum err err = image_load(path, &image, why);
    if (err)
        return err;
    uint32_t width = side_of(encoder->width, encoder->input.side, image.width);
    uint32_t height = side_of(encoder->height, encoder->input.side, image.height);
    fit(&image, width, height, encoder->input.is_cropped, &fitted);
    size_t wanted = (size_t)CHANNELS * width * height;
    if (wanted > encoder->capacity[which]) {
        encoder->planes[which] = xreallocarray(encoder->planes[which], wanted, sizeof(float));
        encoder->capacity[which] = wanted;
    }
    image_to_planes(&fitted, &NORMS[encoder->input.pixels], encoder->planes[which]);
    *out = onnx_tensor_of(ONNX_FLOAT, encoder->planes[which], RANK,
                          (const int64_t[]){1, CHANNELS, height, width});
    image_release(&image);
    image_release(&fitted);
    return ERR_OK;
}

/* ---- running ---- */

static enum err add_output(const struct onnx_tensor *tensor, struct features *out,
                           struct error *why)
{
    if (tensor->count == 0 || tensor->count > FEATURES_WIDTH_MAX)
        return err_set(why, ERR_BAD_VALUE, "the encoder gives %zu numbers: expected 1 to %d",
                       tensor->count, FEATURES_WIDTH_MAX);
    double *row = xcalloc(tensor->count, sizeof *row);
    for (size_t i = 0; i < tensor->count; i++)
        row[i] = onnx_tensor_at(tensor, i);
    enum err err = features_add(out, row, tensor->count, why);
    free(row);
    return err;
}

enum err image_encoder_add(struct image_encoder *encoder, const char *const *images,
                           struct features *out, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(encoder->session);
    struct onnx_tensor inputs[IMAGES_MAX] = {0};
    struct onnx_tensor *outputs = xcalloc(facts->output_count + 1, sizeof *outputs);
    bool *wanted = xcalloc(facts->output_count + 1, sizeof *wanted);
    enum err err = ERR_OK;
    int named = onnx_output(encoder->session, "image_embeds");
    size_t output = named >= 0 ? (size_t)named : 0;
    wanted[output] = true;
    for (size_t i = 0; i < encoder->images && !err; i++)
        err = load_planes(encoder, images[i], i, &inputs[i], why);
    if (!err)
        err = onnx_run(encoder->session, inputs, outputs, wanted, NULL, why);
    if (!err)
        err = add_output(&outputs[output], out, why);
    for (size_t i = 0; i < facts->output_count; i++)
        onnx_tensor_release(&outputs[i]);
    free(outputs);
    free(wanted);
    return err;
}
