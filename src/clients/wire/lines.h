/* Lines out of bytes that arrive in any pieces.  A struct lines owns the beginning of a line whose
 * end has not come: zero-initialise with its rule, lines_release when done. */
#ifndef IPW_CLIENTS_WIRE_LINES_H
#define IPW_CLIENTS_WIRE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

enum { LINE_LIMIT = 16 * 1024 * 1024 }; /* no server of good will sends a longer one */

struct lines {
    bool
        cr_ends; /* a CR ends a line too, as in event streams; otherwise only LF, and CRLF as one */
    struct text held;
    bool after_cr; /* an LF that comes now belongs to the CR before it */
};

/* Gets each line without its end, with the time at which the end of it arrived. */
typedef enum err (*line_take)(void *context, const char *line, size_t length, nanos t);

/* Returns what take returned when that is not ERR_OK, or ERR_BAD_VALUE for a line beyond the limit. */
enum err lines_feed(struct lines *lines, const char *bytes, size_t length, nanos t, line_take take,
                    void *context, struct error *why) MUST_USE;
void lines_release(struct lines *lines);

#endif
