/* A folder of images or sound as a dataset: its files in the order of their names, with labels from a CSV file, COCO
 * annotations, transcripts beside the files, or the names of subfolders.  Files are listed, not read.  A driver that
 * names what it looks for is a const struct media_kind. */
#ifndef IPW_DATASETS_MEDIA_FOLDER_H
#define IPW_DATASETS_MEDIA_FOLDER_H

#include <stdbool.h>

#include "core/err.h"

struct dataset;
struct dataset_config;

enum { MEDIA_DEPTH_MAX = 4 }; /* subfolders in subfolders */

struct media_kind {
    const char *driver;               /* its name */
    const char *file;                 /* one of its files, for messages: "image" */
    const char *formats;              /* "PNG or JPEG" */
    const char *const *suffixes;      /* NULL-terminated */
    const char *const *label_columns; /* of labels.csv, NULL-terminated: the first that exists */
    const char *label;                /* what such a column has: "label" */
    const char *label_grader;         /* grader of its answers */
    bool has_boxes;                   /* COCO annotations are read */
    bool has_transcripts;             /* NAME.txt beside NAME.wav */
    bool labels_are_subjects;         /* and the names of subfolders are labels */
};
extern const struct media_kind MEDIA_IMAGES, MEDIA_AUDIO;

/* Parameters path, labels, annotations and those of the order of rows; `next` and `close` are row_feed's. */
enum err media_folder_open(const struct media_kind *kind, const struct dataset_config *config,
                           struct dataset *out, struct error *why) MUST_USE;

/* The driver of the first image or sound in a folder or its subfolders; NULL if there is none. */
const char *media_folder_driver(const char *path);

#endif
