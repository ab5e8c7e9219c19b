/* Image classification: vit and resnet.  They differ in their default model only, since what a model needs is in its
 * files: optimum's preprocessor_config.json and config.json, or, as in exports of torchvision, nothing but the ONNX
 * file, for which the transformations of its evaluation are the default. */
#include <math.h>
#include <stdlib.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "media/image.h"
#include "wire/completion.h"
#include "workloads/labels.h"
#include "workloads/model_files.h"
#include "workloads/vision.h"
#include "workloads/workload.h"

enum { SIDE_MAX = VISION_SIDE_MAX, DEFAULT_SIDE = 224, DEFAULT_TOP = 10, TOP_MAX = 1000 };

/* From an image to that of the model's size: resized, and the center of it. */
struct transform {
    bool
        is_edge; /* the shorter edge is resized, with the proportions of the image; else both are */
    double height, width; /* after resizing; the edge in both */
    double crop_height, crop_width;
    enum image_filter filter;
    struct image_norm norm;
};

struct classifier {
    struct vision_model model;
    struct transform transform;
    struct labels labels;
};

/* ---- preprocessor_config.json ---- */

/* Evaluation in torchvision: the shorter edge to 256, the central 224 x 224, statistics of ImageNet. */
static const struct transform TORCHVISION = {
    .is_edge = true,
    .height = 256,
    .width = 256,
    .crop_height = 224,
    .crop_width = 224,
    .filter = IMAGE_BILINEAR,
    .norm = {1 / 255.0, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
};

static enum err bad_member(const char *member, const char *expected, struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED, "preprocessor_config.json: %s: expected %s", member,
                   expected);
}

static bool is_side(double value)
{
    return value >= 1 && value <= SIDE_MAX && value == floor(value);
}

/* A number, {"height", "width"} or {"shortest_edge"}; *is_edge says whether it was the last one. */
static enum err read_size(const struct jv *size, const char *name, double *height, double *width,
                          bool *is_edge, struct error *why)
{
    const struct jv *edge = jv_get(size, "shortest_edge");
    *is_edge = edge != NULL;
    if (jv_is_object(size)) {
        *height = jv_number(edge ? edge : jv_get(size, "height"));
        *width = jv_number(edge ? edge : jv_get(size, "width"));
    } else {
        *height = *width = jv_number(size);
    }
    if (is_side(*height) && is_side(*width))
        return ERR_OK;
    return bad_member(name, "a size of 1 to 8192 pixels", why);
}

static enum err read_filter(const struct jv *json, enum image_filter *out, struct error *why)
{
    /* The numbers of Pillow. */
    static const enum image_filter FILTERS[] = {IMAGE_NEAREST, IMAGE_LANCZOS, IMAGE_BILINEAR,
                                                IMAGE_BICUBIC};
    double number = known_or(jv_get_number(json, "resample"), 2);
    if (!(number >= 0 && number < (double)COUNT_OF(FILTERS)))
        return bad_member("resample", "0 (nearest), 1 (Lanczos), 2 (bilinear) or 3 (bicubic)", why);
    *out = FILTERS[(size_t)number];
    return ERR_OK;
}

static enum err read_norm(const struct jv *json, struct image_norm *out, struct error *why)
{
    bool rescales = jv_bool(jv_get(json, "do_rescale"), true);
    *out = (struct image_norm){.std = {1, 1, 1}};
    out->rescale = rescales ? known_or(jv_get_number(json, "rescale_factor"), 1 / 255.0) : 1;
    if (!jv_bool(jv_get(json, "do_normalize"), true))
        return ERR_OK;
    bool is_read = jv_numbers(jv_get(json, "image_mean"), out->mean, 3) &&
                   jv_numbers(jv_get(json, "image_std"), out->std, 3);
    for (size_t i = 0; i < 3; i++)
        is_read = is_read && is_known(out->mean[i]) && out->std[i] > 0;
    return is_read ? ERR_OK : bad_member("image_mean and image_std", "three numbers each", why);
}

/* Processors of ConvNeXt and ResNet have no size of the crop: below 384 pixels it is a share of the resized image. */
static void apply_crop_share(const struct jv *json, struct transform *out)
{
    double share = known_or(jv_get_number(json, "crop_pct"), 0.875);
    if (out->crop_height < 384 && share > 0 && share <= 1)
        out->height = out->width = floor(out->crop_height / share);
    else
        out->is_edge = false;
}

static bool has_crop_share(const struct jv *json)
{
    const char *type = jv_get_text(json, "image_processor_type");
    if (!type)
        type = jv_get_text(json, "feature_extractor_type");
    return jv_get(json, "crop_pct") || (type && str_starts(type, "ConvNext"));
}

static enum err read_geometry(const struct jv *json, struct transform *out, struct error *why)
{
    bool crops = jv_bool(jv_get(json, "do_center_crop"), false), unused;
    if (!jv_bool(jv_get(json, "do_resize"), true))
        return bad_member("do_resize", "true", why);
    enum err err =
        read_size(jv_get(json, "size"), "size", &out->height, &out->width, &out->is_edge, why);
    if (err)
        return err;
    out->crop_height = out->height;
    out->crop_width = out->width;
    if (has_crop_share(json)) {
        out->is_edge = true;
        apply_crop_share(json, out);
        return ERR_OK;
    }
    if (!jv_is_object(jv_get(json, "size")))
        out->is_edge = crops;
    if (crops)
        return read_size(jv_get(json, "crop_size"), "crop_size", &out->crop_height,
                         &out->crop_width, &unused, why);
    return out->is_edge ? bad_member("do_center_crop", "true with size.shortest_edge", why)
                        : ERR_OK;
}

static enum err read_transform(const struct model_files *files, struct transform *out,
                               struct error *why)
{
    struct jv *json;
    enum err err = model_files_json(files, "preprocessor_config.json", &json, why);
    *out = TORCHVISION;
    if (!err && json)
        err = read_geometry(json, out, why);
    if (!err && json)
        err = read_filter(json, &out->filter, why);
    if (!err && json)
        err = read_norm(json, &out->norm, why);
    jv_free(json);
    return err;
}

/* Scales the transform to images of another size. */
static void set_size(struct transform *transform, double height, double width)
{
    transform->height = fmax(1, round(transform->height * height / transform->crop_height));
    transform->width = fmax(1, round(transform->width * width / transform->crop_width));
    if (transform->is_edge)
        transform->height = transform->width = fmin(transform->height, transform->width);
    transform->crop_height = height;
    transform->crop_width = width;
}

/* A size that the model's shape fixes has precedence. */
static void set_model_size(struct classifier *classifier)
{
    const struct vision_model *model = &classifier->model;
    struct transform *transform = &classifier->transform;
    double height = model->height > 0 ? (double)model->height : transform->crop_height;
    double width = model->width > 0 ? (double)model->width : transform->crop_width;
    if (height != transform->crop_height || width != transform->crop_width)
        set_size(transform, height, width);
}

/* ---- opening ---- */

static enum err check_labels(const struct classifier *classifier, struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(classifier->model.session);
    const struct onnx_port *output = &facts->outputs[classifier->model.output];
    if (output->rank != 2 || output->shape[1] < 0) /* checked with the first result */
        return ERR_OK;
    return labels_check(&classifier->labels, (size_t)output->shape[1], facts->path, why);
}

static enum err open_files(const struct model_files *files, void *state, struct error *why)
{
    struct classifier *out = state;
    static const char *const NAMES[] = {"model.onnx", "onnx/model.onnx", NULL};
    struct jv *config = NULL;
    enum err err = vision_open(files, NAMES, "logits", &out->model, why);
    if (!err)
        err = read_transform(files, &out->transform, why);
    if (!err)
        err = model_files_json(files, "config.json", &config, why);
    if (!err)
        err = labels_load(files, out->model.session, config, &out->labels, why);
    if (!err)
        err = check_labels(out, why);
    jv_free(config);
    if (!err)
        set_model_size(out);
    return err;
}

static void close_classifier(struct workload *workload)
{
    struct classifier *classifier = workload->state;
    vision_close(&classifier->model);
    labels_release(&classifier->labels);
    free(classifier);
}

static enum err open_classifier(const struct workload_config *config, struct workload *out,
                                struct error *why)
{
    return model_files_load(config, sizeof(struct classifier), open_files, out, why);
}

/* ---- a query ---- */

struct query {
    struct vision_query vision;
    uint64_t top;
};

static enum err read_params(const struct classifier *classifier, const struct params *params,
                            struct query *query, struct transform *transform, struct error *why)
{
    struct params_reader read = {params, why, ERR_OK};
    const struct vision_model *model = &classifier->model;
    uint64_t size = params_count(&read, "size", 0, 16, SIDE_MAX);
    query->top = params_count(&read, "top", DEFAULT_TOP, 1, TOP_MAX);
    *transform = classifier->transform;
    if (read.err || size == 0)
        return read.err;
    if ((model->height > 0 && model->height != (int64_t)size) ||
        (model->width > 0 && model->width != (int64_t)size))
        return err_set(why, ERR_USAGE, "size=%llu: the model takes images of %.0f x %.0f only",
                       (unsigned long long)size, transform->crop_width, transform->crop_height);
    set_size(transform, (double)size, (double)size);
    return ERR_OK;
}

/* The size after resizing; false where it is too large, for an image that is extremely long or a crop that is an extremely
 * small part of it. */
static bool resized(const struct transform *transform, const struct image *image, uint32_t *width,
                    uint32_t *height)
{
    if (transform->height > IMAGE_SIDE_MAX || transform->width > IMAGE_SIDE_MAX)
        return false;
    uint64_t edge = (uint64_t)transform->height;
    *width = (uint32_t)transform->width;
    *height = (uint32_t)transform->height;
    if (!transform->is_edge)
        return true;
    uint64_t longer = image->width > image->height ? image->width : image->height;
    uint64_t shorter = image->width > image->height ? image->height : image->width;
    uint64_t other = edge * longer / shorter; /* rounded down, as in torchvision */
    if (other > IMAGE_SIDE_MAX)
        return false;
    if (image->width > image->height)
        *width = (uint32_t)other;
    else
        *height = (uint32_t)other;
    return true;
}

static enum err apply(const struct transform *transform, const char *path,
                      const struct image *image, struct image *out, struct error *why)
{
    struct image scaled = {0};
    uint32_t width, height;
    if (!resized(transform, image, &width, &height))
        return err_set(why, ERR_BAD_VALUE, "%s: an image of %u x %u pixels is too long to resize",
                       path, image->width, image->height);
    image_resize(image, width, height, transform->filter, &scaled);
    image_crop_center(&scaled, (uint32_t)transform->crop_width, (uint32_t)transform->crop_height,
                      out);
    image_release(&scaled);
    return ERR_OK;
}

static enum err prepare(struct workload *workload, struct workload_query *query, struct error *why)
{
    const struct classifier *classifier = workload->state;
    struct transform transform;
    struct image image = {0}, fitted = {0};
    struct query *state = XNEW(state);
    query->state = state;
    enum err err = read_params(classifier, query->params, state, &transform, why);
    if (!err)
        err = image_load(query->input, &image, why);
    if (!err)
        err = apply(&transform, query->input, &image, &fitted, why);
    if (!err) {
        vision_query_set(&classifier->model, &fitted, &transform.norm, &state->vision);
        query->images = 1;
    }
    image_release(&image);
    image_release(&fitted);
    return err;
}

static enum err run_batch(struct workload *workload, struct workload_query *const *queries,
                          size_t count, struct error *why)
{
    const struct classifier *classifier = workload->state;
    return vision_run(&classifier->model, queries, count, why);
}

static enum err run(struct workload *workload, struct workload_query *query, struct error *why)
{
    return run_batch(workload, &query, 1, why);
}

static enum err finish(struct workload *workload, struct workload_query *query,
                       struct completion *out, struct error *why)
{
    const struct classifier *classifier = workload->state;
    const struct query *state = query->state;
    const struct onnx_facts *facts = onnx_session_facts(classifier->model.session);
    struct vision_values values;
    enum err err = vision_values(&classifier->model, &state->vision, 0, &values, why);
    if (!err && (int64_t)values.count != values.shape[0])
        err = err_set(why, ERR_BAD_VALUE,
                      "%s: output %s has the shape %s for one image: expected a value per class",
                      facts->path, facts->outputs[classifier->model.output].name,
                      shape_text(values.shape, values.rank).text);
    if (!err)
        err = labels_check(&classifier->labels, values.count, facts->path, why);
    if (!err)
        labels_answer(&classifier->labels, values.values, values.count, state->top, &out->content);
    free(values.values);
    return err;
}

static void discard(struct workload *workload, struct workload_query *query)
{
    struct query *state = query->state;
    (void)workload;
    if (state)
        vision_query_release(&state->vision);
    free(state);
    query->state = NULL;
}

static void describe(const struct workload *workload, struct json *json)
{
    const struct classifier *classifier = workload->state;
    const struct transform *transform = &classifier->transform;
    model_describe_runtime(classifier->model.session, json);
    model_describe(classifier->model.session, "model", json);
    json_object(json, "preprocessing");
    json_string(json, "resized", transform->is_edge ? "shorter edge" : "both edges");
    json_number(json, "resize_height", transform->height);
    json_number(json, "resize_width", transform->width);
    json_number(json, "height", transform->crop_height);
    json_number(json, "width", transform->crop_width);
    json_object_end(json);
    json_integer(json, "labels", (int64_t)classifier->labels.count);
}

/* ---- the drivers ---- */

static const char *const GRADERS[] = {"top_1", "top_5", NULL};

static const struct param_spec PARAMS[] = {MODEL_PARAMS, {NULL, NULL, NULL}};

static const struct param_spec QUERY_PARAMS[] = {
    {"size", "PIXELS",
     "side of the image for the model, if it is free (as preprocessor_config.json, 224)"},
    {"top", "COUNT", "most probable classes in the answer (10)"},
    {NULL, NULL, NULL},
};

#define LAYOUT                                                                                     \
    "a directory of optimum (model.onnx, config.json, preprocessor_config.json) or an ONNX file "  \
    "as exported from torchvision, with labels in NAME.labels.txt or its metadata"

#define CLASSIFIER(driver, text, shipped)                                                          \
    const struct workload_driver workload_##driver = {                                             \
        .name = #driver,                                                                           \
        .summary = text,                                                                           \
        .inputs = "an image file (PNG or JPEG)",                                                   \
        .model_layout = LAYOUT,                                                                    \
        .default_model = shipped,                                                                  \
        .default_dataset = "scenes",                                                               \
        .graders = GRADERS,                                                                        \
        .params = PARAMS,                                                                          \
        .query_params = QUERY_PARAMS,                                                              \
        .open = open_classifier,                                                                   \
        .close = close_classifier,                                                                 \
        .prepare = prepare,                                                                        \
        .run = run,                                                                                \
        .finish = finish,                                                                          \
        .discard = discard,                                                                        \
        .run_batch = run_batch,                                                                    \
        .describe = describe,                                                                      \
    }

CLASSIFIER(vit, "image classification with a vision transformer", "scenes-vit");
CLASSIFIER(resnet, "image classification with a convolutional network", "scenes-resnet");
