#include "clients/wire/lines.h"

#include <string.h>

/* Where the line that begins at bytes ends; length when it does not end here. */
static size_t find_end(const struct lines *lines, const char *bytes, size_t length)
{
    const char *lf = memchr(bytes, '\n', length);
    size_t end = lf ? (size_t)(lf - bytes) : length;
    const char *cr = lines->cr_ends ? memchr(bytes, '\r', end) : NULL;
    return cr ? (size_t)(cr - bytes) : end;
}

static enum err hold(struct lines *lines, const char *bytes, size_t length, struct error *why)
{
    if (length > LINE_LIMIT - lines->held.length)
        return err_set(why, ERR_BAD_VALUE, "the server sent a line of more than %d MiB",
                       LINE_LIMIT >> 20);
    text_add_bytes(&lines->held, bytes, length);
    return lines->held.failed ? err_set(why, ERR_NO_MEMORY, "out of memory for the answer")
                              : ERR_OK;
}

static enum err give(struct lines *lines, const char *bytes, size_t length, nanos t, line_take take,
                     void *context, struct error *why)
{
    bool is_held = lines->held.length > 0;
    if (is_held || length > LINE_LIMIT) {
        enum err err = hold(lines, bytes, length, why);
        if (err)
            return err;
        bytes = lines->held.bytes;
        length = lines->held.length;
    }
    if (!lines->cr_ends && length > 0 && bytes[length - 1] == '\r')
        length--;
    enum err err = take(context, bytes, length, t);
    text_clear(&lines->held);
    return err;
}

enum err lines_feed(struct lines *lines, const char *bytes, size_t length, nanos t, line_take take,
                    void *context, struct error *why)
{
    while (length > 0) {
        if (lines->after_cr) {
            lines->after_cr = false;
            if (*bytes == '\n') {
                bytes++;
                length--;
                continue;
            }
        }
        size_t end = find_end(lines, bytes, length);
        if (end == length)
            return hold(lines, bytes, length, why);
        lines->after_cr = bytes[end] == '\r';
        enum err err = give(lines, bytes, end, t, take, context, why);
        if (err)
            return err;
        bytes += end + 1;
        length -= end + 1;
    }
    return ERR_OK;
}

void lines_release(struct lines *lines)
{
    text_release(&lines->held);
}
