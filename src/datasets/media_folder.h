/* A folder of images or sound as a dataset: its files in the order of their names, with labels from a CSV file, COCO
 * annotations, transcripts beside the files, or the names of subfolders.  Files are listed, not read.  What is opened
 * belongs to the struct dataset. */
#ifndef IPW_DATASETS_MEDIA_FOLDER_H
#define IPW_DATASETS_MEDIA_FOLDER_H

#include "core/err.h"

struct dataset;
struct dataset_config;

enum { MEDIA_DEPTH_MAX = 4 }; /* subfolders in subfolders */

enum media_kind { MEDIA_IMAGES, MEDIA_AUDIO };

/* Parameters path, labels, annotations (of images) and those of the order of rows; `next` and `close` are row_feed's. */
enum err media_folder_open(enum media_kind kind, const struct dataset_config *config,
                           struct dataset *out, struct error *why) MUST_USE;

/* The driver of the first image, or else sound, in a folder or its subfolders; NULL if there is none. */
const char *media_folder_driver(const char *path);

#endif
