/* A token may end within a character, and a stop string may span tokens.  Bytes are held back exactly as long as they
 * could be a prefix of either. */
#include "engine/engine.h"

#include <string.h>

#include "core/text.h"

/* Whether these last bytes, fewer than four, may be the start of a character. */
static bool is_unfinished(const char *bytes, size_t left)
{
    unsigned char lead = (unsigned char)bytes[0];
    size_t length = lead >= 0xf0 && lead <= 0xf4 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    if (lead > 0xf4 || length == 0 || left >= length)
        return false;
    for (size_t i = 1; i < left; i++)
        if (!utf8_is_continuation(bytes[i]))
            return false;
    return true;
}

/* Appends `length` held bytes to the text as complete characters, and returns the number used: an incomplete character
 * at the end stays, unless this is the last call. */
static size_t pass_characters(struct stop_filter *filter, size_t length, bool is_last)
{
    size_t at = 0;
    while (at < length) {
        const char *bytes = filter->held.bytes + at;
        size_t left = filter->held.length - at;
        size_t character = utf8_length(bytes, left);
        if (character == 0 && !is_last && is_unfinished(bytes, left))
            break;
        if (character > 0)
            text_add_bytes(&filter->text, bytes, character);
        else
            text_add(&filter->text, "\xEF\xBF\xBD");
        at += character ? character : 1;
    }
    return at;
}

/* Where the first stop string begins; the held length when there is none. */
static size_t find_stop(const struct stop_filter *filter)
{
    size_t first = filter->held.length;
    for (char *const *stop = filter->stops; stop && *stop; stop++) {
        const char *found = strstr(text_get(&filter->held), *stop);
        if (found && (size_t)(found - filter->held.bytes) < first)
            first = (size_t)(found - filter->held.bytes);
    }
    return first;
}

/* Start of a suffix that is a prefix of a stop string; the held length if there is none. */
static size_t find_stop_prefix(const struct stop_filter *filter)
{
    size_t length = filter->held.length;
    for (size_t at = 0; at < length; at++)
        for (char *const *stop = filter->stops; stop && *stop; stop++)
            if (strncmp(filter->held.bytes + at, *stop, length - at) == 0)
                return at;
    return length;
}

static void drop(struct text *text, size_t length)
{
    if (length == 0)
        return;
    memmove(text->bytes, text->bytes + length, text->length - length);
    text->length -= length;
    text->bytes[text->length] = '\0';
}

void stop_filter_add(struct stop_filter *filter, const char *bytes, size_t length)
{
    text_add_bytes(&filter->held, bytes, length);
    size_t stop = find_stop(filter);
    filter->has_stopped = stop < filter->held.length;
    size_t limit = filter->has_stopped ? stop : find_stop_prefix(filter);
    drop(&filter->held, pass_characters(filter, limit, filter->has_stopped));
}

void stop_filter_end(struct stop_filter *filter)
{
    if (!filter->has_stopped)
        pass_characters(filter, filter->held.length, true);
    text_clear(&filter->held);
}

void stop_filter_release(struct stop_filter *filter)
{
    text_release(&filter->held);
    text_release(&filter->text);
}
