/* The header of a safetensors file: which tensors it holds, of what shape and type.  The numbers themselves are
 * never read.
 *
 * Nothing that the file claims is believed before it was compared with the file's size.  After a successful
 * reading every tensor lies inside the file and has as many bytes as its shape needs.
 *
 * A struct safetensors is the caller's and is released; a model in several files is several readings into the
 * same struct, or safetensors_open, which finds them. */
#ifndef IPW_GRAPH_SAFETENSORS_H
#define IPW_GRAPH_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/arena.h"

enum { SAFETENSORS_MOST_DIMENSIONS = 8 };

struct safetensors_tensor {
    const char *name;
    uint8_t rank;
    uint64_t dims[SAFETENSORS_MOST_DIMENSIONS];
    uint64_t elements, bytes;
    bool is_float; /* numbers of at least 8 bits that may be weights as they are */
};

struct safetensors {
    struct safetensors_tensor *tensors; /* sorted by name after safetensors_sort */
    size_t count, room;
    struct arena names;
};

/* `bytes` are the first `length` of a file of `file_length`, and hold at least its header.  Adds to *out; on
 * failure what was there before stays. */
enum err safetensors_read(const char *file, const char *bytes, size_t length, uint64_t file_length,
                          struct safetensors *out, struct error *why) MUST_USE;

/* A file, or a list of files (*.index.json) with the files beside it.  A zeroed *out is filled, and sorted; a
 * name that is there twice is ERR_BAD_VALUE. */
enum err safetensors_open(const char *path, struct safetensors *out, struct error *why) MUST_USE;
enum err safetensors_sort(const char *file, struct safetensors *tensors, struct error *why)
    MUST_USE;
void safetensors_release(struct safetensors *tensors);

/* NULL when there is none of that name. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *tensors,
                                                  const char *name);

#endif
