/* The header is parsed front to back with a cursor; names are then sorted, so that keys and tensors are found by binary
 * search. */
#include "graph/gguf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "graph/model_files.h"

enum {
    DEFAULT_ALIGNMENT = 32,
    LONGEST_NAME = 65535, /* the format's limit for a key */
    /* Minimum size of an entry: a name of one byte, a value of one byte or no dimensions. */
    VALUE_ENTRY_BYTES = 8 + 1 + 4 + 1,
    TENSOR_ENTRY_BYTES = 8 + 1 + 4 + 4 + 8,
    /* Far above any model, so that a corrupt file cannot exhaust memory or time. */
    MAX_VALUES = 1 << 16,
    MAX_TENSORS = 1 << 18,
    MAX_ITEMS = 1 << 24,
};

/* Bytes per value; strings and arrays have their own length. */
static const unsigned char TYPE_BYTES[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_U16] = 2,  [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_U64] = 8, [GGUF_BOOL] = 1, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

/* Missing numbers are withdrawn types. */
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
    for (size_t i = 0; i < COUNT_OF(TENSOR_TYPES); i++)
        if (TENSOR_TYPES[i].number == number)
            return &TENSOR_TYPES[i];
    return NULL;
}

/* ---- a bounds-checked cursor that reports where it failed ---- */

/* The first failure is kept, and nothing is read after it: only read_all's caller checks `err`. */
struct cursor {
    const char *file; /* its name, for messages */
    const unsigned char *bytes;
    uint64_t size, at;
    const char *kind; /* current kind: "key", "tensor"; NULL: the header itself */
    struct slice item;
    uint64_t number; /* index of the item: identifies it until its name is known */
    enum err err;
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

/* "FILE: byte N, key 'NAME': ...", on one line for any name. */
PRINTF_LIKE(3, 4)
static void cursor_fail(struct cursor *cursor, enum err code, const char *format, ...)
{
    char item[128], what[200];
    va_list arguments;
    if (cursor->err)
        return;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    show_item(cursor, item, sizeof item);
    cursor->err = err_set(cursor->why, code, "%s: byte %llu%s: %s", cursor->file,
                          (unsigned long long)cursor->at, item, what);
}

/* Starts an item whose name is not known yet. */
static void cursor_item(struct cursor *cursor, const char *kind, uint64_t number)
{
    cursor->kind = kind;
    cursor->item = (struct slice){0};
    cursor->number = number;
}

static void cursor_skip(struct cursor *cursor, uint64_t bytes)
{
    if (bytes > cursor_left(cursor))
        cursor_fail(cursor, ERR_BAD_VALUE,
                    "needs %llu bytes where %llu are left; the file is truncated or damaged: "
                    "download it again",
                    (unsigned long long)bytes, (unsigned long long)cursor_left(cursor));
    if (!cursor->err)
        cursor->at += bytes;
}

/* 0 after a failure. */
static uint64_t cursor_number(struct cursor *cursor, unsigned bytes)
{
    const unsigned char *from = cursor->bytes + cursor->at;
    cursor_skip(cursor, bytes);
    return cursor->err ? 0 : model_little_endian(from, bytes);
}

static struct slice cursor_string(struct cursor *cursor)
{
    uint64_t length = cursor_number(cursor, 8);
    const char *start = (const char *)cursor->bytes + cursor->at;
    cursor_skip(cursor, length);
    return cursor->err ? (struct slice){"", 0} : (struct slice){start, (size_t)length};
}

/* The string that names the item. */
static struct slice cursor_name(struct cursor *cursor)
{
    uint64_t begin = cursor->at;
    struct slice name = cursor_string(cursor);
    if (cursor->err)
        return name;
    cursor->item = name;
    if (name.length > 0 && name.length <= LONGEST_NAME)
        return name;
    cursor->at = begin;
    cursor->item = (struct slice){0};
    if (name.length == 0)
        cursor_fail(cursor, ERR_BAD_VALUE, "has no name: the file is damaged");
    else
        cursor_fail(cursor, ERR_BAD_VALUE, "has a name of %llu bytes: the file is damaged",
                    (unsigned long long)name.length);
    return name;
}

/* ---- items of a value ---- */

/* Bytes of an integer type, 0 for others. */
static unsigned integer_bytes(enum gguf_type type)
{
    return type == GGUF_F32 || type == GGUF_F64 ? 0 : TYPE_BYTES[type];
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
    uint64_t raw = model_little_endian(value->data + index * bytes, bytes);
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
        *out = model_little_endian(value->data + index * 8, 8);
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
    *string = (struct slice){(const char *)at + 8, (size_t)model_little_endian(at, 8)};
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

/* Duplicate names are an error. */
static void sort_names(struct cursor *cursor, const char *kind, const struct slice **names,
                       size_t count)
{
    cursor_item(cursor, kind, 0);
    if (count)
        qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++) {
        cursor->item = *names[i];
        if (compare_names(&names[i - 1], &names[i]) == 0)
            cursor_fail(cursor, ERR_BAD_VALUE, "is defined more than once: the file is damaged");
    }
}

static const struct slice *find_name(const struct slice **names, size_t count, const char *name)
{
    struct slice wanted = {name, strlen(name)};
    const struct slice *key = &wanted;
    const struct slice **found =
        count ? bsearch(&key, names, count, sizeof *names, compare_names) : NULL;
    return found ? *found : NULL;
}

/* A name is the first member of its item. */
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key)
{
    return (const struct gguf_value *)find_name(gguf->keys, gguf->value_count, key);
}

const struct gguf_tensor *gguf_tensor_named(const struct gguf *gguf, const char *name)
{
    return (const struct gguf_tensor *)find_name(gguf->names, gguf->tensor_count, name);
}

/* ---- values ---- */

static enum gguf_type read_type(struct cursor *cursor)
{
    uint64_t number = cursor_number(cursor, 4);
    if (number < GGUF_TYPE_COUNT)
        return (enum gguf_type)number;
    cursor_fail(cursor, ERR_BAD_VALUE, "has the unknown value type %llu",
                (unsigned long long)number);
    return GGUF_U8;
}

/* Skips the items, which must all be inside the file. */
static void read_items(struct cursor *cursor, struct gguf_value *out)
{
    bool is_string = out->type == GGUF_STRING;
    uint64_t smallest = is_string ? 8 : TYPE_BYTES[out->type];
    if (out->count > MAX_ITEMS || out->count > cursor_left(cursor) / smallest)
        cursor_fail(cursor, ERR_BAD_VALUE,
                    "claims %llu items where %llu bytes are left; the file is truncated or "
                    "damaged: download it again",
                    (unsigned long long)out->count, (unsigned long long)cursor_left(cursor));
    if (!is_string)
        cursor_skip(cursor, out->count * smallest);
    for (uint64_t i = 0; is_string && i < out->count && !cursor->err; i++)
        cursor_string(cursor);
}

static void read_value(struct cursor *cursor, struct gguf_value *out)
{
    *out = (struct gguf_value){.key = cursor_name(cursor), .count = 1};
    out->type = read_type(cursor);
    out->is_array = out->type == GGUF_ARRAY;
    if (out->is_array) {
        out->type = read_type(cursor);
        if (out->type == GGUF_ARRAY)
            cursor_fail(cursor, ERR_UNSUPPORTED, "is an array of arrays, which is not supported");
        out->count = cursor_number(cursor, 8);
    }
    uint64_t begin = cursor->at;
    out->data = cursor->bytes + begin;
    if (!cursor->err)
        read_items(cursor, out);
    out->data_bytes = cursor->at - begin;
}

/* ---- tensors ---- */

static void read_dimensions(struct cursor *cursor, struct gguf_tensor *out)
{
    uint64_t count = cursor_number(cursor, 4);
    if (count > GGUF_MAX_DIMENSIONS)
        cursor_fail(cursor, ERR_BAD_VALUE, "has %llu dimensions (limit %d)",
                    (unsigned long long)count, GGUF_MAX_DIMENSIONS);
    out->rank = (unsigned)count;
    out->elements = 1;
    for (unsigned i = 0; i < GGUF_MAX_DIMENSIONS; i++) {
        out->dims[i] = i < count ? cursor_number(cursor, 8) : 1;
        if (__builtin_mul_overflow(out->elements, out->dims[i], &out->elements))
            cursor_fail(cursor, ERR_BAD_VALUE, "has more elements than 64 bits can count");
    }
}

static void read_tensor_type(struct cursor *cursor, struct gguf_tensor *out)
{
    uint32_t number = (uint32_t)cursor_number(cursor, 4);
    out->type = tensor_type_numbered(number);
    if (!out->type) {
        cursor_fail(cursor, ERR_UNSUPPORTED, "has the unknown type %u", number);
        return;
    }
    if (out->dims[0] % out->type->block_elements)
        cursor_fail(cursor, ERR_BAD_VALUE,
                    "has rows of %llu elements, not a multiple of the %s block of %u",
                    (unsigned long long)out->dims[0], out->type->name, out->type->block_elements);
    uint64_t blocks = out->elements / out->type->block_elements;
    if (__builtin_mul_overflow(blocks, (uint64_t)out->type->block_bytes, &out->bytes))
        cursor_fail(cursor, ERR_BAD_VALUE, "has more bytes than 64 bits can count");
}

static void read_tensor(struct cursor *cursor, struct gguf_tensor *out)
{
    *out = (struct gguf_tensor){.name = cursor_name(cursor)};
    read_dimensions(cursor, out);
    read_tensor_type(cursor, out);
    out->offset = cursor_number(cursor, 8);
}

/* Converts the offset from the data section to the file. */
static void place(struct cursor *cursor, struct gguf *gguf, struct gguf_tensor *tensor)
{
    uint64_t end;
    cursor->item = tensor->name;
    if (tensor->offset % gguf->alignment)
        cursor_fail(cursor, ERR_BAD_VALUE,
                    "has the offset %llu, not a multiple of the alignment %u",
                    (unsigned long long)tensor->offset, gguf->alignment);
    if (__builtin_add_overflow(tensor->offset, gguf->data_offset, &tensor->offset) ||
        __builtin_add_overflow(tensor->offset, tensor->bytes, &end))
        end = UINT64_MAX;
    if (end > gguf->file_bytes)
        cursor_fail(cursor, ERR_BAD_VALUE,
                    "ends at byte %llu and the file at %llu; it is truncated or damaged: "
                    "download it again",
                    (unsigned long long)end, (unsigned long long)gguf->file_bytes);
}

static int compare_offsets(const void *left, const void *right)
{
    const struct gguf_tensor *a = *(const struct gguf_tensor *const *)left;
    const struct gguf_tensor *b = *(const struct gguf_tensor *const *)right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* No tensor may extend past the end of the file or overlap another: `sorted` has capacity for one pointer each. */
static void place_tensors(struct cursor *cursor, struct gguf *gguf, const struct slice **sorted)
{
    cursor->kind = "tensor";
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        place(cursor, gguf, &gguf->tensors[i]);
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
            cursor_fail(cursor, ERR_BAD_VALUE,
                        "begins at byte %llu, before the previous tensor ends (%llu)", begin, end);
    }
}

/* ---- lists ---- */

/* Begins a list, after checking that the rest of the file can hold that many entries. */
static void begin_list(struct cursor *cursor, const char *kind, uint64_t count, uint64_t smallest,
                       uint64_t limit)
{
    cursor_item(cursor, kind, 0);
    if (count > limit || count > cursor_left(cursor) / smallest)
        cursor_fail(cursor, ERR_BAD_VALUE,
                    "claims %llu %ss, more than %llu bytes can hold: the file is damaged",
                    (unsigned long long)count, kind, (unsigned long long)cursor_left(cursor));
}

/* Lists grow as entries are read, so that memory is bounded by the file size, not by the declared count. */
static void *grow_list(struct cursor *cursor, void *items, size_t *capacity, size_t count,
                       size_t size)
{
    cursor_item(cursor, cursor->kind, count);
    return xgrow(items, capacity, count, size);
}

static void read_values(struct cursor *cursor, uint64_t count, struct gguf *out)
{
    size_t capacity = 0;
    begin_list(cursor, "key", count, VALUE_ENTRY_BYTES, MAX_VALUES);
    while (out->value_count < count && !cursor->err) {
        out->values =
            grow_list(cursor, out->values, &capacity, out->value_count, sizeof *out->values);
        if (!cursor->err)
            read_value(cursor, &out->values[out->value_count++]);
    }
}

static void read_tensor_list(struct cursor *cursor, uint64_t count, struct gguf *out)
{
    size_t capacity = 0;
    begin_list(cursor, "tensor", count, TENSOR_ENTRY_BYTES, MAX_TENSORS);
    while (out->tensor_count < count && !cursor->err) {
        out->tensors =
            grow_list(cursor, out->tensors, &capacity, out->tensor_count, sizeof *out->tensors);
        if (!cursor->err)
            read_tensor(cursor, &out->tensors[out->tensor_count++]);
    }
}

/* ---- the file ---- */

static void read_version(struct cursor *cursor, struct gguf *out)
{
    if (cursor->size < 4 || memcmp(cursor->bytes, "GGUF", 4) != 0)
        cursor_fail(cursor, ERR_BAD_VALUE, "is not a GGUF file: it does not begin with GGUF");
    cursor_skip(cursor, 4);
    out->version = (uint32_t)cursor_number(cursor, 4);
    if (out->version && (out->version & 0xffff) == 0)
        cursor_fail(cursor, ERR_UNSUPPORTED,
                    "is a big-endian GGUF file, which is not supported: convert it first");
    if (out->version != 2 && out->version != 3)
        cursor_fail(cursor, ERR_UNSUPPORTED,
                    "is a GGUF file of version %u; versions 2 and 3 are supported", out->version);
}

static void read_alignment(struct cursor *cursor, struct gguf *gguf)
{
    uint64_t alignment = DEFAULT_ALIGNMENT;
    const struct gguf_value *value = gguf_find(gguf, "general.alignment");
    if (value) {
        cursor->kind = "key";
        cursor->item = value->key;
        if (value->is_array || !gguf_item_u64(value, 0, &alignment) || alignment == 0 ||
            alignment > UINT32_MAX || (alignment & (alignment - 1)))
            cursor_fail(cursor, ERR_BAD_VALUE, "is not a power of two");
    }
    gguf->alignment = (uint32_t)alignment;
}

static void read_all(struct cursor *cursor, struct gguf *out)
{
    read_version(cursor, out);
    uint64_t tensors = cursor_number(cursor, 8), values = cursor_number(cursor, 8);
    read_values(cursor, values, out);
    read_tensor_list(cursor, tensors, out);
    if (cursor->err)
        return;
    out->keys = xreallocarray(NULL, out->value_count + 1, sizeof *out->keys);
    out->names = xreallocarray(NULL, out->tensor_count + 1, sizeof *out->names);
    for (size_t i = 0; i < out->value_count; i++)
        out->keys[i] = &out->values[i].key;
    sort_names(cursor, "key", out->keys, out->value_count);
    read_alignment(cursor, out);
    if (cursor->err)
        return;
    uint64_t mask = out->alignment - 1;
    out->data_offset = (cursor->at + mask) & ~mask;
    place_tensors(cursor, out, out->names);
    sort_names(cursor, "tensor", out->names, out->tensor_count);
}

enum err gguf_read(const char *name, const void *bytes, size_t length, struct gguf *out,
                   struct error *why)
{
    struct cursor cursor = {.file = name, .bytes = bytes, .size = length, .why = why};
    struct gguf gguf = {.file_bytes = length, .file = xstrdup(name)};
    read_all(&cursor, &gguf);
    if (cursor.err)
        gguf_close(&gguf);
    else
        *out = gguf;
    return cursor.err;
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
