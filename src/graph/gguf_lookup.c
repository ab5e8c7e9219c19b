#include <string.h>

#include "graph/gguf.h"
#include "graph/gguf/cursor.h"
#include "graph/gguf/names.h"

/* A name is the first member of what it names. */
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key)
{
    return (const struct gguf_value *)names_find(gguf->keys, gguf->value_count, key);
}

const struct gguf_tensor *gguf_tensor_named(const struct gguf *gguf, const char *name)
{
    return (const struct gguf_tensor *)names_find(gguf->names, gguf->tensor_count, name);
}

bool gguf_text_is(struct gguf_text text, const char *string)
{
    return text.length == strlen(string) && memcmp(text.bytes, string, text.length) == 0;
}

/* Bytes of an integer type, 0 for others. */
static unsigned integer_bytes(enum gguf_type type)
{
    switch (type) {
    case GGUF_U8:
    case GGUF_I8:
    case GGUF_BOOL:
        return 1;
    case GGUF_U16:
    case GGUF_I16:
        return 2;
    case GGUF_U32:
    case GGUF_I32:
        return 4;
    case GGUF_U64:
    case GGUF_I64:
        return 8;
    default:
        return 0;
    }
}

static bool is_signed(enum gguf_type type)
{
    return type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;
}

bool gguf_item_i64(const struct gguf_value *value, uint64_t index, int64_t *out)
{
    unsigned bytes = integer_bytes(value->type);
    if (bytes == 0 || index >= value->count)
        return false;
    uint64_t raw = cursor_little(value->data + index * bytes, bytes);
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    if (is_signed(value->type) && (raw & sign))
        raw |= ~(sign | (sign - 1)); /* fill what is above the sign */
    else if (raw > INT64_MAX)
        return false;
    memcpy(out, &raw, sizeof *out); /* two's complement, on every machine of ours */
    return true;
}

bool gguf_item_u64(const struct gguf_value *value, uint64_t index, uint64_t *out)
{
    int64_t number;
    if (value->type == GGUF_BOOL || index >= value->count)
        return false;
    if (value->type == GGUF_U64) {
        *out = cursor_little(value->data + index * 8, 8);
        return true;
    }
    if (!gguf_item_i64(value, index, &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

bool gguf_item_f64(const struct gguf_value *value, uint64_t index, double *out)
{
    int64_t negative;
    uint64_t positive;
    if (index >= value->count || value->type == GGUF_BOOL)
        return false;
    if (value->type == GGUF_F32) {
        uint32_t raw = (uint32_t)cursor_little(value->data + index * 4, 4);
        float number;
        memcpy(&number, &raw, sizeof number);
        *out = (double)number;
    } else if (value->type == GGUF_F64) {
        uint64_t raw = cursor_little(value->data + index * 8, 8);
        memcpy(out, &raw, sizeof *out);
    } else if (gguf_item_u64(value, index, &positive)) {
        *out = (double)positive;
    } else if (gguf_item_i64(value, index, &negative)) {
        *out = (double)negative;
    } else {
        return false;
    }
    return true;
}

bool gguf_next_string(const struct gguf_value *value, struct gguf_text *text)
{
    const unsigned char *end = value->data + value->data_bytes;
    const unsigned char *at =
        text->bytes ? (const unsigned char *)text->bytes + text->length : value->data;
    if (value->type != GGUF_STRING || at >= end)
        return false;
    *text = (struct gguf_text){(const char *)at + 8, (size_t)cursor_little(at, 8)};
    return true;
}

bool gguf_string(const struct gguf *gguf, const char *key, struct gguf_text *out)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    struct gguf_text text = {0};
    if (!value || value->is_array || !gguf_next_string(value, &text))
        return false;
    *out = text;
    return true;
}

bool gguf_u64(const struct gguf *gguf, const char *key, uint64_t *out)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    return value && !value->is_array && gguf_item_u64(value, 0, out);
}

bool gguf_f64(const struct gguf *gguf, const char *key, double *out)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    return value && !value->is_array && gguf_item_f64(value, 0, out);
}
