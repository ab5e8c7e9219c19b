#include "graph/model_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "port/json_read.h"

/* The list of tensors of a model of 10^12 parameters has some 10 MB and a million values. */
enum { LONGEST_JSON = 1 << 26, MOST_VALUES = 1 << 22 };

/* ---- paths ---- */

bool model_path_is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool model_path_is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool model_path_ends(const char *path, const char *end)
{
    size_t length = strlen(path), wanted = strlen(end);
    return length >= wanted && str_equal_nocase(path + length - wanted, end);
}

bool model_path_beside(const char *path, const char *name, char *to, size_t size)
{
    const char *slash = strrchr(path, '/');
    if (model_path_is_directory(path))
        return str_format(to, size, "%s/%s", path, name);
    return str_format(to, size, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
}

/* The last part of the first `length` bytes, without a slash at its end. */
static void copy_last_part(const char *path, size_t length, char *to, size_t size)
{
    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t from = length;
    while (from > 0 && path[from - 1] != '/')
        from--;
    str_format(to, size, "%.*s", (int)(length - from), path + from);
}

void model_path_name(const char *path, char *to, size_t size)
{
    static const char *const COMMON[] = {"config.json", "model.safetensors",
                                         "model.safetensors.index.json"};
    copy_last_part(path, strlen(path), to, size);
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash && slash != path && i < sizeof COMMON / sizeof *COMMON; i++)
        if (strcmp(slash + 1, COMMON[i]) == 0)
            copy_last_part(path, (size_t)(slash - path), to, size);
}

struct model_plain model_plain(const char *text)
{
    struct model_plain plain = {.text = ""};
    str_copy(plain.text, sizeof plain.text, text);
    str_plain(plain.text);
    return plain;
}

/* ---- bytes ---- */

static enum err io_failed(const char *path, int number, struct error *why)
{
    return err_set(why, err_from_errno(number), "%s: %s", path, strerror(number));
}

static void add_chunks(FILE *file, size_t most, struct text *out)
{
    char chunk[4096];
    while (out->length < most && !out->failed && !feof(file) && !ferror(file)) {
        size_t left = most - out->length;
        size_t got = fread(chunk, 1, left < sizeof chunk ? left : sizeof chunk, file);
        text_add_bytes(out, chunk, got);
    }
}

enum err model_file_begin(const char *path, size_t most, struct text *out, uint64_t *length,
                          struct error *why)
{
    FILE *file = fopen(path, "re");
    struct stat status;
    if (!file)
        return io_failed(path, errno, why);
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
        fclose(file);
        return err_set(why, ERR_BAD_VALUE, "%s is not a plain file", path);
    }
    *length = (uint64_t)status.st_size;
    add_chunks(file, most, out);
    bool failed = ferror(file);
    int number = errno;
    fclose(file);
    if (failed)
        return io_failed(path, number, why);
    return out->failed ? err_set(why, ERR_NO_MEMORY, "%s: out of memory", path) : ERR_OK;
}

/* ---- JSON ---- */

/* A value takes many times its bytes in memory: so many at most are in there. */
static size_t values_at_most(const char *bytes, size_t length)
{
    size_t count = 1;
    for (size_t i = 0; i < length; i++)
        count += bytes[i] == ',' || bytes[i] == ':' || bytes[i] == '[' || bytes[i] == '{';
    return count;
}

enum err model_json_parse(const char *name, const char *bytes, size_t length, struct jv **out,
                          struct error *why)
{
    *out = NULL;
    struct error inner = {0};
    if (length > LONGEST_JSON || values_at_most(bytes, length) > MOST_VALUES)
        return err_set(why, ERR_BAD_VALUE, "%s: longer than that of any model", name);
    enum err err = jv_available(why);
    if (err)
        return err;
    err = jv_parse(bytes, length, out, &inner);
    if (err)
        return err_set(why, err, "%s: %s", name, inner.text);
    if (jv_is_object(*out))
        return ERR_OK;
    jv_free(*out);
    *out = NULL;
    return err_set(why, ERR_BAD_VALUE, "%s: is not a JSON object", name);
}

enum err model_json_read(const char *path, struct jv **out, struct error *why)
{
    struct text bytes = {0};
    uint64_t length;
    *out = NULL;
    enum err err = model_file_begin(path, (size_t)LONGEST_JSON + 1, &bytes, &length, why);
    if (!err)
        err = model_json_parse(path, text_get(&bytes), bytes.length, out, why);
    text_release(&bytes);
    return err;
}
