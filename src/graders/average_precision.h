/* Average precision of object detection as COCO defines it: detections are matched with expected objects of their image
 * and class, best score first, at ten thresholds of the intersection over union (IoU); the precision is interpolated at
 * 101 recalls, and averaged over classes.  Of each image and class, the 100 detections with the highest scores count.  An
 * expected crowd is neither found nor missed, and whatever is inside it is no error.
 *
 * Ownership: matched_images_add copies; matched_images_free frees. */
#ifndef IPW_GRADERS_AVERAGE_PRECISION_H
#define IPW_GRADERS_AVERAGE_PRECISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct jv;

enum { DETECTION_THRESHOLDS = 10, DETECTIONS_MAX = 100 };

struct detected_object {
    const char *label; /* in the JSON value it was read from */
    double box[4];     /* left, top, width, height */
    double score;      /* of a detection */
    bool is_crowd;     /* of an expected object */
};

struct object_list {
    struct detected_object *items;
    size_t count;
};

/* [{"label": "circle", "box": [x, y, w, h], "score": 0.9}, ...]; without scores `expected`, with "crowd".  ERR_BAD_VALUE
 * says which object is wrong, and how.  objects_release frees the list. */
enum err objects_read(const struct jv *list, bool expected, struct object_list *out,
                      struct error *why) MUST_USE;
void objects_release(struct object_list *list);

struct matched_images; /* expected objects and detections of many images */

struct matched_images *matched_images_new(void);
void matched_images_free(struct matched_images *images);
/* The next image. */
void matched_images_add(struct matched_images *images, const struct object_list *expected,
                        const struct object_list *found);
size_t matched_images_count(const struct matched_images *images);

/* Precision averaged over classes, at IoU 0.5 (map_50) and over all thresholds (map_50_95); UNKNOWN without an expected
 * object.  weights: how often each image counts; NULL: once. */
struct average_precision {
    double at_50, at_50_95;
};
struct average_precision matched_images_precision(struct matched_images *images,
                                                  const unsigned *weights);

#endif
