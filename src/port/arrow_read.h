/* Reading an Arrow IPC stream file row by row, by nanoarrow.  arrow_reader_open gives a reader that
 * arrow_reader_close takes back. */
#ifndef IPW_PORT_ARROW_READ_H
#define IPW_PORT_ARROW_READ_H

#include <stdbool.h>

#include "core/err.h"

struct arrow_reader;
struct text;

enum err arrow_read_available(struct error *why) MUST_USE;
enum err arrow_reader_open(const char *path, struct arrow_reader **out, struct error *why) MUST_USE;

/* The next row as one compact JSON object in *row (cleared first): struct -> object, list -> array,
 * utf8 -> string, null -> null, timestamps and binary as strings; *end set at the end. */
enum err arrow_reader_next(struct arrow_reader *reader, struct text *row, bool *end,
                           struct error *why) MUST_USE;
void arrow_reader_close(struct arrow_reader *reader);

#endif
