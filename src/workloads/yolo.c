/* Object detection with YOLOv8 and later, as ultralytics exports them: the output of a detection head, or of a model that
 * selects its detections itself (end2end). */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "media/image.h"
#include "wire/completion.h"
#include "workloads/labels.h"
#include "workloads/model_files.h"
#include "workloads/vision.h"
#include "workloads/workload.h"

enum { DEFAULT_SIDE = 640, DEFAULT_STRIDE = 32, SIDE_MIN = 32, GRAY = 114 };
enum { SIDE_MAX = VISION_SIDE_MAX };
enum { BOX_VALUES = 4, OBJECT_VALUES = 6 };

struct detector {
    struct vision_model model;
    struct labels labels;
    uint32_t side;   /* of the square; fixed by the model, or its default */
    uint32_t stride; /* the side is a multiple of it */
    bool is_end2end; /* says its metadata */
};

/* ---- opening ---- */

/* The first number of a metadata entry: 640 of "[640, 640]". */
static uint32_t metadata_number(const struct onnx_session *session, const char *key,
                                uint32_t otherwise)
{
    char *text = onnx_session_metadata(session, key);
    uint32_t number = 0;
    if (text)
        for (const char *at = text + strspn(text, "[( "); *at >= '0' && *at <= '9'; at++)
            number = number > SIDE_MAX ? number : 10 * number + (uint32_t)(*at - '0');
    free(text);
    return number >= 1 && number <= SIDE_MAX ? number : otherwise;
}

static bool metadata_is(const struct onnx_session *session, const char *key, const char *value)
{
    char *text = onnx_session_metadata(session, key);
    bool is = text && str_equal_nocase(text, value);
    free(text);
    return is;
}

static enum err check_task(const struct onnx_session *session, struct error *why)
{
    char *task = onnx_session_metadata(session, "task");
    enum err err = ERR_OK;
    if (task && !str_equal(task, "detect"))
        err = err_set(why, ERR_UNSUPPORTED, "%s: a model for the task \"%s\": expected \"detect\"",
                      onnx_session_facts(session)->path, plain_text(task).text);
    free(task);
    return err;
}

static enum err read_side(struct detector *out, struct error *why)
{
    const struct onnx_session *session = out->model.session;
    int64_t height = out->model.height, width = out->model.width;
    int64_t fixed = height > 0 ? height : width;
    if (height > 0 && width > 0 && height != width)
        return err_set(why, ERR_UNSUPPORTED,
                       "%s: takes images of %lld x %lld: expected a square or a free size",
                       onnx_session_facts(session)->path, (long long)width, (long long)height);
    out->stride = metadata_number(session, "stride", DEFAULT_STRIDE);
    out->side = fixed > 0 ? (uint32_t)fixed : metadata_number(session, "imgsz", DEFAULT_SIDE);
    return ERR_OK;
}

static enum err open_files(const struct model_files *files, void *state, struct error *why)
{
    struct detector *out = state;
    static const char *const NAMES[] = {"model.onnx", "onnx/model.onnx", "best.onnx", NULL};
    struct jv *config = NULL;
    enum err err = vision_open(files, NAMES, "output0", &out->model, why);
    if (!err)
        err = check_task(out->model.session, why);
    if (!err)
        err = read_side(out, why);
    if (!err)
        err = model_files_json(files, "config.json", &config, why);
    if (!err)
        err = labels_load(files, out->model.session, config, &out->labels, why);
    jv_free(config);
    if (!err)
        out->is_end2end = metadata_is(out->model.session, "end2end", "true");
    return err;
}

static void close_detector(struct workload *workload)
{
    struct detector *detector = workload->state;
    vision_close(&detector->model);
    labels_release(&detector->labels);
    free(detector);
}

static enum err open_detector(const struct workload_config *config, struct workload *out,
                              struct error *why)
{
    return model_files_load(config, sizeof(struct detector), open_files, out, why);
}

/* ---- a query ---- */

struct query {
    struct vision_query vision;
    double confidence, iou;
    uint64_t max_detections;
    uint32_t width, height;  /* of the image */
    double scale, left, top; /* of its letterbox */
};

static enum err read_params(const struct detector *detector, const struct params *params,
                            struct query *query, uint32_t *side, struct error *why)
{
    enum { DETECTIONS = 300, DETECTIONS_MAX = 100000 };
    struct params_reader read = {params, why, ERR_OK};
    const struct vision_model *model = &detector->model;
    *side = (uint32_t)params_count(&read, "size", detector->side, SIDE_MIN, SIDE_MAX);
    query->confidence = params_number(&read, "confidence", 0.25, 0, 1);
    query->iou = params_number(&read, "iou", 0.7, 0, 1);
    query->max_detections = params_count(&read, "max_detections", DETECTIONS, 1, DETECTIONS_MAX);
    if (read.err)
        return read.err;
    if ((model->height > 0 || model->width > 0) && *side != detector->side)
        return err_set(why, ERR_USAGE, "size=%u: the model takes images of %u x %u only", *side,
                       detector->side, detector->side);
    if (*side % detector->stride != 0 && *side != detector->side)
        return err_set(why, ERR_USAGE, "size=%u: expected a multiple of the model's stride, %u",
                       *side, detector->stride);
    return ERR_OK;
}

static enum err prepare(struct workload *workload, struct workload_query *query, struct error *why)
{
    static const struct image_norm NORM = {1 / 255.0, {0, 0, 0}, {1, 1, 1}};
    const struct detector *detector = workload->state;
    struct image image = {0}, fitted = {0};
    uint32_t side = 0;
    struct query *state = XNEW(state);
    query->state = state;
    enum err err = read_params(detector, query->params, state, &side, why);
    if (!err)
        err = image_load(query->input, &image, why);
    if (!err) {
        image_letterbox(&image, side, GRAY, &fitted, &state->scale, &state->left, &state->top);
        state->width = image.width;
        state->height = image.height;
        vision_query_set(&detector->model, &fitted, &NORM, &state->vision);
        query->images = 1;
    }
    image_release(&image);
    image_release(&fitted);
    return err;
}

static enum err run_batch(struct workload *workload, struct workload_query *const *queries,
                          size_t count, struct error *why)
{
    const struct detector *detector = workload->state;
    return vision_run(&detector->model, queries, count, why);
}

static enum err run(struct workload *workload, struct workload_query *query, struct error *why)
{
    return run_batch(workload, &query, 1, why);
}

static enum err wrong_shape(const struct detector *detector, const struct vision_values *values,
                            struct error *why)
{
    const struct onnx_facts *facts = onnx_session_facts(detector->model.session);
    size_t named = detector->labels.count;
    char classes[32] = "classes";
    if (named > 0)
        chars_format(classes, "%zu classes", named);
    return err_set(why, ERR_BAD_VALUE,
                   "%s: output %s has the shape 1x%s: expected (4 + %s) x anchors as YOLOv8 has, "
                   "or objects x 6",
                   facts->path, facts->outputs[detector->model.output].name,
                   shape_text(values->shape, values->rank).text, classes);
}

/* Adds what the model found, in pixels of the letterboxed image; a head's output is suppressed. */
static enum err decode(const struct detector *detector, const struct query *query,
                       const struct vision_values *values, struct found_boxes *out,
                       struct error *why)
{
    size_t rows = (size_t)values->shape[0], columns = (size_t)values->shape[1];
    size_t named = detector->labels.count;
    bool has_classes =
        named > 0 ? rows == BOX_VALUES + named : rows > BOX_VALUES && rows <= columns;
    if (has_classes && !detector->is_end2end) {
        found_boxes_add_anchors(out, values->values, rows - BOX_VALUES, columns, query->confidence);
        found_boxes_suppress(out, query->iou, query->max_detections);
    } else if (columns == OBJECT_VALUES) {
        found_boxes_add_objects(out, values->values, rows, query->confidence);
        found_boxes_limit(out, query->max_detections);
    } else {
        return wrong_shape(detector, values, why);
    }
    return ERR_OK;
}

static enum err finish(struct workload *workload, struct workload_query *query,
                       struct completion *out, struct error *why)
{
    const struct detector *detector = workload->state;
    const struct query *state = query->state;
    struct found_boxes found = {0};
    struct vision_values values;
    enum err err = vision_values(&detector->model, &state->vision, 3, &values, why);
    if (!err)
        err = decode(detector, state, &values, &found, why);
    if (!err) {
        found_boxes_unletterbox(&found, state->scale, state->left, state->top, state->width,
                                state->height);
        found_boxes_answer(&found, &detector->labels, &out->content);
    }
    free(values.values);
    found_boxes_release(&found);
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
    const struct detector *detector = workload->state;
    model_describe_runtime(detector->model.session, json);
    model_describe(detector->model.session, "model", json);
    json_integer(json, "size", detector->side);
    json_integer(json, "stride", detector->stride);
    json_integer(json, "labels", (int64_t)detector->labels.count);
}

/* ---- the driver ---- */

static const char *const GRADERS[] = {"map", NULL};

static const struct param_spec PARAMS[] = {MODEL_PARAMS, {NULL, NULL, NULL}};

static const struct param_spec QUERY_PARAMS[] = {
    {"size", "PIXELS", "side of the image for the model, if it is free (as exported, 640)"},
    {"confidence", "P", "least score of a detection (0.25; 0.001 is usual for mAP)"},
    {"iou", "RATIO", "overlap beyond which the less probable of two boxes is dropped (0.7)"},
    {"max_detections", "COUNT", "detections per image (300)"},
    {NULL, NULL, NULL},
};

const struct workload_driver workload_yolo = {
    .name = "yolo",
    .summary = "object detection with YOLOv8 and later",
    .inputs = "an image file (PNG or JPEG)",
    .model_layout = "an ONNX file as exported by ultralytics, with a fixed or a free image size",
    .default_model = "scenes-yolo-n",
    .default_dataset = "scenes-boxes",
    .graders = GRADERS,
    .params = PARAMS,
    .query_params = QUERY_PARAMS,
    .open = open_detector,
    .close = close_detector,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .discard = discard,
    .run_batch = run_batch,
    .describe = describe,
};
