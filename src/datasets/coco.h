/* The annotations of object detection in COCO's JSON format: boxes of images, by the image's file name.  A struct coco
 * owns its memory: coco_read, coco_release. */
#ifndef IPW_DATASETS_COCO_H
#define IPW_DATASETS_COCO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct text;

struct coco_image {
    char *file_name;
    int64_t id;
};
struct coco_category {
    int64_t id;
    char *name;
};
struct coco_box {
    int64_t image, category;
    double place[4]; /* x, y, width, height in pixels */
    size_t order;    /* in the file */
    bool is_crowd;
};

struct coco {
    struct coco_image *images; /* by file name */
    size_t image_count, image_capacity;
    struct coco_category *categories; /* by id */
    size_t category_count, category_capacity;
    struct coco_box *boxes; /* by image, in their order */
    size_t box_count, box_capacity;
};

/* Reads the three lists it needs element by element: other members, and what else an element has, take no memory
 * beyond the text of the file.  A box without a category of the file is ERR_BAD_VALUE. */
enum err coco_read(const char *path, struct coco *out, struct error *why) MUST_USE;
void coco_release(struct coco *coco);

/* Appends [{"label": "cat", "box": [x, y, width, height]}, ...], with "crowd": true for a group; [] for an image without
 * objects.  False if the file does not list the image. */
bool coco_answer(const struct coco *coco, const char *file_name, struct text *out);

#endif
