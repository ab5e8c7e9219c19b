/* Helpers for the readers of model files. */
#define _GNU_SOURCE
#include "graph/model_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"

/* The tensor list of a model with 10^12 parameters has some 10 MB and a million values. */
enum { LONGEST_JSON = 1 << 26, MAX_VALUES = 1 << 22 };

/* ---- paths ---- */

bool model_path_ends(const char *path, const char *end)
{
    size_t length = strlen(path), wanted = strlen(end);
    return length >= wanted && str_equal_nocase(path + length - wanted, end);
}

char *model_path_sibling(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (file_is_directory(path))
        return path_join(path, name);
    return xformat("%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
}

char *model_find_sibling(const char *path, const char *name)
{
    char *sibling = model_path_sibling(path, name);
    if (file_is_regular(sibling))
        return sibling;
    free(sibling);
    return NULL;
}

void model_path_name(const char *path, char *to, size_t size)
{
    static const char *const GENERIC[] = {"config.json", "model.safetensors",
                                          "model.safetensors.index.json"};
    struct slice name = slice_path_name(slice_of(path));
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash && slash != path && i < COUNT_OF(GENERIC); i++)
        if (str_equal(slash + 1, GENERIC[i]))
            name = slice_path_name(slice_between(path, slash));
    str_format(to, size, "%.*s", (int)name.length, name.start);
}

/* ---- names ---- */

void model_copy_plain(struct slice from, char *to, size_t size)
{
    size_t length = from.length < size - 1 ? from.length : size - 1;
    for (size_t i = 0; i < length; i++)
        to[i] = (char)(from.start[i] ? from.start[i] : '?');
    to[length] = '\0';
    str_plain(to, size);
}

struct model_label model_label(struct slice name)
{
    struct model_label label = {0};
    model_copy_plain(name, label.text, sizeof label.text);
    return label;
}

/* ---- mapped files ---- */

static enum err map(const char *path, int fd, struct slice *out, struct error *why)
{
    struct stat status;
    if (fstat(fd, &status))
        return err_set(why, err_from_errno(errno), "cannot read %.160s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return err_set(why, ERR_BAD_VALUE, "%.160s is not a regular file", path);
    if (status.st_size == 0)
        return err_set(why, ERR_BAD_VALUE, "%.160s is empty", path);
    void *mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED)
        return err_set(why, err_from_errno(errno), "cannot map %.160s: %s", path, strerror(errno));
    *out = (struct slice){mapping, (size_t)status.st_size};
    return ERR_OK;
}

enum err model_file_map(const char *path, struct slice *out, struct error *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(why, err_from_errno(errno), "cannot open %.160s: %s", path, strerror(errno));
    enum err err = map(path, fd, out, why);
    close(fd);
    return err;
}

/* ---- JSON ---- */

/* An upper bound: a parsed value takes many times its bytes in memory. */
static size_t max_values(const char *bytes, size_t length)
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
    if (length > LONGEST_JSON || max_values(bytes, length) > MAX_VALUES)
        return err_set(why, ERR_BAD_VALUE, "%s: longer than the JSON of any model", name);
    enum err err = jv_parse(bytes, length, out, &inner);
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
    *out = NULL;
    if (file_exists(path) && !file_is_regular(path))
        return err_set(why, ERR_BAD_VALUE, "%.160s is not a regular file", path);
    enum err err = file_read(path, LONGEST_JSON, &bytes, why);
    if (!err)
        err = model_json_parse(path, text_get(&bytes), bytes.length, out, why);
    text_release(&bytes);
    return err;
}
