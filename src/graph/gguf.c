/* The header is read front to back with a cursor; names are then sorted, so that keys and tensors are found by binary
 * search. */
#include "graph/gguf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/grow.h"
#include "core/text.h"
#include "graph/model_files.h"

enum {
    DEFAULT_ALIGNMENT = 32,
    LONGEST_NAME = 65535, /* the format's limit for a key */
    /* The fewest bytes of an entry: a name of one byte, a value of one byte or no dimensions. */
    VALUE_ENTRY_BYTES = 8 + 1 + 4 + 1,
    TENSOR_ENTRY_BYTES = 8 + 1 + 4 + 4 + 8,
    /* Far beyond any model, so that a damaged file cannot exhaust memory or time. */
    MAX_VALUES = 1 << 16,
    MAX_TENSORS = 1 << 18,
    MAX_ITEMS = 1 << 24,
};

/* Bytes of one value; strings and arrays have their own. */
static const unsigned char TYPE_BYTES[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_U16] = 2,  [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_U64] = 8, [GGUF_BOOL] = 1, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

/* Missing numbers are types that were withdrawn. */
static const struct tensor_type TENSOR_TYPES[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18},
};

const struct tensor_type *tensor_type_numbered(uint32_t number)
{
    for (size_t i = 0; i < sizeof TENSOR_TYPES / sizeof *TENSOR_TYPES; i++)
        if (TENSOR_TYPES[i].number == number)
            return &TENSOR_TYPES[i];
    return NULL;
}

/* ---- a cursor that never passes the end, and reports where it failed ---- */

struct cursor {
    const char *file; /* its name, for messages */
    const unsigned char *bytes;
    uint64_t size, at;
    const char *kind; /* what is being read: "key", "tensor"; NULL: the header itself */
    struct slice item;
    uint64_t number; /* the item's, from 0: identifies it until its name is known */
    struct error *why;
};

static uint64_t cursor_left(const struct cursor *cursor)
{
    return cursor->size - cursor->at;
}

/* ", key 'NAME'" or ", key 3". */
static void show_item(const struct cursor *cursor, char *to, size_t size)
{
    to[0] = '\0';
    if (cursor->kind && cursor->item.length)
        str_format(to, size, ", %s '%s'", cursor->kind, model_label(cursor->item).text);
    else if (cursor->kind)
        str_format(to, size, ", %s %llu", cursor->kind, (unsigned long long)cursor->number);
}

static enum err cursor_fail(const struct cursor *cursor, enum err code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* "FILE: byte N, key 'NAME': ...", on one line whatever bytes the name holds. */
static enum err cursor_fail(const struct cursor *cursor, enum err code, const char *format, ...)
{
    char item[128], what[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    show_item(cursor, item, sizeof item);
    return err_set(cursor->why, code, "%s: byte %llu%s: %s", cursor->file,
                   (unsigned long long)cursor->at, item, what);
}

/* Starts an item whose name is not known yet. */
static void cursor_item(struct cursor *cursor, const char *kind, uint64_t number)
{
    cursor->kind = kind;
    cursor->item = (struct slice){0};
    cursor->number = number;
}

static uint64_t little_endian(const unsigned char *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static enum err cursor_skip(struct cursor *cursor, uint64_t bytes)
{
    if (bytes > cursor_left(cursor))
        return cursor_fail(
            cursor, ERR_BAD_VALUE,
            "needs %llu bytes where %llu are left; the file is truncated or damaged: "
            "download it again",
            (unsigned long long)bytes, (unsigned long long)cursor_left(cursor));
    cursor->at += bytes;
    return ERR_OK;
}

static enum err read_little_endian(struct cursor *cursor, unsigned count, uint64_t *out)
{
    const unsigned char *from = cursor->bytes + cursor->at;
    enum err err = cursor_skip(cursor, count);
    if (!err)
        *out = little_endian(from, count);
    return err;
}

static enum err cursor_u32(struct cursor *cursor, uint32_t *out)
{
    uint64_t value = 0;
    enum err err = read_little_endian(cursor, 4, &value);
    *out = (uint32_t)value;
    return err;
}

static enum err cursor_u64(struct cursor *cursor, uint64_t *out)
{
    *out = 0;
    return read_little_endian(cursor, 8, out);
}

static enum err cursor_string(struct cursor *cursor, struct slice *out)
{
    uint64_t length;
    enum err err = cursor_u64(cursor, &length);
    if (err)
        return err;
    *out = (struct slice){(const char *)cursor->bytes + cursor->at, (size_t)length};
    return cursor_skip(cursor, length);
}

/* The string that names the item. */
static enum err cursor_name(struct cursor *cursor, struct slice *out)
{
    struct cursor before = *cursor;
    enum err err = cursor_string(cursor, out);
    if (err)
        return err;
    if (out->length == 0)
        return cursor_fail(&before, ERR_BAD_VALUE, "has no name: the file is damaged");
    if (out->length > LONGEST_NAME)
        return cursor_fail(&before, ERR_BAD_VALUE, "has a name of %llu bytes: the file is damaged",
                           (unsigned long long)out->length);
    cursor->item = *out;
    return ERR_OK;
}

/* ---- items of a value ---- */

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
    uint64_t raw = little_endian(value->data + index * bytes, bytes);
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    if (is_signed(value->type) && (raw & sign))
        raw |= ~(sign | (sign - 1)); /* sign extension */
    else if (raw > INT64_MAX)
        return false;
    memcpy(out, &raw, sizeof *out); /* two's complement */
    return true;
}

bool gguf_item_u64(const struct gguf_value *value, uint64_t index, uint64_t *out)
{
    int64_t number;
    if (value->type == GGUF_BOOL || index >= value->count)
        return false;
    if (value->type == GGUF_U64) {
        *out = little_endian(value->data + index * 8, 8);
        return true;
    }
    if (!gguf_item_i64(value, index, &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

bool gguf_next_string(const struct gguf_value *value, struct slice *string)
{
    const unsigned char *end = value->data + value->data_bytes;
    const unsigned char *at =
        string->start ? (const unsigned char *)slice_end(*string) : value->data;
    if (value->type != GGUF_STRING || at >= end)
        return false;
    *string = (struct slice){(const char *)at + 8, (size_t)little_endian(at, 8)};
    return true;
}

bool gguf_string(const struct gguf *gguf, const char *key, struct slice *out)
{
    const struct gguf_value *value = gguf_find(gguf, key);
    struct slice text = {0};
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

/* ---- sorted names, to find one without a linear search ---- */

static int compare_names(const void *left, const void *right)
{
    const struct slice *a = *(const struct slice *const *)left;
    const struct slice *b = *(const struct slice *const *)right;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->start, b->start, shorter);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* Two of the same name are an error. */
static enum err sort_names(struct cursor *cursor, const char *kind, const struct slice **names,
                           size_t count)
{
    cursor_item(cursor, kind, 0);
    if (count)
        qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++) {
        cursor->item = *names[i];
        if (compare_names(&names[i - 1], &names[i]) == 0)
            return cursor_fail(cursor, ERR_BAD_VALUE,
                               "is defined more than once: the file is damaged");
    }
    return ERR_OK;
}

static const struct slice *find_name(const struct slice **names, size_t count, const char *name)
{
    struct slice wanted = {name, strlen(name)};
    const struct slice *key = &wanted;
    const struct slice **found =
        count ? bsearch(&key, names, count, sizeof *names, compare_names) : NULL;
    return found ? *found : NULL;
}

/* A name is the first member of what it names. */
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key)
{
    return (const struct gguf_value *)find_name(gguf->keys, gguf->value_count, key);
}

const struct gguf_tensor *gguf_tensor_named(const struct gguf *gguf, const char *name)
{
    return (const struct gguf_tensor *)find_name(gguf->names, gguf->tensor_count, name);
}

/* ---- values ---- */

static enum err read_type(struct cursor *cursor, enum gguf_type *out)
{
    uint32_t number;
    enum err err = cursor_u32(cursor, &number);
    if (err)
        return err;
    *out = (enum gguf_type)number;
    if (number >= GGUF_TYPE_COUNT)
        return cursor_fail(cursor, ERR_BAD_VALUE, "has the unknown value type %u", number);
    return ERR_OK;
}

static enum err read_array_head(struct cursor *cursor, struct gguf_value *out)
{
    enum err err = read_type(cursor, &out->type);
    if (!err && out->type == GGUF_ARRAY)
        return cursor_fail(cursor, ERR_UNSUPPORTED,
                           "is an array of arrays, which is not supported");
    if (!err)
        err = cursor_u64(cursor, &out->count);
    return err;
}

/* Skips the items, which must all be inside the file. */
static enum err read_items(struct cursor *cursor, struct gguf_value *out)
{
    bool is_string = out->type == GGUF_STRING;
    uint64_t smallest = is_string ? 8 : TYPE_BYTES[out->type];
    if (out->count > MAX_ITEMS || out->count > cursor_left(cursor) / smallest)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "claims %llu items where %llu bytes are left; the file is truncated or "
                           "damaged: download it again",
                           (unsigned long long)out->count, (unsigned long long)cursor_left(cursor));
    if (!is_string)
        return cursor_skip(cursor, out->count * smallest);
    enum err err = ERR_OK;
    struct slice text;
    for (uint64_t i = 0; i < out->count && !err; i++)
        err = cursor_string(cursor, &text);
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

/* ---- tensors ---- */

static enum err read_dimensions(struct cursor *cursor, struct gguf_tensor *out)
{
    uint32_t count;
    enum err err = cursor_u32(cursor, &count);
    if (err)
        return err;
    if (count > GGUF_MAX_DIMENSIONS)
        return cursor_fail(cursor, ERR_BAD_VALUE, "has %u dimensions (limit %d)", count,
                           GGUF_MAX_DIMENSIONS);
    out->rank = count;
    out->elements = 1;
    for (unsigned i = 0; i < GGUF_MAX_DIMENSIONS; i++) {
        out->dims[i] = 1;
        if (i < count)
            err = cursor_u64(cursor, &out->dims[i]);
        if (err)
            return err;
        if (__builtin_mul_overflow(out->elements, out->dims[i], &out->elements))
            return cursor_fail(cursor, ERR_BAD_VALUE, "has more elements than 64 bits can count");
    }
    return ERR_OK;
}

static enum err read_tensor_type(struct cursor *cursor, struct gguf_tensor *out)
{
    uint32_t number;
    enum err err = cursor_u32(cursor, &number);
    if (err)
        return err;
    out->type = tensor_type_numbered(number);
    if (!out->type)
        return cursor_fail(cursor, ERR_UNSUPPORTED, "has the unknown type %u", number);
    if (out->dims[0] % out->type->block_elements)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "has rows of %llu elements, not a multiple of the %s block of %u",
                           (unsigned long long)out->dims[0], out->type->name,
                           out->type->block_elements);
    uint64_t blocks = out->elements / out->type->block_elements;
    if (__builtin_mul_overflow(blocks, (uint64_t)out->type->block_bytes, &out->bytes))
        return cursor_fail(cursor, ERR_BAD_VALUE, "has more bytes than 64 bits can count");
    return ERR_OK;
}

static enum err read_tensor(struct cursor *cursor, struct gguf_tensor *out)
{
    *out = (struct gguf_tensor){0};
    enum err err = cursor_name(cursor, &out->name);
    if (!err)
        err = read_dimensions(cursor, out);
    if (!err)
        err = read_tensor_type(cursor, out);
    if (!err)
        err = cursor_u64(cursor, &out->offset);
    return err;
}

/* Makes the offset one in the file; it is one in the data before. */
static enum err place(struct cursor *cursor, struct gguf *gguf, struct gguf_tensor *tensor)
{
    uint64_t end;
    cursor->item = tensor->name;
    if (tensor->offset % gguf->alignment)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "has the offset %llu, not a multiple of the alignment %u",
                           (unsigned long long)tensor->offset, gguf->alignment);
    if (__builtin_add_overflow(tensor->offset, gguf->data_offset, &tensor->offset) ||
        __builtin_add_overflow(tensor->offset, tensor->bytes, &end))
        end = UINT64_MAX;
    if (end > gguf->file_bytes)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "ends at byte %llu and the file at %llu; it is truncated or damaged: "
                           "download it again",
                           (unsigned long long)end, (unsigned long long)gguf->file_bytes);
    return ERR_OK;
}

static int compare_offsets(const void *left, const void *right)
{
    const struct gguf_tensor *a = *(const struct gguf_tensor *const *)left;
    const struct gguf_tensor *b = *(const struct gguf_tensor *const *)right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* No tensor may reach beyond the file or into another: `sorted` has capacity for one pointer each. */
static enum err place_tensors(struct cursor *cursor, struct gguf *gguf, const struct slice **sorted)
{
    cursor->kind = "tensor";
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        enum err err = place(cursor, gguf, &gguf->tensors[i]);
        if (err)
            return err;
        sorted[i] = &gguf->tensors[i].name;
    }
    if (gguf->tensor_count)
        qsort(sorted, gguf->tensor_count, sizeof *sorted, compare_offsets);
    for (size_t i = 1; i < gguf->tensor_count; i++) {
        const struct gguf_tensor *last = (const struct gguf_tensor *)sorted[i - 1];
        const struct gguf_tensor *next = (const struct gguf_tensor *)sorted[i];
        unsigned long long begin = next->offset, end = last->offset + last->bytes;
        cursor->item = next->name;
        if (end > begin)
            return cursor_fail(cursor, ERR_BAD_VALUE,
                               "begins at byte %llu, before the previous tensor ends (%llu)", begin,
                               end);
    }
    return ERR_OK;
}

/* ---- lists ---- */

/* Can the rest of the file hold that many entries? */
static enum err check_count(struct cursor *cursor, uint64_t count, uint64_t smallest,
                            uint64_t limit)
{
    if (count > limit || count > cursor_left(cursor) / smallest)
        return cursor_fail(cursor, ERR_BAD_VALUE,
                           "claims %llu %ss, more than %llu bytes can hold: the file is damaged",
                           (unsigned long long)count, cursor->kind,
                           (unsigned long long)cursor_left(cursor));
    return ERR_OK;
}

/* Lists grow as entries are read, so that memory is bounded by the file and not by its claims. */
static enum err read_values(struct cursor *cursor, uint64_t count, struct gguf *out)
{
    size_t capacity = 0;
    cursor_item(cursor, "key", 0);
    enum err err = check_count(cursor, count, VALUE_ENTRY_BYTES, MAX_VALUES);
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

static enum err read_tensor_list(struct cursor *cursor, uint64_t count, struct gguf *out)
{
    size_t capacity = 0;
    cursor_item(cursor, "tensor", 0);
    enum err err = check_count(cursor, count, TENSOR_ENTRY_BYTES, MAX_TENSORS);
    for (uint64_t i = 0; i < count && !err; i++) {
        void *tensors = grow(out->tensors, &capacity, out->tensor_count, sizeof *out->tensors);
        if (!tensors)
            return cursor_fail(cursor, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
        out->tensors = tensors;
        cursor_item(cursor, "tensor", i);
        err = read_tensor(cursor, &out->tensors[out->tensor_count++]);
    }
    return err;
}

/* ---- the file ---- */

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
                           "is a big-endian GGUF file, which is not supported: convert it first");
    if (out->version != 2 && out->version != 3)
        return cursor_fail(cursor, ERR_UNSUPPORTED,
                           "is a GGUF file of version %u; versions 2 and 3 are supported",
                           out->version);
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
    return sort_names(cursor, "key", gguf->keys, gguf->value_count);
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
        err = read_tensor_list(cursor, tensors, out);
    if (!err)
        err = index_values(cursor, out);
    if (!err)
        err = read_alignment(cursor, out);
    if (err)
        return err;
    uint64_t mask = out->alignment - 1;
    out->data_offset = (cursor->at + mask) & ~mask;
    err = place_tensors(cursor, out, out->names);
    return err ? err : sort_names(cursor, "tensor", out->names, out->tensor_count);
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

enum err gguf_open(const char *path, struct gguf *out, struct error *why)
{
    struct slice bytes;
    enum err err = model_file_map(path, &bytes, why);
    if (err)
        return err;
    err = gguf_read(path, bytes.start, bytes.length, out, why);
    if (err)
        munmap((void *)bytes.start, bytes.length);
    else
        out->mapping = (void *)bytes.start;
    return err;
}
