#include "port/json_read.h"

#include "core/text.h"
#include "port/file.h"

enum err jv_parse_file(const char *path, const struct text *bytes, struct jv **out,
                       struct error *why)
{
    struct error reason = {0};
    enum err err = jv_parse(text_get(bytes), bytes->length, out, &reason);
    return err ? err_set(why, err, "%.160s: %s", path, reason.text) : ERR_OK;
}

enum err jv_read(const char *path, size_t max, struct jv **out, struct error *why)
{
    struct text bytes = {0};
    *out = NULL;
    enum err err = file_read(path, max, &bytes, why);
    if (!err)
        err = jv_parse_file(path, &bytes, out, why);
    text_release(&bytes);
    return err;
}
