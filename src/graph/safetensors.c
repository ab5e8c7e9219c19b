#include "graph/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/grow.h"
#include "core/text.h"
#include "graph/model_files.h"
#include "port/file.h"
#include "port/json_read.h"

enum { LENGTH_BYTES = 8, LONGEST_HEADER = 1 << 26 };

static const struct dtype {
    const char *name;
    unsigned bits;
    bool is_float;
} DTYPES[] = {
    {"F64", 64, true},     {"F32", 32, true},    {"F16", 16, true},     {"BF16", 16, true},
    {"F8_E4M3", 8, true},  {"F8_E5M2", 8, true}, {"F8_E8M0", 8, false}, {"F6_E2M3", 6, false},
    {"F6_E3M2", 6, false}, {"F4", 4, false},     {"I64", 64, false},    {"U64", 64, false},
    {"I32", 32, false},    {"U32", 32, false},   {"I16", 16, false},    {"U16", 16, false},
    {"I8", 8, false},      {"U8", 8, false},     {"BOOL", 8, false},    {"C64", 64, false},
};

struct reading {
    const char *file;
    uint64_t data_length; /* of all tensors, after the header */
    struct safetensors *out;
    struct error *why;
};

static enum err no_memory(struct error *why)
{
    return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
}

/* ---- one tensor ---- */

static enum err tensor_failed(const struct reading *reading, const char *name, const char *what)
{
    return err_set(reading->why, ERR_BAD_VALUE, "%s: tensor '%s' %s", reading->file,
                   model_label(slice_of(name)).text, what);
}

static const struct dtype *find_dtype(const char *name)
{
    for (size_t i = 0; name && i < sizeof DTYPES / sizeof *DTYPES; i++)
        if (strcmp(DTYPES[i].name, name) == 0)
            return &DTYPES[i];
    return NULL;
}

/* False for anything but a list of sizes, and for more than 2^53 elements. */
static bool read_shape(const struct jv *shape, struct safetensors_tensor *out)
{
    double elements = 1;
    if (!jv_is_array(shape) || jv_count(shape) > SAFETENSORS_MAX_RANK)
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

static bool read_offsets(const struct jv *offsets, uint64_t data_length, uint64_t *bytes)
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
        return tensor_failed(reading, name, "is not an object");
    const struct dtype *dtype = find_dtype(jv_text(jv_get(value, "dtype")));
    if (!dtype)
        return tensor_failed(reading, name, "has an unknown dtype");
    if (!read_shape(jv_get(value, "shape"), &tensor))
        return tensor_failed(reading, name, "has an invalid shape");
    if (!read_offsets(jv_get(value, "data_offsets"), reading->data_length, &tensor.bytes))
        return tensor_failed(reading, name, "is not inside the file");
    if ((tensor.elements * dtype->bits + 7) / 8 != tensor.bytes)
        return tensor_failed(reading, name, "has a size that contradicts its shape");
    tensor.is_float = dtype->is_float;
    struct safetensors_tensor *tensors =
        grow(out->tensors, &out->capacity, out->count, sizeof *tensors);
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
        return err_set(reading->why, ERR_BAD_VALUE, "%s: no tensors found", reading->file);
    if (bytes != reading->data_length)
        return err_set(reading->why, ERR_BAD_VALUE,
                       "%s: its tensors take %llu bytes, the file has %llu after its header",
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
        return err_set(why, ERR_BAD_VALUE, "%s: invalid header length %llu", file,
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
    struct slice bytes;
    enum err err = model_file_map(path, &bytes, why);
    if (err)
        return err;
    err = safetensors_read(path, bytes.start, bytes.length, bytes.length, out, why);
    munmap((void *)bytes.start, bytes.length);
    return err;
}

/* ---- several files ---- */

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each file once. */
static enum err open_files(const char *path, const char **files, size_t count,
                           struct safetensors *out, struct error *why)
{
    char beside[FILE_PATH_MAX];
    qsort(files, count, sizeof *files, compare_strings);
    for (size_t i = 0; i < count; i++) {
        if (i && strcmp(files[i], files[i - 1]) == 0)
            continue;
        if (strchr(files[i], '/') || !model_path_ends(files[i], ".safetensors"))
            return err_set(why, ERR_BAD_VALUE, "%s: weight_map entry '%s' is not a file beside it",
                           path, model_label(slice_of(files[i])).text);
        if (!model_path_beside(path, files[i], beside, sizeof beside))
            return err_set(why, ERR_BAD_VALUE, "%.200s: path too long", path);
        enum err err = open_one(beside, out, why);
        if (err)
            return err;
    }
    return ERR_OK;
}

static enum err open_index(const char *path, const struct jv *json, struct safetensors *out,
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
            err = err_set(why, ERR_BAD_VALUE, "%s: weight_map entry is not a file name", path);
    }
    if (!err)
        err = open_files(path, files, used, out, why);
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
        err = open_index(path, json, out, why);
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

static int compare_names(const void *a, const void *b)
{
    const struct safetensors_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

enum err safetensors_sort(const char *file, struct safetensors *tensors, struct error *why)
{
    if (!tensors->tensors)
        return ERR_OK;
    qsort(tensors->tensors, tensors->count, sizeof *tensors->tensors, compare_names);
    for (size_t i = 1; i < tensors->count; i++)
        if (strcmp(tensors->tensors[i].name, tensors->tensors[i - 1].name) == 0)
            return err_set(why, ERR_BAD_VALUE, "%s: tensor '%s' is defined more than once", file,
                           model_label(slice_of(tensors->tensors[i].name)).text);
    return ERR_OK;
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *tensors,
                                                  const char *name)
{
    struct safetensors_tensor wanted = {.name = name};
    if (!tensors->count)
        return NULL;
    return bsearch(&wanted, tensors->tensors, tensors->count, sizeof wanted, compare_names);
}

void safetensors_release(struct safetensors *tensors)
{
    free(tensors->tensors);
    arena_release(&tensors->names);
    *tensors = (struct safetensors){0};
}
