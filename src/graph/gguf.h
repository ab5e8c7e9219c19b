/* The header of a GGUF file: its keys and values, and its tensors with their offset and type.
 *
 * Nothing declared in the file is trusted before it is compared with the file size, so memory is bounded by the actual
 * bytes.  A truncated or corrupt file is ERR_BAD_VALUE with the byte offset and the key or tensor.  After a successful
 * read every string, array and tensor lies inside the file, names are unique, and tensors do not overlap.
 *
 * Ownership: the file is mapped, not copied.  Slices and arrays point into the mapping and are valid until gguf_close,
 * as is everything in a struct gguf.  The file must not be truncated meanwhile. */
#ifndef IPW_GRAPH_GGUF_H
#define IPW_GRAPH_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"

/* Storage type of a tensor's elements; constant. */
struct tensor_type {
    uint32_t number;         /* in GGUF files */
    const char *name;        /* "Q4_K" */
    uint32_t block_elements; /* stored together; a row has whole blocks */
    uint32_t block_bytes;
};

/* NULL if the number is unknown. */
const struct tensor_type *tensor_type_numbered(uint32_t number);

enum gguf_type { /* as numbered in files */
                 GGUF_U8,
                 GGUF_I8,
                 GGUF_U16,
                 GGUF_I16,
                 GGUF_U32,
                 GGUF_I32,
                 GGUF_F32,
                 GGUF_BOOL,
                 GGUF_STRING,
                 GGUF_ARRAY,
                 GGUF_U64,
                 GGUF_I64,
                 GGUF_F64,
                 GGUF_TYPE_COUNT
};

struct gguf_value {
    struct slice key;
    enum gguf_type type;       /* type of the value, or of an array's items; never GGUF_ARRAY */
    bool is_array;             /* arrays of arrays are not supported */
    uint64_t count;            /* items of an array; otherwise 1 */
    const unsigned char *data; /* as stored: little-endian, unaligned, strings after their length */
    uint64_t data_bytes;
};

#define GGUF_MAX_DIMENSIONS 4

struct gguf_tensor {
    struct slice name;
    const struct tensor_type *type;
    unsigned rank;
    uint64_t dims[GGUF_MAX_DIMENSIONS]; /* fastest first: columns, rows; unused ones are 1 */
    uint64_t elements, bytes;
    uint64_t offset; /* in the file */
};

struct gguf {
    char *file; /* its name, for messages */
    uint32_t version;
    uint32_t alignment;
    uint64_t file_bytes;
    uint64_t data_offset; /* where tensors begin */
    size_t value_count, tensor_count;
    struct gguf_value *values; /* in the order of the file, like the tensors */
    struct gguf_tensor *tensors;
    const struct slice **keys, **names; /* values and tensors, sorted by name */
    void *mapping;                      /* NULL if the bytes belong to the caller */
};

/* ERR_UNSUPPORTED for an unsupported version, byte order or tensor type.  *out is filled on success only. */
enum err gguf_open(const char *path, struct gguf *out, struct error *why) MUST_USE;
/* The same from memory, which must outlive *out; `name` is for messages. */
enum err gguf_read(const char *name, const void *bytes, size_t length, struct gguf *out,
                   struct error *why) MUST_USE;
void gguf_close(struct gguf *gguf);

/* NULL if there is none of that name. */
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key);
const struct gguf_tensor *gguf_tensor_named(const struct gguf *gguf, const char *name);

/* False if the key is missing, an array or of another type. */
bool gguf_string(const struct gguf *gguf, const char *key, struct slice *out);
bool gguf_u64(const struct gguf *gguf, const char *key, uint64_t *out);

/* One item of an array, or with index 0 the value itself; false for other types.  An i64 may be a bool. */
bool gguf_item_u64(const struct gguf_value *value, uint64_t index, uint64_t *out);
bool gguf_item_i64(const struct gguf_value *value, uint64_t index, int64_t *out);

/* Iterates over the strings of a value: a zeroed *string becomes the first, then the next; false after the last. */
bool gguf_next_string(const struct gguf_value *value, struct slice *string);

#endif
