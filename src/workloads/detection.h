/* Detected objects: what an output of a YOLO model contains, non-maximum suppression, and boxes in pixels of the image.
 * The caller owns the struct detections. */
#ifndef IPW_WORKLOADS_DETECTION_H
#define IPW_WORKLOADS_DETECTION_H

#include <stddef.h>
#include <stdint.h>

struct labels;
struct text;

/* A box by its corners. */
struct detection {
    float left, top, right, bottom;
    float score;
    uint32_t label;
};

struct detections {
    struct detection *items;
    size_t count, capacity;
};
void detections_release(struct detections *detections);

/* Adds those above the confidence from rows of values, each with one value per anchor: center x, center y, width, height,
 * and the score of each class: an anchor is of its most probable class. */
void detections_add_anchors(struct detections *out, const float *values, size_t classes,
                            size_t anchors, double confidence);
/* The same for a model that has suppressed already: per object left, top, right, bottom, score, class. */
void detections_add_objects(struct detections *out, const float *values, size_t objects,
                            double confidence);

/* Sorts, most probable first (of two of the same score, the one that was added first), and removes each that overlaps a more probable one of
 * its class by more than `iou`; at most `max` stay. */
void detections_suppress(struct detections *detections, double iou, size_t max);
/* Sorts, and removes all but the first ones. */
void detections_limit(struct detections *detections, size_t max);

/* Converts boxes of a letterboxed image (media/image.h) to those of the image, and clips them to it. */
void detections_unletterbox(struct detections *detections, double scale, double left, double top,
                            uint32_t width, uint32_t height);

/* Appends JSON: [{"label":"circle","score":0.91,"box":[x,y,w,h]}, ...]. */
void detections_answer(const struct detections *detections, const struct labels *labels,
                       struct text *out);

#endif
