/* A response body of any format, fed to its parser in pieces.  The caller releases *reply. */
#ifndef TESTS_SUPPORT_REPLIES_H
#define TESTS_SUPPORT_REPLIES_H

#include "wire/responses.h"

enum { REPLY_STEP = 10 }; /* time between the pieces; the first arrives at this time */

/* Feeds the body in pieces of `piece` bytes, split first at `cut`; piece 0: only that split. */
static inline enum err read_reply(enum response_kind kind, const char *body, size_t length,
                                  size_t cut, size_t piece, enum err transport,
                                  struct completion *reply, struct error *why)
{
    const struct response_format *format = &RESPONSE_FORMATS[kind];
    union response_state state;
    nanos t = REPLY_STEP;
    enum err err = ERR_OK;
    completion_init(reply);
    *why = (struct error){0};
    format->init(&state,
                 &(struct completion_sink){.completion = reply, .server = "http://s", .why = why});
    for (size_t at = 0, n; at < length && !err; at += n, t += REPLY_STEP) {
        n = at < cut ? cut - at : length - at;
        if (piece && n > piece)
            n = piece;
        err = format->feed(&state, body + at, n, t);
    }
    err = format->end(&state, err ? err : transport);
    format->release(&state);
    return err;
}

#endif
