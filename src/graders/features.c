#include "graders/features.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"

/* ---- rows ---- */

void features_release(struct features *features)
{
    free(features->values);
    *features = (struct features){0};
}

enum err features_add(struct features *features, const double *row, size_t width, struct error *why)
{
    if (!features->count)
        features->width = width;
    if (width != features->width)
        return err_set(why, ERR_BAD_VALUE, "row %zu has %zu numbers, the first one %zu",
                       features->count + 1, width, features->width);
    if (width == 0 || width > FEATURES_WIDTH_MAX)
        return err_set(why, ERR_BAD_VALUE, "rows of %zu numbers: expected 1 to %d", width,
                       FEATURES_WIDTH_MAX);
    for (size_t i = 0; i < width; i++)
        if (!is_known(row[i]))
            return err_set(why, ERR_BAD_VALUE, "number %zu of row %zu is not finite", i + 1,
                           features->count + 1);
    while ((features->count + 1) * width > features->capacity)
        features->values =
            xgrow(features->values, &features->capacity, features->capacity, sizeof(double));
    memcpy(&features->values[features->count++ * width], row, width * sizeof *row);
    return ERR_OK;
}

/* ---- files ---- */

enum { FEATURES_BYTES_MAX = 1 << 30 };

/* ---- .npy: a magic number, the length of the header, the header (a Python dict), the numbers ---- */

static const char MAGIC[] = "\x93NUMPY";
enum { MAGIC_LENGTH = 6, NAME_SIZE = 4 };

struct npy {
    char type[NAME_SIZE]; /* "<f4" */
    size_t rows, width;
    const unsigned char *data;
    size_t bytes;
};

/* What follows 'KEY': in the header. */
static const char *npy_value(const char *header, const char *key)
{
    const char *found = strstr(header, key);
    found = found ? strchr(found, ':') : NULL;
    return found ? found + 1 + strspn(found + 1, " ") : "";
}

static bool read_header(char *header, struct npy *out)
{
    const char *type = npy_value(header, "'descr'");
    const char *order = npy_value(header, "'fortran_order'");
    const char *shape = npy_value(header, "'shape'");
    size_t first = 0, second = 0;
    if (sscanf(type, "'%3[<|a-z0-9]'", out->type) != 1 || !str_starts(order, "False"))
        return false;
    if (sscanf(shape, "(%zu, %zu)", &first, &second) == 2) {
        out->rows = first;
        out->width = second;
    } else if (sscanf(shape, "(%zu,)", &first) == 1 &&
               strchr(shape, ')') == strstr(shape, ",)") + 1) {
        out->rows = 1;
        out->width = first;
    } else {
        return false;
    }
    return true;
}

static enum err open_npy(const struct text *bytes, struct npy *out, struct error *why)
{
    const unsigned char *at = (const unsigned char *)bytes->bytes;
    bool is_long = bytes->length > MAGIC_LENGTH && at[MAGIC_LENGTH] > 1;
    size_t start = MAGIC_LENGTH + 2 + (is_long ? 4 : 2), length = 0;
    for (size_t i = MAGIC_LENGTH + 2; i < start && start <= bytes->length; i++)
        length |= (size_t)at[i] << 8 * (i - MAGIC_LENGTH - 2);
    if (start > bytes->length || length > bytes->length - start)
        return err_set(why, ERR_BAD_VALUE, "the header is truncated");
    char *header = xstrndup(bytes->bytes + start, length);
    bool is_read = read_header(header, out);
    free(header);
    out->data = at + start + length;
    out->bytes = bytes->length - start - length;
    return is_read ? ERR_OK
                   : err_set(why, ERR_BAD_VALUE,
                             "expected an array of one or two dimensions in C order");
}

static size_t size_of_type(const char *type)
{
    return str_equal(type, "<f8") ? 8 : str_equal(type, "<f4") ? 4 : 0;
}

static double number_at(const struct npy *npy, size_t i, size_t size)
{
    double wide;
    float narrow;
    if (size == sizeof wide) {
        memcpy(&wide, npy->data + i * size, size);
        return wide;
    }
    memcpy(&narrow, npy->data + i * size, sizeof narrow);
    return narrow;
}

static enum err read_npy(const struct text *bytes, struct features *out, struct error *why)
{
    struct npy npy = {0};
    enum err err = open_npy(bytes, &npy, why);
    if (err)
        return err;
    size_t size = size_of_type(npy.type);
    if (!size)
        return err_set(why, ERR_BAD_VALUE, "numbers of type %s: expected <f4 or <f8", npy.type);
    if (!npy.width || npy.width > FEATURES_WIDTH_MAX)
        return err_set(why, ERR_BAD_VALUE, "rows of %zu numbers: expected 1 to %d", npy.width,
                       FEATURES_WIDTH_MAX);
    if (npy.rows > npy.bytes / size / npy.width)
        return err_set(why, ERR_BAD_VALUE, "truncated: %zu bytes for %zu x %zu numbers", npy.bytes,
                       npy.rows, npy.width);
    double *row = xcalloc(npy.width, sizeof *row);
    for (size_t r = 0; r < npy.rows && !err; r++) {
        for (size_t i = 0; i < npy.width; i++)
            row[i] = number_at(&npy, r * npy.width + i, size);
        err = features_add(out, row, npy.width, why);
    }
    free(row);
    return err;
}

/* ---- CSV ---- */

/* False if one of the fields is no number. */
static bool parse_row(const struct csv_row *row, double *out)
{
    for (size_t i = 0; i < row->count; i++)
        if (parse_double(row->fields[i].start, &out[i]))
            return false;
    return true;
}

static enum err add_csv_row(const struct csv_row *row, bool is_first, struct features *out,
                            struct error *why)
{
    struct error cause = {0};
    double *numbers = xcalloc(row->count + 1, sizeof *numbers);
    enum err err = ERR_OK;
    if (parse_row(row, numbers))
        err = features_add(out, numbers, row->count, &cause);
    else if (!is_first) /* the first line may be names */
        err = err_set(&cause, ERR_BAD_VALUE, "expected numbers only");
    free(numbers);
    return err ? err_set(why, err, "line %llu: %s", (unsigned long long)row->line, cause.text)
               : ERR_OK;
}

static enum err read_csv(struct text *bytes, struct features *out, struct error *why)
{
    struct csv_reader reader;
    struct csv_row row;
    bool at_end = false;
    enum err err = ERR_OK;
    csv_reader_memory(&reader, bytes->bytes, bytes->length);
    for (bool is_first = true; !err && !at_end; is_first = false) {
        err = csv_reader_next(&reader, &row, &at_end, why);
        if (!err && !at_end)
            err = add_csv_row(&row, is_first, out, why);
    }
    csv_reader_release(&reader);
    return err;
}

enum err features_parse(struct text *bytes, struct features *out, struct error *why)
{
    bool is_npy = bytes->length > MAGIC_LENGTH && memcmp(bytes->bytes, MAGIC, MAGIC_LENGTH) == 0;
    *out = (struct features){0};
    enum err err = is_npy ? read_npy(bytes, out, why) : read_csv(bytes, out, why);
    if (!err && !out->count)
        err = err_set(why, ERR_BAD_VALUE, "no row of numbers");
    if (err)
        features_release(out);
    return err;
}

enum err features_read(const char *path, struct features *out, struct error *why)
{
    struct text bytes = {0};
    struct error cause = {0};
    *out = (struct features){0};
    enum err err = file_read(path, FEATURES_BYTES_MAX, &bytes, why);
    if (!err && !bytes.length)
        err = err_set(why, ERR_BAD_VALUE, "%s: no row of numbers", path);
    else if (!err && (err = features_parse(&bytes, out, &cause)))
        err = err_set(why, err, "%s: %s", path, cause.text);
    text_release(&bytes);
    return err;
}

/* ---- folders ---- */

static bool is_image_name(const char *name)
{
    static const char *const ENDINGS[] = {".png", ".jpg", ".jpeg"};
    size_t length = strlen(name);
    for (size_t i = 0; i < COUNT_OF(ENDINGS); i++) {
        size_t part = strlen(ENDINGS[i]);
        if (length > part && name[0] != '.' && str_equal_nocase(name + length - part, ENDINGS[i]))
            return true;
    }
    return false;
}

enum err image_folder_read(const char *path, struct image_folder *out, struct error *why)
{
    const struct dirent *entry;
    *out = (struct image_folder){0};
    DIR *dir = opendir(path);
    if (!dir)
        return err_errno(why, errno, "%.200s", plain_text(path).text);
    while ((entry = readdir(dir)))
        if (is_image_name(entry->d_name))
            *XADD(out->paths, out->count, out->capacity) = path_join(path, entry->d_name);
    closedir(dir);
    if (out->count)
        qsort(out->paths, out->count, sizeof *out->paths, compare_strings);
    return out->count ? ERR_OK : err_set(why, ERR_BAD_VALUE, "%.200s: no PNG or JPEG file", path);
}

void image_folder_release(struct image_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++)
        free(folder->paths[i]);
    free(folder->paths);
    *folder = (struct image_folder){0};
}
