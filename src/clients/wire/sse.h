/* Server-sent events out of bytes that arrive in any pieces: CR, LF and CRLF end lines, several data
 * lines make one event, comments and fields that nobody needs are passed over.
 * A struct sse owns what it holds back: sse_init, sse_release. */
#ifndef IPW_CLIENTS_WIRE_SSE_H
#define IPW_CLIENTS_WIRE_SSE_H

#include "clients/wire/lines.h"

struct sse_event {
    const char *name; /* "" when the server gave none */
    const char *data; /* NUL-terminated; may hold NULs before that */
    size_t length;
    nanos t; /* the last byte of the data arrived */
};

typedef enum err (*sse_take)(void *context, const struct sse_event *event);

struct sse {
    struct lines lines;
    struct text data;
    char name[32];
    nanos data_at;
    bool has_data;
    bool has_begun; /* a byte order mark may only stand before the first line */
    sse_take take;
    void *context;
    struct error *why;
};

void sse_init(struct sse *sse, sse_take take, void *context, struct error *why);

/* Returns what take returned when that is not ERR_OK, or ERR_BAD_VALUE for too long a line. */
enum err sse_feed(struct sse *sse, const char *bytes, size_t length, nanos t) MUST_USE;

/* The stream has ended.  By the standard an event without its empty line is dropped; many servers
 * leave that line out after the last one, so an event with all its data is given. */
enum err sse_end(struct sse *sse, nanos t) MUST_USE;
void sse_release(struct sse *sse);

#endif
