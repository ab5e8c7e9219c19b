/* Models that take an image as planes: the session, queries with their planes, running several of them as one batch
 * (vision.c), and the objects that a model has detected (found_boxes.c).
 *
 * The caller owns every struct here.  A driver's `state` of a query is a struct vision_query or starts with one. */
#ifndef IPW_WORKLOADS_VISION_H
#define IPW_WORKLOADS_VISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "engine/onnx.h"

struct image;
struct image_norm;
struct labels;
struct model_files;
struct text;
struct workload_query;

enum { VISION_SIDE_MAX = 8192 }; /* pixels of an image that a model takes */

struct vision_model {
    struct onnx_session *session;
    int output;            /* the one that is used */
    enum onnx_type type;   /* of the input: float or float16 */
    int64_t height, width; /* -1: free */
    bool has_free_batch;
};

/* ERR_UNSUPPORTED, naming what was found, unless the model takes one tensor batch x 3 x height x width of floats with a
 * batch that is 1 or free.  `output`: the name of the one to use; NULL, or no such: the first one. */
enum err vision_open(const struct model_files *files, const char *const *names, const char *output,
                     struct vision_model *out, struct error *why) MUST_USE;
void vision_close(struct vision_model *model);

struct vision_output;

struct vision_query {
    uint32_t width, height;
    void *planes;                 /* of the type of the model's input */
    struct vision_output *output; /* shared by the queries of a batch; NULL: not run yet */
    size_t index;                 /* in the batch */
};

/* Sets the planes to those of an image. */
void vision_query_set(const struct vision_model *model, const struct image *image,
                      const struct image_norm *norm, struct vision_query *query);
void vision_query_release(struct vision_query *query);

/* Runs prepared queries: neighbors of the same size as one batch if the model's batch is free. */
enum err vision_run(const struct vision_model *model, struct workload_query *const *queries,
                    size_t count, struct error *why) MUST_USE;

/* The part of the output that belongs to one image; values are freed by the caller. */
struct vision_values {
    float *values;
    size_t count, rank;
    int64_t shape[ONNX_RANK_MAX];
};

/* ERR_BAD_VALUE for a NaN, and for another rank (that of the whole output, with the batch; 0: any). */
enum err vision_values(const struct vision_model *model, const struct vision_query *query,
                       size_t rank, struct vision_values *out, struct error *why) MUST_USE;

/* ---- detected objects (found_boxes.c) ---- */

/* A box by its corners. */
struct found_box {
    float left, top, right, bottom;
    float score;
    uint32_t label;
};

struct found_boxes {
    struct found_box *items;
    size_t count, capacity;
};
void found_boxes_release(struct found_boxes *boxes);

/* Adds those above the confidence from rows of values, each with one value per anchor: center x, center y, width, height,
 * and the score of each class: an anchor is of its most probable class. */
void found_boxes_add_anchors(struct found_boxes *out, const float *values, size_t classes,
                             size_t anchors, double confidence);
/* The same for a model that has suppressed already: per object left, top, right, bottom, score, class. */
void found_boxes_add_objects(struct found_boxes *out, const float *values, size_t objects,
                             double confidence);

/* Sorts, most probable first (of two of the same score, the one that was added first), and removes each that overlaps a
 * more probable one of its class by more than `iou`; at most `max` stay. */
void found_boxes_suppress(struct found_boxes *boxes, double iou, size_t max);
/* Sorts, and removes all but the first ones. */
void found_boxes_limit(struct found_boxes *boxes, size_t max);

/* Converts boxes of a letterboxed image (media/image.h) to those of the image, and clips them to it. */
void found_boxes_unletterbox(struct found_boxes *boxes, double scale, double left, double top,
                             uint32_t width, uint32_t height);

/* Appends JSON: [{"label":"circle","score":0.91,"box":[x,y,w,h]}, ...]. */
void found_boxes_answer(const struct found_boxes *boxes, const struct labels *labels,
                        struct text *out);

#endif
