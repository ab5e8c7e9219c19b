#include "clients/wire/sse.h"

#include <string.h>

void sse_init(struct sse *sse, sse_take take, void *context, struct error *why)
{
    *sse = (struct sse){
        .lines = {.cr_ends = true},
        .take = take,
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
    enum err err = sse->take(sse->context, &event);
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
    return sse->data.failed ? err_set(sse->why, ERR_NO_MEMORY, "out of memory for the answer")
                            : ERR_OK;
}

static bool is_field(const char *line, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(line, name, length) == 0;
}

static enum err take_line(void *context, const char *line, size_t length, nanos t)
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
        value++; /* one space belongs to the syntax */
    size_t value_length = (size_t)(line + length - value);
    if (is_field(line, field, "data"))
        return add_data(sse, value, value_length, t);
    if (is_field(line, field, "event"))
        str_format(sse->name, sizeof sse->name, "%.*s",
                   (int)(value_length < sizeof sse->name ? value_length : sizeof sse->name - 1),
                   value);
    return ERR_OK; /* a comment, an id, a retry time, or what a later standard brings */
}

enum err sse_feed(struct sse *sse, const char *bytes, size_t length, nanos t)
{
    return lines_feed(&sse->lines, bytes, length, t, take_line, sse, sse->why);
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
    lines_release(&sse->lines);
    text_release(&sse->data);
}
