/* Reading an Arrow IPC stream file row by row, by nanoarrow.  A build without it says so in
 * arrow_read_available.  arrow_reader_open gives a reader that arrow_reader_close takes back.
 *
 * Memory is bounded by the file's largest record batch.  A file that is damaged, cut short or made
 * with what is not supported (dictionaries, compression, other byte order) is told in words. */
#ifndef IPW_PORT_ARROW_READ_H
#define IPW_PORT_ARROW_READ_H

#include <stdbool.h>

#include "core/err.h"

struct arrow_reader;
struct text;

/* ERR_UNSUPPORTED, with what brings it, when this build cannot read Arrow. */
enum err arrow_read_available(struct error *why) MUST_USE;

enum err arrow_reader_open(const char *path, struct arrow_reader **out, struct error *why) MUST_USE;

/* The next row as one compact JSON object in *row (cleared first): struct -> object, list -> array,
 * utf8 -> string, null -> null, timestamps and dates as ISO 8601 strings (UTC when the column has a
 * time zone), binary as base64 strings, a map as an object (as [key, value] pairs when its keys are
 * no strings).  A float that is not finite is null.  *end is set at the end, and *row is then empty. */
enum err arrow_reader_next(struct arrow_reader *reader, struct text *row, bool *end,
                           struct error *why) MUST_USE;
void arrow_reader_close(struct arrow_reader *reader);

#endif
