/* Arrays of floating-point numbers in NumPy's file format (.npy, versions 1 to 3).  The caller owns every struct npy:
 * zero-initialize, npy_release. */
#ifndef IPW_PORT_NPY_H
#define IPW_PORT_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct text;

enum { NPY_RANK_MAX = 8 };

struct npy {
    size_t rank; /* 0: one number */
    int64_t shape[NPY_RANK_MAX];
    size_t count;
    float *values; /* in C order */
};
void npy_release(struct npy *npy);

/* float16, float32 or float64, little-endian, in C order; anything else is ERR_BAD_VALUE or ERR_UNSUPPORTED. */
enum err npy_parse(const void *bytes, size_t length, struct npy *out, struct error *why) MUST_USE;
/* The same for a file of at most `limit` bytes, whose path is in *why. */
enum err npy_read(const char *path, size_t limit, struct npy *out, struct error *why) MUST_USE;

/* Appends a file of float32. */
void npy_write(const float *values, const int64_t *shape, size_t rank, struct text *out);

/* The shape for a message: "(1, 4, 64, 64)". */
void npy_add_shape(const int64_t *shape, size_t rank, struct text *out);

#endif
