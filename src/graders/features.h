/* Rows of numbers: embeddings of items, read from a file or computed by an encoder (image_encoder.h).  The caller owns
 * the structs: features_release, image_folder_release. */
#ifndef IPW_GRADERS_FEATURES_H
#define IPW_GRADERS_FEATURES_H

#include <stddef.h>

#include "core/err.h"

enum { FEATURES_WIDTH_MAX = 4096 };

struct text;

struct features {
    double *values; /* row by row */
    size_t count, width, capacity;
};

/* A NumPy file (.npy: one or two dimensions of little-endian floats) or numbers in CSV, with or without a line of names.
 * ERR_BAD_VALUE names the file and what is wrong with it. */
enum err features_read(const char *path, struct features *out, struct error *why) MUST_USE;
/* The same from memory, which is modified; bytes->bytes may not be NULL. */
enum err features_parse(struct text *bytes, struct features *out, struct error *why) MUST_USE;
/* Appends a row; the first one decides the width.  ERR_BAD_VALUE for another width, and for a number that is not
 * finite. */
enum err features_add(struct features *features, const double *row, size_t width, struct error *why)
    MUST_USE;
void features_release(struct features *features);

/* The PNG and JPEG files of a folder, sorted by name. */
struct image_folder {
    char **paths;
    size_t count, capacity;
};
enum err image_folder_read(const char *path, struct image_folder *out, struct error *why) MUST_USE;
void image_folder_release(struct image_folder *folder);

#endif
