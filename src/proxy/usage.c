/* A stream has token counts only where its request asks for them: --inject-usage asks, and takes the event with them out
 * of the stream again, and the "usage": null that servers put into the others. */
#include "proxy/passage.h"

#include <string.h>

#include "wire/message.h"

enum {
    EVENT_MAX = 256 * 1024, /* longer ones have no counts, and pass as they come */
    END_MAX = 2,            /* bytes that may begin the end of an event: "\n\r" */
};

static const char OPTIONS[] = "\"stream_options\":{\"include_usage\":true}";

bool usage_inject(const char *body, size_t length, struct text *out)
{
    struct slice stream = message_member(body, length, "stream");
    struct slice options = message_member(body, length, "stream_options");
    if (!slice_is(stream, "true") || options.length)
        return false;
    /* Behind the value of "stream", which is inside the object: nothing else need be understood. */
    size_t before = (size_t)(slice_end(stream) - body);
    text_add_bytes(out, body, before);
    text_addf(out, ",%s", OPTIONS);
    text_add_bytes(out, body + before, length - before);
    return !out->failed;
}

/* The bytes of the first complete event, its empty line included; 0 without one. */
static size_t event_length(struct usage_filter *filter)
{
    const struct text *held = &filter->held;
    const char *bytes = text_get(held);
    for (size_t i = filter->scanned; i + 1 < held->length; i++) {
        if (bytes[i] != '\n')
            continue;
        if (bytes[i + 1] == '\n')
            return i + 2;
        if (bytes[i + 1] == '\r' && i + 2 < held->length && bytes[i + 2] == '\n')
            return i + 3;
    }
    filter->scanned = held->length > END_MAX ? held->length - END_MAX : 0;
    return 0;
}

static bool is_usage_event(struct slice data)
{
    struct slice choices = message_member(data.start, data.length, "choices");
    struct slice usage = message_member(data.start, data.length, "usage");
    return usage.length && usage.start[0] == '{' && choices.length >= 2 &&
           choices.start[0] == '[' &&
           slice_trim((struct slice){choices.start + 1, choices.length - 2}).length == 0;
}

/* The comma before the member, or the one after it, goes with it. */
static void add_without_null(struct slice event, struct slice data, struct text *out)
{
    struct slice usage = message_member(data.start, data.length, "usage");
    const char *start = usage.start, *end = slice_end(usage), *last = slice_end(event);
    if (!slice_is(usage, "null")) {
        text_add_bytes(out, event.start, event.length);
        return;
    }
    while (start > data.start && *start != '"')
        start--;
    start -= strlen("\"usage");
    while (start > data.start && slice_is_space(start[-1]))
        start--;
    if (start[-1] == ',')
        start--;
    else if (*end == ',')
        end++;
    text_add_bytes(out, event.start, (size_t)(start - event.start));
    text_add_bytes(out, end, (size_t)(last - end));
}

static void pass_event(struct slice event, struct text *out)
{
    struct slice data = {event.start + strlen("data:"), event.length - strlen("data:")};
    if (!slice_starts(event, "data:") || event.length < strlen("data:{}"))
        text_add_bytes(out, event.start, event.length);
    else if (!is_usage_event(slice_trim(data)))
        add_without_null(event, slice_trim(data), out);
}

static void drop(struct usage_filter *filter, size_t length)
{
    memmove(filter->held.bytes, filter->held.bytes + length, filter->held.length - length);
    filter->held.length -= length;
    filter->scanned = 0;
}

void usage_filter_feed(struct usage_filter *filter, const char *bytes, size_t length,
                       struct text *out)
{
    size_t event;
    text_add_bytes(&filter->held, bytes, length);
    while ((event = event_length(filter)) > 0) {
        if (filter->is_long)
            text_add_bytes(out, filter->held.bytes, event);
        else
            pass_event((struct slice){filter->held.bytes, event}, out);
        filter->is_long = false;
        drop(filter, event);
    }
    if (filter->held.length > (filter->is_long ? END_MAX : EVENT_MAX)) {
        size_t passes = filter->held.length - END_MAX;
        filter->is_long = true;
        text_add_bytes(out, filter->held.bytes, passes);
        drop(filter, passes);
    }
}

void usage_filter_end(struct usage_filter *filter, struct text *out)
{
    text_add_bytes(out, text_get(&filter->held), filter->held.length);
    text_release(&filter->held);
}
