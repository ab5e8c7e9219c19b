#define _GNU_SOURCE
#include "graph/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/grow.h"
#include "graph/gguf/cursor.h"
#include "graph/gguf/names.h"
#include "graph/gguf/tensors.h"

enum {
    DEFAULT_ALIGNMENT = 32,
    VALUE_ENTRY_BYTES = 8 + 1 + 4 + 1, /* the fewest: a key of one byte, a value of one */
    /* Far beyond any model, and little memory and time: a huge file of rubbish must not fill the
     * machine or keep it busy. */
    MOST_VALUES = 1 << 16,
    MOST_TENSORS = 1 << 18,
    MOST_ITEMS = 1 << 24,
};

/* Bytes of one value; strings and arrays have their own. */
static const unsigned char TYPE_BYTES[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_U16] = 2,  [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_U64] = 8, [GGUF_BOOL] = 1, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

/* ---- values ---- */

static enum err read_type(struct cursor *cursor, enum gguf_type *out)
{
    uint32_t number;
    enum err err = cursor_u32(cursor, &number);
    if (err)
        return err;
    *out = (enum gguf_type)number;
    if (number >= GGUF_TYPE_COUNT)
        return cursor_fail(cursor, ERR_BAD_VALUE, "has a value of type %u, which does not exist",
                           number);
    return ERR_OK;
}

static enum err read_array_head(struct cursor *cursor, struct gguf_value *out)
{
    enum err err = read_type(cursor, &out->type);
    if (!err && out->type == GGUF_ARRAY)
        return cursor_fail(cursor, ERR_UNSUPPORTED, "is an array of arrays, which is not read");
    if (!err)
        err = cursor_u64(cursor, &out->count);
    return err;
}

/* Steps over the items, all of which must be there. */
static enum err read_items(struct cursor *cursor, struct gguf_value *out)
{
    bool is_string = out->type == GGUF_STRING;
    uint64_t smallest = is_string ? 8 : TYPE_BYTES[out->type];
    if (out->count > MOST_ITEMS || out->count > cursor_left(cursor) / smallest)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "claims %llu items and %llu bytes are left; the file is cut short or "
                           "damaged: fetch it again",
                           (unsigned long long)out->count, (unsigned long long)cursor_left(cursor));
    if (!is_string)
        return cursor_skip(cursor, out->count * smallest);
    enum err err = ERR_OK;
    struct gguf_text text;
    for (uint64_t i = 0; i < out->count && !err; i++)
        err = cursor_text(cursor, &text);
    return err;
}

static enum err read_value(struct cursor *cursor, struct gguf_value *out)
{
    *out = (struct gguf_value){.count = 1};
    enum err err = cursor_name(cursor, &out->key);
    if (!err)
        err = read_type(cursor, &out->type);
    if (!err && out->type == GGUF_ARRAY) {
        out->is_array = true;
        err = read_array_head(cursor, out);
    }
    uint64_t begin = cursor->at;
    out->data = cursor->bytes + begin;
    if (!err)
        err = read_items(cursor, out);
    out->data_bytes = cursor->at - begin;
    return err;
}

/* ---- lists ---- */

/* Is there room in the file for what it claims? */
static enum err check_count(struct cursor *cursor, uint64_t count, uint64_t smallest, uint64_t most)
{
    if (count > most || count > cursor_left(cursor) / smallest)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "claims %llu %ss, more than %llu bytes can hold: the file is damaged",
                           (unsigned long long)count, cursor->kind,
                           (unsigned long long)cursor_left(cursor));
    return ERR_OK;
}

/* Lists grow as entries are read, so that memory follows the file and not its claims. */
static enum err read_values(struct cursor *cursor, uint64_t count, struct gguf *out)
{
    size_t capacity = 0;
    cursor_item(cursor, "key", 0);
    enum err err = check_count(cursor, count, VALUE_ENTRY_BYTES, MOST_VALUES);
    for (uint64_t i = 0; i < count && !err; i++) {
        void *values = grow(out->values, &capacity, out->value_count, sizeof *out->values);
        if (!values)
            return cursor_fail(cursor, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
        out->values = values;
        cursor_item(cursor, "key", i);
        err = read_value(cursor, &out->values[out->value_count++]);
    }
    return err;
}

static enum err read_tensors(struct cursor *cursor, uint64_t count, struct gguf *out)
{
    size_t capacity = 0;
    cursor_item(cursor, "tensor", 0);
    enum err err = check_count(cursor, count, TENSOR_ENTRY_BYTES, MOST_TENSORS);
    for (uint64_t i = 0; i < count && !err; i++) {
        void *tensors = grow(out->tensors, &capacity, out->tensor_count, sizeof *out->tensors);
        if (!tensors)
            return cursor_fail(cursor, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
        out->tensors = tensors;
        cursor_item(cursor, "tensor", i);
        err = tensors_read_entry(cursor, &out->tensors[out->tensor_count++]);
    }
    return err;
}

/* ---- the whole ---- */

static enum err read_version(struct cursor *cursor, struct gguf *out)
{
    if (cursor->size < 4 || memcmp(cursor->bytes, "GGUF", 4) != 0)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "is not a GGUF file: it does not begin with GGUF");
    cursor->at = 4;
    enum err err = cursor_u32(cursor, &out->version);
    if (err)
        return err;
    if (out->version && (out->version & 0xffff) == 0)
        return cursor_fail(cursor, ERR_UNSUPPORTED,
                           "is a big-endian GGUF file, which is not read: convert it first");
    if (out->version != 2 && out->version != 3)
        return cursor_fail(cursor, ERR_UNSUPPORTED,
                           "is a GGUF file of version %u; versions 2 and 3 are read", out->version);
    return ERR_OK;
}

static enum err read_alignment(struct cursor *cursor, struct gguf *gguf)
{
    uint64_t alignment = DEFAULT_ALIGNMENT;
    const struct gguf_value *value = gguf_find(gguf, "general.alignment");
    if (value) {
        cursor->kind = "key";
        cursor->item = value->key;
        if (value->is_array || !gguf_item_u64(value, 0, &alignment) || alignment == 0 ||
            alignment > UINT32_MAX || (alignment & (alignment - 1)))
            return cursor_fail(cursor, ERR_BAD_VALUE, "is not a power of two");
    }
    gguf->alignment = (uint32_t)alignment;
    return ERR_OK;
}

static enum err index_values(struct cursor *cursor, struct gguf *gguf)
{
    gguf->keys = malloc((gguf->value_count + 1) * sizeof *gguf->keys);
    gguf->names = malloc((gguf->tensor_count + 1) * sizeof *gguf->names);
    if (!gguf->keys || !gguf->names)
        return cursor_fail(cursor, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    for (size_t i = 0; i < gguf->value_count; i++)
        gguf->keys[i] = &gguf->values[i].key;
    return names_sort(cursor, "key", gguf->keys, gguf->value_count);
}

static enum err read_all(struct cursor *cursor, struct gguf *out)
{
    uint64_t tensors = 0, values = 0;
    enum err err = read_version(cursor, out);
    if (!err)
        err = cursor_u64(cursor, &tensors);
    if (!err)
        err = cursor_u64(cursor, &values);
    if (!err)
        err = read_values(cursor, values, out);
    if (!err)
        err = read_tensors(cursor, tensors, out);
    if (!err)
        err = index_values(cursor, out);
    if (!err)
        err = read_alignment(cursor, out);
    if (err)
        return err;
    uint64_t mask = out->alignment - 1;
    out->data_offset = (cursor->at + mask) & ~mask;
    err = tensors_place(cursor, out, out->names);
    return err ? err : names_sort(cursor, "tensor", out->names, out->tensor_count);
}

enum err gguf_read(const char *name, const void *bytes, size_t length, struct gguf *out,
                   struct error *why)
{
    struct cursor cursor = {.file = name, .bytes = bytes, .size = length, .why = why};
    struct gguf gguf = {.file_bytes = length, .file = strdup(name)};
    enum err err = gguf.file ? read_all(&cursor, &gguf)
                             : err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    if (err)
        gguf_close(&gguf);
    else
        *out = gguf;
    return err;
}

void gguf_close(struct gguf *gguf)
{
    if (gguf->mapping)
        munmap(gguf->mapping, gguf->file_bytes);
    free(gguf->file);
    free(gguf->values);
    free(gguf->tensors);
    free(gguf->keys);
    free(gguf->names);
    *gguf = (struct gguf){0};
}

static enum err map_file(const char *path, int file, void **out, size_t *length, struct error *why)
{
    struct stat status;
    if (fstat(file, &status))
        return err_set(why, err_from_errno(errno), "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return err_set(why, ERR_BAD_VALUE, "%s is not a file", path);
    if (status.st_size == 0)
        return err_set(why, ERR_BAD_VALUE, "%s is empty", path);
    *length = (size_t)status.st_size;
    *out = mmap(NULL, *length, PROT_READ, MAP_PRIVATE, file, 0);
    if (*out == MAP_FAILED)
        return err_set(why, err_from_errno(errno), "cannot map %s: %s", path, strerror(errno));
    return ERR_OK;
}

enum err gguf_open(const char *path, struct gguf *out, struct error *why)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return err_set(why, err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    void *mapping = NULL;
    size_t length = 0;
    enum err err = map_file(path, file, &mapping, &length, why);
    close(file);
    if (err)
        return err;
    err = gguf_read(path, mapping, length, out, why);
    if (err)
        munmap(mapping, length);
    else
        out->mapping = mapping;
    return err;
}
