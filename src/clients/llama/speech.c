#include "clients/llama/speech.h"

#include <string.h>

#include "core/utf8.h"

/* Might these last bytes, fewer than four, be the beginning of a character? */
static bool is_unfinished(const char *bytes, size_t left)
{
    unsigned char lead = (unsigned char)bytes[0];
    size_t length = lead >= 0xf0 && lead <= 0xf4 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    if (lead > 0xf4 || length == 0 || left >= length)
        return false;
    for (size_t i = 1; i < left; i++)
        if (((unsigned char)bytes[i] & 0xc0) != 0x80)
            return false;
    return true;
}

/* Moves `length` bytes from what is held to what is shown, a byte that is no character's as U+FFFD; an
 * unfinished character at the end stays, but for the last time. */
static size_t show(struct speech *speech, size_t length, bool is_last)
{
    size_t at = 0;
    while (at < length) {
        const char *bytes = speech->held.bytes + at;
        size_t left = speech->held.length - at;
        size_t whole = utf8_length(bytes, left);
        if (whole == 0 && !is_last && is_unfinished(bytes, left))
            break;
        if (whole > 0)
            text_add_bytes(&speech->shown, bytes, whole);
        else
            text_add(&speech->shown, "\xEF\xBF\xBD");
        at += whole ? whole : 1;
    }
    return at;
}

/* Where the first stop string begins; the length of what is held when there is none. */
static size_t find_stop(const struct speech *speech)
{
    size_t first = speech->held.length;
    for (char *const *stop = speech->stops; stop && *stop; stop++) {
        const char *found = strstr(text_get(&speech->held), *stop);
        if (found && (size_t)(found - speech->held.bytes) < first)
            first = (size_t)(found - speech->held.bytes);
    }
    return first;
}

/* Where something begins that might become a stop string. */
static size_t find_beginning(const struct speech *speech)
{
    size_t length = speech->held.length;
    for (size_t at = 0; at < length; at++)
        for (char *const *stop = speech->stops; stop && *stop; stop++)
            if (strncmp(speech->held.bytes + at, *stop, length - at) == 0)
                return at;
    return length;
}

static enum err pass_on(struct speech *speech, nanos t)
{
    const struct client_request *request = speech->request;
    const struct text *shown = &speech->shown;
    if (shown->failed || speech->held.failed)
        return ERR_NO_MEMORY;
    enum err err = client_reply_arrived(speech->reply, &speech->reply->content, text_get(shown),
                                        shown->length, t);
    if (!err && request->saw && shown->length > 0)
        request->saw(request->context, text_get(shown), shown->length, t);
    text_clear(&speech->shown);
    return err;
}

static void drop(struct text *text, size_t length)
{
    if (length == 0)
        return;
    memmove(text->bytes, text->bytes + length, text->length - length);
    text->length -= length;
    text->bytes[text->length] = '\0';
}

enum err speech_take(struct speech *speech, const struct text *piece, nanos t)
{
    text_add_bytes(&speech->held, text_get(piece), piece->length);
    if (speech->held.failed)
        return ERR_NO_MEMORY;
    size_t stop = find_stop(speech);
    speech->has_stopped = stop < speech->held.length;
    size_t most = speech->has_stopped ? stop : find_beginning(speech);
    drop(&speech->held, show(speech, most, speech->has_stopped));
    return pass_on(speech, t);
}

enum err speech_end(struct speech *speech, nanos t)
{
    if (!speech->has_stopped)
        show(speech, speech->held.length, true);
    text_clear(&speech->held);
    return pass_on(speech, t);
}

void speech_release(struct speech *speech)
{
    text_release(&speech->held);
    text_release(&speech->shown);
}
