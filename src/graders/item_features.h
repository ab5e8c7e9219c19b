/* Shared by the metrics of generated images: the features of items, from an encoder or a file, and which items have none.
 * The caller owns a struct item_features: item_features_release. */
#ifndef IPW_GRADERS_ITEM_FEATURES_H
#define IPW_GRADERS_ITEM_FEATURES_H

#include "graders/features.h"
#include "graders/grader.h"
#include "graders/image_encoder.h"

/* A parameter that names a file or folder, which must exist; to be freed.  NULL: not given. */
char *path_param(struct params_reader *read, const char *key);

struct item_features {
    struct features rows;
    size_t *items;    /* the item of each row */
    size_t left_out;  /* items without one */
    char reason[160]; /* why, of the first of them */
};

/* Where the features of items come from: exactly one of both. */
struct item_source {
    const char *encoder; /* ONNX file, run on the image that is the item's answer */
    const char *file;    /* row i is of the item with index i */
    struct image_input input;
};

/* An image that cannot be read is left out; an encoder or file that cannot be used is an error. */
enum err item_features_read(const struct item_source *source, const struct grading *items,
                            size_t count, struct item_features *out, struct error *why) MUST_USE;
void item_features_release(struct item_features *features);

/* Adds to the reason of a metric that items were left out. */
void item_features_note(const struct item_features *features, struct grader_quality *out);

#endif
