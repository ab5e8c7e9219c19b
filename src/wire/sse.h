/* Framing of a streamed response body: lines (NDJSON) and server-sent events (SSE), from chunks of any size.
 *
 * A struct line_reader owns the start of an incomplete line: zero-initialize it with its rule, line_reader_release when
 * done.  A struct sse owns its buffers: sse_init, sse_release. */
#ifndef IPW_WIRE_SSE_H
#define IPW_WIRE_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

enum { LINE_LIMIT = 16 * 1024 * 1024 }; /* bytes; no well-behaved server sends a longer line */

/* ---- lines ---- */

struct line_reader {
    bool cr_ends; /* CR alone ends a line, as in SSE; otherwise only LF and CRLF do */
    struct text held;
    bool after_cr; /* a following LF belongs to this CR */
};

/* Receives each line without its terminator, and the time at which the terminator arrived. */
typedef enum err (*line_handler)(void *context, const char *line, size_t length, nanos t);

/* Returns the handler's error if it has one, or ERR_BAD_VALUE for a line beyond LINE_LIMIT. */
enum err line_reader_feed(struct line_reader *reader, const char *bytes, size_t length, nanos t,
                          line_handler handle, void *context, struct error *why) MUST_USE;
void line_reader_release(struct line_reader *reader);

/* ---- events ---- */

struct sse_event {
    const char *name; /* "" when the server gave none */
    const char *data; /* NUL-terminated; may contain NULs before that */
    size_t length;
    nanos t; /* when the last byte of the data arrived */
};

typedef enum err (*sse_handler)(void *context, const struct sse_event *event);

struct sse {
    struct line_reader lines;
    struct text data;
    char name[32];
    nanos data_at;
    bool has_data;
    bool has_begun; /* a byte order mark is allowed before the first line only */
    sse_handler handle;
    void *context;
    struct error *why;
};

void sse_init(struct sse *sse, sse_handler handle, void *context, struct error *why);

/* Returns the handler's error if it has one, or ERR_BAD_VALUE for a line or event that is too long. */
enum err sse_feed(struct sse *sse, const char *bytes, size_t length, nanos t) MUST_USE;

/* End of the stream.  The standard drops an event without its empty line; many servers omit that line after the last
 * event, so an event with complete data lines is delivered. */
enum err sse_end(struct sse *sse, nanos t) MUST_USE;
void sse_release(struct sse *sse);

#endif
