/* The header of a safetensors file: which tensors it holds, of what shape and dtype.  Their data is never read.
 *
 * Nothing that the file claims is trusted before it is compared with the file's size.  After a successful read every
 * tensor lies inside the file and has as many bytes as its shape needs.
 *
 * Ownership: safetensors_release frees a struct safetensors.  A model in several files is several reads into the same
 * struct, or safetensors_open, which finds them. */
#ifndef IPW_GRAPH_SAFETENSORS_H
#define IPW_GRAPH_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/arena.h"

struct decoder_shape;

enum { SAFETENSORS_MAX_RANK = 8 };

struct safetensors_tensor {
    const char *name;
    uint8_t rank;
    uint64_t dims[SAFETENSORS_MAX_RANK];
    uint64_t elements, bytes;
    bool is_float; /* at least 8 bits: may be a weight as it is */
};

struct safetensors {
    struct safetensors_tensor *tensors; /* sorted by name after safetensors_sort */
    size_t count, capacity;
    struct arena names;
};

/* `bytes` are the first `length` of a file of `file_length`, and hold at least its header.  Adds to *out; on
 * failure it is unchanged. */
enum err safetensors_read(const char *file, const char *bytes, size_t length, uint64_t file_length,
                          struct safetensors *out, struct error *why) MUST_USE;

/* A file, or an index (*.index.json) with its files beside it.  *out is filled and sorted; a name that is defined
 * twice is ERR_BAD_VALUE. */
enum err safetensors_open(const char *path, struct safetensors *out, struct error *why) MUST_USE;
enum err safetensors_sort(const char *file, struct safetensors *tensors, struct error *why)
    MUST_USE;
void safetensors_release(struct safetensors *tensors);

/* NULL when there is none of that name. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *tensors,
                                                  const char *name);

/* The shape of a decoder from the names and shapes of its tensors.  Heads, experts per token,
 * windows and the activation do not show and are guessed.  False when these are not the tensors of a known decoder.
 * The caller sets the name. */
bool safetensors_guess(const struct safetensors *tensors, struct decoder_shape *out);

#endif
