/* Lines and server-sent events.  The line reader copies only lines that span two chunks; the event parser on top of it
 * follows the WHATWG rules for fields, with size limits against a misbehaving server. */
#include "wire/sse.h"

#include <string.h>

/* ---- lines ---- */

/* End of the line at bytes; length if it does not end in this chunk. */
static size_t find_end(const struct line_reader *reader, const char *bytes, size_t length)
{
    const char *lf = memchr(bytes, '\n', length);
    size_t end = lf ? (size_t)(lf - bytes) : length;
    const char *cr = reader->cr_ends ? memchr(bytes, '\r', end) : NULL;
    return cr ? (size_t)(cr - bytes) : end;
}

static enum err hold(struct line_reader *reader, const char *bytes, size_t length,
                     struct error *why)
{
    if (length > LINE_LIMIT - reader->held.length)
        return err_set(why, ERR_BAD_VALUE, "the server sent a line of more than %d MiB",
                       LINE_LIMIT >> 20);
    text_add_bytes(&reader->held, bytes, length);
    return ERR_OK;
}

static enum err deliver(struct line_reader *reader, const char *bytes, size_t length, nanos t,
                        line_handler handle, void *context, struct error *why)
{
    bool is_held = reader->held.length > 0;
    if (is_held || length > LINE_LIMIT) {
        enum err err = hold(reader, bytes, length, why);
        if (err)
            return err;
        bytes = reader->held.bytes;
        length = reader->held.length;
    }
    if (!reader->cr_ends && length > 0 && bytes[length - 1] == '\r')
        length--;
    enum err err = handle(context, bytes, length, t);
    text_clear(&reader->held);
    return err;
}

enum err line_reader_feed(struct line_reader *reader, const char *bytes, size_t length, nanos t,
                          line_handler handle, void *context, struct error *why)
{
    while (length > 0) {
        if (reader->after_cr) {
            reader->after_cr = false;
            if (*bytes == '\n') {
                bytes++;
                length--;
                continue;
            }
        }
        size_t end = find_end(reader, bytes, length);
        if (end == length)
            return hold(reader, bytes, length, why);
        reader->after_cr = bytes[end] == '\r';
        enum err err = deliver(reader, bytes, end, t, handle, context, why);
        if (err)
            return err;
        bytes += end + 1;
        length -= end + 1;
    }
    return ERR_OK;
}

void line_reader_release(struct line_reader *reader)
{
    text_release(&reader->held);
}

/* ---- events ---- */

void sse_init(struct sse *sse, sse_handler handle, void *context, struct error *why)
{
    *sse = (struct sse){
        .lines = {.cr_ends = true},
        .handle = handle,
        .context = context,
        .why = why,
    };
}

static enum err dispatch(struct sse *sse)
{
    if (!sse->has_data) {
        sse->name[0] = '\0';
        return ERR_OK;
    }
    const struct sse_event event = {
        .name = sse->name,
        .data = text_get(&sse->data),
        .length = sse->data.length,
        .t = sse->data_at,
    };
    enum err err = sse->handle(sse->context, &event);
    text_clear(&sse->data);
    sse->has_data = false;
    sse->name[0] = '\0';
    return err;
}

static enum err add_data(struct sse *sse, const char *value, size_t length, nanos t)
{
    if (sse->data.length + length + 1 > LINE_LIMIT)
        return err_set(sse->why, ERR_BAD_VALUE, "the server sent an event of more than %d MiB",
                       LINE_LIMIT >> 20);
    if (sse->has_data)
        text_add(&sse->data, "\n");
    text_add_bytes(&sse->data, value, length);
    sse->has_data = true;
    sse->data_at = t;
    return ERR_OK;
}

static bool is_field(const char *line, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(line, name, length) == 0;
}

static enum err handle_line(void *context, const char *line, size_t length, nanos t)
{
    struct sse *sse = context;
    if (!sse->has_begun && length >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
        line += 3;
        length -= 3;
    }
    sse->has_begun = true;
    if (length == 0)
        return dispatch(sse);
    const char *colon = memchr(line, ':', length);
    size_t field = colon ? (size_t)(colon - line) : length;
    const char *value = colon ? colon + 1 : line + length;
    if (colon && value < line + length && *value == ' ')
        value++; /* one space is part of the syntax */
    size_t value_length = (size_t)(line + length - value);
    if (is_field(line, field, "data"))
        return add_data(sse, value, value_length, t);
    if (is_field(line, field, "event"))
        chars_format(sse->name, "%.*s",
                     (int)(value_length < sizeof sse->name ? value_length : sizeof sse->name - 1),
                     value);
    return ERR_OK; /* a comment, an id, a retry time, or an unknown field */
}

enum err sse_feed(struct sse *sse, const char *bytes, size_t length, nanos t)
{
    return line_reader_feed(&sse->lines, bytes, length, t, handle_line, sse, sse->why);
}

enum err sse_end(struct sse *sse, nanos t)
{
    enum err err = ERR_OK;
    if (sse->lines.held.length > 0)
        err = sse_feed(sse, "\n", 1, t);
    return err ? err : dispatch(sse);
}

void sse_release(struct sse *sse)
{
    line_reader_release(&sse->lines);
    text_release(&sse->data);
}
