#include "port/json_read.h"

#include "core/text.h"
#include "port/file.h"

/* Parses what was read, unless that failed. */
static enum err parse(enum err err, const char *path, struct text *bytes, struct jv **out,
                      struct error *why)
{
    struct error reason = {0};
    *out = NULL;
    if (!err && (err = jv_parse(text_get(bytes), bytes->length, out, &reason)))
        err_set(why, err, "%.160s: %s", path, reason.text);
    text_release(bytes);
    return err;
}

enum err jv_read(const char *path, size_t max, struct jv **out, struct error *why)
{
    struct text bytes = {0};
    return parse(file_read(path, max, &bytes, why), path, &bytes, out, why);
}

enum err jv_read_take(int fd, const char *path, size_t max, struct jv **out, struct error *why)
{
    struct text bytes = {0};
    return parse(file_read_take(fd, path, max, &bytes, why), path, &bytes, out, why);
}
