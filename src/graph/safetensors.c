#include "graph/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/text.h"
#include "graph/model_files.h"
#include "port/json_read.h"

enum { LENGTH_BYTES = 8, LONGEST_HEADER = 1 << 26 };

static const struct type {
    const char *name;
    unsigned bits;
    bool is_float;
} TYPES[] = {
    {"F64", 64, true},     {"F32", 32, true},    {"F16", 16, true},     {"BF16", 16, true},
    {"F8_E4M3", 8, true},  {"F8_E5M2", 8, true}, {"F8_E8M0", 8, false}, {"F6_E2M3", 6, false},
    {"F6_E3M2", 6, false}, {"F4", 4, false},     {"I64", 64, false},    {"U64", 64, false},
    {"I32", 32, false},    {"U32", 32, false},   {"I16", 16, false},    {"U16", 16, false},
    {"I8", 8, false},      {"U8", 8, false},     {"BOOL", 8, false},    {"C64", 64, false},
};

struct reading {
    const char *file;
    uint64_t data_length; /* of all tensors, behind the header */
    struct safetensors *out;
    struct error *why;
};

static enum err no_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

/* ---- one tensor ---- */

static enum err complain(const struct reading *reading, const char *name, const char *what)
{
    return err_set(reading->why, ERR_BAD_VALUE, "%s: tensor '%s' %s", reading->file,
                   model_plain(name).text, what);
}

static const struct type *find_type(const char *name)
{
    for (size_t i = 0; name && i < sizeof TYPES / sizeof *TYPES; i++)
        if (strcmp(TYPES[i].name, name) == 0)
            return &TYPES[i];
    return NULL;
}

/* False for what is no list of sizes, or for more numbers than fit into 2^53. */
static bool read_shape(const struct jv *shape, struct safetensors_tensor *out)
{
    double elements = 1;
    if (!jv_is_array(shape) || jv_count(shape) > SAFETENSORS_MOST_DIMENSIONS)
        return false;
    for (const struct jv *item = jv_first(shape); item; item = jv_next(item)) {
        int64_t size;
        if (!jv_integer(item, &size) || size < 0)
            return false;
        out->dims[out->rank++] = (uint64_t)size;
        elements *= (double)size;
        if (elements > 9007199254740992.0)
            return false;
    }
    out->elements = (uint64_t)elements;
    return true;
}

static bool read_place(const struct jv *offsets, uint64_t data_length, uint64_t *bytes)
{
    int64_t from, to;
    if (!jv_is_array(offsets) || jv_count(offsets) != 2 || !jv_integer(jv_first(offsets), &from) ||
        !jv_integer(jv_next(jv_first(offsets)), &to))
        return false;
    if (from < 0 || to < from || (uint64_t)to > data_length)
        return false;
    *bytes = (uint64_t)(to - from);
    return true;
}

/* Adds its bytes to *sum. */
static enum err read_tensor(const struct reading *reading, const struct jv *value, uint64_t *sum)
{
    struct safetensors *out = reading->out;
    const char *name = jv_key(value);
    struct safetensors_tensor tensor = {0};
    if (!jv_is_object(value))
        return complain(reading, name, "is not described by an object");
    const struct type *type = find_type(jv_text(jv_get(value, "dtype")));
    if (!type)
        return complain(reading, name, "has a dtype that is not known");
    if (!read_shape(jv_get(value, "shape"), &tensor))
        return complain(reading, name, "has a shape that is not one");
    if (!read_place(jv_get(value, "data_offsets"), reading->data_length, &tensor.bytes))
        return complain(reading, name, "does not lie inside the file");
    if ((tensor.elements * type->bits + 7) / 8 != tensor.bytes)
        return complain(reading, name, "has other bytes than its shape needs");
    tensor.is_float = type->is_float;
    struct safetensors_tensor *tensors =
        grow(out->tensors, &out->room, out->count, sizeof *tensors);
    if (!tensors)
        return no_memory(reading->why);
    out->tensors = tensors;
    tensor.name = arena_string(&out->names, name, strlen(name));
    if (!tensor.name)
        return no_memory(reading->why);
    tensors[out->count++] = tensor;
    *sum += tensor.bytes;
    return ERR_OK;
}

/* ---- one file ---- */

static uint64_t little_endian(const char *bytes)
{
    uint64_t value = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static enum err read_header(const struct reading *reading, const struct jv *json)
{
    uint64_t bytes = 0;
    size_t before = reading->out->count;
    for (const struct jv *value = jv_first(json); value; value = jv_next(value)) {
        if (strcmp(jv_key(value), "__metadata__") == 0)
            continue;
        enum err err = read_tensor(reading, value, &bytes);
        if (err)
            return err;
    }
    if (reading->out->count == before)
        return err_set(reading->why, ERR_BAD_VALUE, "%s: holds no tensors", reading->file);
    if (bytes != reading->data_length)
        return err_set(reading->why, ERR_BAD_VALUE,
                       "%s: its tensors take %llu bytes, and %llu are behind its header",
                       reading->file, (unsigned long long)bytes,
                       (unsigned long long)reading->data_length);
    return ERR_OK;
}

enum err safetensors_read(const char *file, const char *bytes, size_t length, uint64_t file_length,
                          struct safetensors *out, struct error *why)
{
    if (length < LENGTH_BYTES)
        return err_set(why, ERR_BAD_VALUE, "%s: too short for a safetensors file", file);
    uint64_t header = little_endian(bytes);
    if (header > LONGEST_HEADER || header > length - LENGTH_BYTES || header < 2 ||
        file_length < length)
        return err_set(why, ERR_BAD_VALUE,
                       "%s: says that its header has %llu bytes, which it cannot have", file,
                       (unsigned long long)header);
    struct reading reading = {file, file_length - LENGTH_BYTES - header, out, why};
    struct jv *json;
    size_t before = out->count;
    enum err err = model_json_parse(file, bytes + LENGTH_BYTES, (size_t)header, &json, why);
    if (err)
        return err;
    err = read_header(&reading, json);
    jv_free(json);
    if (err)
        out->count = before;
    return err;
}

static enum err open_one(const char *path, struct safetensors *out, struct error *why)
{
    struct text bytes = {0};
    uint64_t file_length = 0;
    enum err err = model_file_begin(path, LENGTH_BYTES, &bytes, &file_length, why);
    uint64_t header = bytes.length == LENGTH_BYTES ? little_endian(bytes.bytes) : 0;
    text_clear(&bytes);
    size_t wanted = header <= LONGEST_HEADER ? (size_t)header + LENGTH_BYTES : LENGTH_BYTES;
    if (!err)
        err = model_file_begin(path, wanted, &bytes, &file_length, why);
    if (!err)
        err = safetensors_read(path, text_get(&bytes), bytes.length, file_length, out, why);
    text_release(&bytes);
    return err;
}

/* ---- several files ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The files of a list, each once. */
static enum err open_listed(const char *path, const char **files, size_t count,
                            struct safetensors *out, struct error *why)
{
    char beside[MODEL_PATH_MAX];
    qsort(files, count, sizeof *files, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i && strcmp(files[i], files[i - 1]) == 0)
            continue;
        if (strchr(files[i], '/') || !model_path_ends(files[i], ".safetensors"))
            return err_set(why, ERR_BAD_VALUE, "%s: names '%s', which is no file beside it", path,
                           model_plain(files[i]).text);
        if (!model_path_beside(path, files[i], beside, sizeof beside))
            return err_set(why, ERR_BAD_VALUE, "%.200s: too long for a path", path);
        enum err err = open_one(beside, out, why);
        if (err)
            return err;
    }
    return ERR_OK;
}

static enum err open_list(const char *path, const struct jv *json, struct safetensors *out,
                          struct error *why)
{
    const struct jv *map = jv_get(json, "weight_map");
    size_t count = jv_count(map), used = 0;
    if (!jv_is_object(map) || count == 0)
        return err_set(why, ERR_BAD_VALUE, "%s: 'weight_map' is missing", path);
    const char **files = malloc(count * sizeof *files);
    if (!files)
        return no_memory(why);
    enum err err = ERR_OK;
    for (const struct jv *item = jv_first(map); item && !err; item = jv_next(item)) {
        files[used] = jv_text(item);
        if (!files[used++])
            err =
                err_set(why, ERR_BAD_VALUE, "%s: 'weight_map' has what is no name of a file", path);
    }
    if (!err)
        err = open_listed(path, files, used, out, why);
    free(files);
    return err;
}

enum err safetensors_open(const char *path, struct safetensors *out, struct error *why)
{
    enum err err;
    *out = (struct safetensors){0};
    if (model_path_ends(path, ".json")) {
        struct jv *json;
        err = model_json_read(path, &json, why);
        if (err)
            return err;
        err = open_list(path, json, out, why);
        jv_free(json);
    } else {
        err = open_one(path, out, why);
    }
    if (!err)
        err = safetensors_sort(path, out, why);
    if (err)
        safetensors_release(out);
    return err;
}

/* ---- all of them ---- */

static int by_name(const void *a, const void *b)
{
    const struct safetensors_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

enum err safetensors_sort(const char *file, struct safetensors *tensors, struct error *why)
{
    if (!tensors->tensors)
        return ERR_OK;
    qsort(tensors->tensors, tensors->count, sizeof *tensors->tensors, by_name);
    for (size_t i = 1; i < tensors->count; i++)
        if (strcmp(tensors->tensors[i].name, tensors->tensors[i - 1].name) == 0)
            return err_set(why, ERR_BAD_VALUE, "%s: tensor '%s' is there twice", file,
                           model_plain(tensors->tensors[i].name).text);
    return ERR_OK;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *tensors,
                                                  const char *name)
{
    struct safetensors_tensor wanted = {.name = name};
    if (!tensors->count)
        return NULL;
    return bsearch(&wanted, tensors->tensors, tensors->count, sizeof wanted, by_name);
}

void safetensors_release(struct safetensors *tensors)
{
    free(tensors->tensors);
    arena_release(&tensors->names);
    *tensors = (struct safetensors){0};
}
