#include "port/small_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

#define FILE_MAX ((size_t)1 << 20)

enum err small_file_read(const char *path, const char *what, struct text *out, struct error *why)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(why, err_from_errno(errno), "%s: %s", path, strerror(errno));
    char chunk[4096];
    while (out->length <= FILE_MAX && !out->failed && !feof(file) && !ferror(file))
        text_add_bytes(out, chunk, fread(chunk, 1, sizeof chunk, file));
    bool failed = ferror(file);
    int number = errno;
    fclose(file);
    if (failed)
        return err_set(why, err_from_errno(number), "%s: %s", path, strerror(number));
    if (out->failed)
        return err_set(why, ERR_NO_MEMORY, "%s: out of memory", path);
    if (out->length > FILE_MAX)
        return err_set(why, ERR_BAD_VALUE, "%s: too long for %s", path, what);
    return ERR_OK;
}
