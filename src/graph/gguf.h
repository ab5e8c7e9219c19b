/* The header of a GGUF file: its keys and values, and which tensors it holds, where and how stored.
 *
 * Nothing that the file claims is believed before it was compared with the file's size: memory is
 * bounded by the bytes that are really there.  A file that was truncated or damaged is ERR_BAD_VALUE
 * with the byte and the key or tensor where it shows.  After a successful reading every string, array
 * and tensor lies inside the file, names are not repeated, and tensors do not overlap.
 *
 * Ownership: the file is mapped, not copied.  Strings and arrays point into the mapping, need not end
 * in NUL, and last until gguf_close, as does everything in a struct gguf.  A file must not be
 * shortened meanwhile. */
#ifndef IPW_GRAPH_GGUF_H
#define IPW_GRAPH_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/tensor_type.h"

struct gguf_text {
    const char *bytes;
    size_t length;
};

/* As files number them. */
enum gguf_type {
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
    struct gguf_text key;
    enum gguf_type type;       /* of the value, or of the items of an array; never GGUF_ARRAY */
    bool is_array;             /* an array of arrays is refused as not supported */
    uint64_t count;            /* items of an array; otherwise 1 */
    const unsigned char *data; /* as stored: little-endian, not aligned, strings behind a length */
    uint64_t data_bytes;
};

#define GGUF_MAX_DIMENSIONS 4

struct gguf_tensor {
    struct gguf_text name;
    const struct tensor_type *type;
    unsigned dimension_count;
    uint64_t
        dimensions[GGUF_MAX_DIMENSIONS]; /* the fastest first: columns, rows; unused ones are 1 */
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
    struct gguf_value *values; /* in the order of the file, as are the tensors */
    struct gguf_tensor *tensors;
    const struct gguf_text **keys, **names; /* of the values and tensors, sorted */
    void *mapping;                          /* NULL when the bytes are the caller's */
};

/* ERR_UNSUPPORTED for a version, byte order or tensor type that is not read.  *out is filled on
 * success only. */
enum err gguf_open(const char *path, struct gguf *out, struct error *why) MUST_USE;

/* The same from memory, which must last until gguf_close; `name` is for messages. */
enum err gguf_read(const char *name, const void *bytes, size_t length, struct gguf *out,
                   struct error *why) MUST_USE;

void gguf_close(struct gguf *gguf);

/* The value of a key; NULL without. */
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key);

/* One value: false when the key is missing, is an array, or is not of a kind that fits.  An integer
 * of any width that is not negative is a u64; any number is an f64. */
bool gguf_string(const struct gguf *gguf, const char *key, struct gguf_text *out);
bool gguf_u64(const struct gguf *gguf, const char *key, uint64_t *out);
bool gguf_f64(const struct gguf *gguf, const char *key, double *out);

/* One item of an array, or with index 0 the value itself; strings have none.  An i64 may be a bool. */
bool gguf_item_u64(const struct gguf_value *value, uint64_t index, uint64_t *out);
bool gguf_item_i64(const struct gguf_value *value, uint64_t index, int64_t *out);
bool gguf_item_f64(const struct gguf_value *value, uint64_t index, double *out);

/* Walks the strings of a value: a zeroed *text becomes the first, then the next; false after the
 * last. */
bool gguf_next_string(const struct gguf_value *value, struct gguf_text *text);

/* NULL when there is none of that name. */
const struct gguf_tensor *gguf_tensor_named(const struct gguf *gguf, const char *name);

bool gguf_text_is(struct gguf_text text, const char *string);

#endif
