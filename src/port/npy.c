/* NumPy's format: a magic number, a version, the length of the header, and the header as the text of a Python dictionary,
 * {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, before the numbers. */
#include "port/npy.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"

enum { START = 8, HEADER_MAX = 4096 };
static const char MAGIC[] = "\x93NUMPY";

void npy_release(struct npy *npy)
{
    free(npy->values);
    *npy = (struct npy){0};
}

void npy_add_shape(const int64_t *shape, size_t rank, struct text *out)
{
    text_add(out, "(");
    for (size_t i = 0; i < rank; i++)
        text_addf(out, "%s%lld", i ? ", " : "", (long long)shape[i]);
    text_add(out, ")");
}

/* The text after 'key': in the header; NULL if there is none. */
static const char *find_value(const char *header, const char *key)
{
    char quoted[32];
    chars_format(quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    return at ? at + strlen(quoted) + strspn(at + strlen(quoted), " ") : NULL;
}

static enum err read_shape(const char *header, struct npy *out, struct error *why)
{
    const char *at = find_value(header, "shape");
    if (!at || *at != '(')
        return err_set(why, ERR_BAD_VALUE, "no shape in the header of a .npy file");
    at++;
    out->rank = 0;
    out->count = 1;
    while (*at != ')') {
        char *end = NULL;
        long long size = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : -1;
        if (size < 0 || size > INT32_MAX || out->rank == NPY_RANK_MAX)
            return err_set(why, ERR_BAD_VALUE, "invalid shape in the header of a .npy file");
        if (__builtin_mul_overflow(out->count, (size_t)size, &out->count))
            return err_set(why, ERR_BAD_VALUE, "the shape of a .npy file overflows");
        out->shape[out->rank++] = size;
        at = end + strspn(end, ", ");
    }
    return ERR_OK;
}

/* Bytes of an element. */
static enum err read_type(const char *header, size_t *size, struct error *why)
{
    const char *type = find_value(header, "descr");
    const char *order = find_value(header, "fortran_order");
    *size = 0;
    if (type &&
        (str_starts(type, "'<f2'") || str_starts(type, "'<f4'") || str_starts(type, "'<f8'")))
        *size = (size_t)(type[3] - '0');
    if (!*size)
        return err_set(why, ERR_UNSUPPORTED,
                       "the numbers of a .npy file must be float16, float32 or float64");
    if (!order || !str_starts(order, "False"))
        return err_set(why, ERR_UNSUPPORTED, "a .npy file must be in C order");
    return ERR_OK;
}

/* The header, as a string, and where the numbers start. */
static enum err read_header(const uint8_t *bytes, size_t length, char header[HEADER_MAX],
                            size_t *start, struct error *why)
{
    if (length < START + 4 || memcmp(bytes, MAGIC, sizeof MAGIC - 1) != 0)
        return err_set(why, ERR_BAD_VALUE, "not a .npy file");
    size_t size = bytes[8] | (size_t)bytes[9] << 8;
    *start = START + 2;
    if (bytes[6] >= 2) {
        size |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
        *start += 2;
    }
    if (size >= HEADER_MAX || size > length - *start)
        return err_set(why, ERR_BAD_VALUE, "truncated header of a .npy file");
    memcpy(header, bytes + *start, size);
    header[size] = '\0';
    *start += size;
    return ERR_OK;
}

static void convert(const uint8_t *from, size_t size, struct npy *out)
{
    for (size_t i = 0; i < out->count; i++, from += size) {
        double wide;
        uint16_t half;
        if (size == sizeof wide) {
            memcpy(&wide, from, size);
            out->values[i] = (float)wide;
        } else if (size == sizeof half) {
            memcpy(&half, from, size);
            out->values[i] = half_to_float(half);
        } else {
            memcpy(&out->values[i], from, size);
        }
    }
}

enum err npy_parse(const void *bytes, size_t length, struct npy *out, struct error *why)
{
    char header[HEADER_MAX];
    size_t start = 0, size = 0;
    *out = (struct npy){0};
    enum err err = read_header(bytes, length, header, &start, why);
    if (!err)
        err = read_type(header, &size, why);
    if (!err)
        err = read_shape(header, out, why);
    if (!err && (length - start) / size < out->count)
        err = err_set(why, ERR_BAD_VALUE, "truncated .npy file");
    if (!err) {
        out->values = xcalloc(out->count ? out->count : 1, sizeof *out->values);
        convert((const uint8_t *)bytes + start, size, out);
    }
    return err;
}

void npy_write(const float *values, const int64_t *shape, size_t rank, struct text *out)
{
    enum { ALIGNMENT = 64 };
    struct text header = {0};
    size_t count = 1;
    text_add(&header, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (size_t i = 0; i < rank; i++) {
        text_addf(&header, "%lld,%s", (long long)shape[i], i + 1 < rank ? " " : "");
        count *= (size_t)shape[i];
    }
    text_add(&header, "), }");
    while ((START + 2 + header.length + 1) % ALIGNMENT)
        text_add(&header, " ");
    text_add(&header, "\n");
    text_add_bytes(out, MAGIC, sizeof MAGIC - 1);
    text_add_bytes(
        out, (const char[]){1, 0, (char)(header.length & 0xFF), (char)(header.length >> 8)}, 4);
    text_add_bytes(out, header.bytes, header.length);
    text_add_bytes(out, (const char *)values, count * sizeof *values);
    text_release(&header);
}

enum err npy_read(const char *path, size_t limit, struct npy *out, struct error *why)
{
    struct text bytes = {0};
    struct error inner = {0};
    *out = (struct npy){0};
    enum err err = file_read(path, limit, &bytes, why);
    if (!err) {
        err = npy_parse(bytes.bytes, bytes.length, out, &inner);
        if (err)
            err = err_set(why, err, "%.200s: %s", path, inner.text);
    }
    text_release(&bytes);
    return err;
}
