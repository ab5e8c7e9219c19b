#include "graph/gguf/tensors.h"

#include <stdlib.h>

static enum err read_dimensions(struct cursor *cursor, struct gguf_tensor *out)
{
    uint32_t count;
    enum err err = cursor_u32(cursor, &count);
    if (err)
        return err;
    if (count > GGUF_MAX_DIMENSIONS)
        return cursor_fail(cursor, ERR_BAD_VALUE, "has %u dimensions, and at most %d are allowed",
                           count, GGUF_MAX_DIMENSIONS);
    out->dimension_count = count;
    out->elements = 1;
    for (unsigned i = 0; i < GGUF_MAX_DIMENSIONS; i++) {
        out->dimensions[i] = 1;
        if (i < count)
            err = cursor_u64(cursor, &out->dimensions[i]);
        if (err)
            return err;
        if (__builtin_mul_overflow(out->elements, out->dimensions[i], &out->elements))
            return cursor_fail(cursor, ERR_BAD_VALUE, "has more numbers than 64 bits can count");
    }
    return ERR_OK;
}

static enum err read_type(struct cursor *cursor, struct gguf_tensor *out)
{
    uint32_t number;
    enum err err = cursor_u32(cursor, &number);
    if (err)
        return err;
    out->type = tensor_type_numbered(number);
    if (!out->type)
        return cursor_fail(cursor, ERR_UNSUPPORTED, "is of type %u, which is not known here",
                           number);
    if (out->dimensions[0] % out->type->block_numbers)
        return cursor_fail(cursor, ERR_BAD_VALUE, "has rows of %llu numbers, and %s stores %u each",
                           (unsigned long long)out->dimensions[0], out->type->name,
                           out->type->block_numbers);
    uint64_t blocks = out->elements / out->type->block_numbers;
    if (__builtin_mul_overflow(blocks, (uint64_t)out->type->block_bytes, &out->bytes))
        return cursor_fail(cursor, ERR_BAD_VALUE, "has more bytes than 64 bits can count");
    return ERR_OK;
}

enum err tensors_read_entry(struct cursor *cursor, struct gguf_tensor *out)
{
    *out = (struct gguf_tensor){0};
    enum err err = cursor_name(cursor, &out->name);
    if (!err)
        err = read_dimensions(cursor, out);
    if (!err)
        err = read_type(cursor, out);
    if (!err)
        err = cursor_u64(cursor, &out->offset);
    return err;
}

/* Moves one tensor to its place in the file. */
static enum err place(struct cursor *cursor, struct gguf *gguf, struct gguf_tensor *tensor)
{
    uint64_t end;
    cursor->item = tensor->name;
    if (tensor->offset % gguf->alignment)
        return cursor_fail(cursor, ERR_BAD_VALUE, "lies at %llu, which is no multiple of %u",
                           (unsigned long long)tensor->offset, gguf->alignment);
    if (__builtin_add_overflow(tensor->offset, gguf->data_offset, &tensor->offset) ||
        __builtin_add_overflow(tensor->offset, tensor->bytes, &end))
        end = UINT64_MAX;
    if (end > gguf->file_bytes)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "ends at byte %llu and the file at %llu; it is cut short or damaged: "
                           "fetch it again",
                           (unsigned long long)end, (unsigned long long)gguf->file_bytes);
    return ERR_OK;
}

static int by_offset(const void *left, const void *right)
{
    const struct gguf_tensor *a = *(const struct gguf_tensor *const *)left;
    const struct gguf_tensor *b = *(const struct gguf_tensor *const *)right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

enum err tensors_place(struct cursor *cursor, struct gguf *gguf, const struct gguf_text **sorted)
{
    cursor->kind = "tensor";
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        enum err err = place(cursor, gguf, &gguf->tensors[i]);
        if (err)
            return err;
        sorted[i] = &gguf->tensors[i].name;
    }
    if (gguf->tensor_count)
        qsort(sorted, gguf->tensor_count, sizeof *sorted, by_offset);
    for (size_t i = 1; i < gguf->tensor_count; i++) {
        const struct gguf_tensor *last = (const struct gguf_tensor *)sorted[i - 1];
        const struct gguf_tensor *next = (const struct gguf_tensor *)sorted[i];
        unsigned long long begin = next->offset, end = last->offset + last->bytes;
        cursor->item = next->name;
        if (end > begin)
            return cursor_fail(cursor, ERR_BAD_VALUE,
                               "begins at byte %llu, before the one in front of it ends (%llu)",
                               begin, end);
    }
    return ERR_OK;
}
