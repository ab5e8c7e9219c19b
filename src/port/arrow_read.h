/* Reading an Arrow IPC stream file, row by row or by columns, by nanoarrow.  A build without it says so in
 * arrow_read_available.  arrow_reader_open gives a reader that arrow_reader_close takes back.
 *
 * Memory is bounded by the file's largest record batch.  A file that is damaged, cut short or made
 * with what is not supported (dictionaries, compression, other byte order) is told in words. */
#ifndef IPW_PORT_ARROW_READ_H
#define IPW_PORT_ARROW_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ---- by columns: for who wants a few of many, of a million rows ----
 *
 * A file is read either so or row by row. */
enum arrow_kind { ARROW_IS_OTHER, ARROW_IS_NUMBER, ARROW_IS_TEXT, ARROW_IS_STRUCT };
enum { ARROW_PLACE_DEEPEST = 12 };

/* A column within structs; plain data, good for as long as the reader. */
struct arrow_place {
    enum arrow_kind kind; /* whole numbers, floats and bools are numbers */
    unsigned depth;
    uint32_t child[ARROW_PLACE_DEEPEST];
};

/* The column that the names lead to; false when there is none.  No names: the row itself. */
bool arrow_reader_find(const struct arrow_reader *reader, const char *const *names, size_t count,
                       struct arrow_place *out);

/* Child `i` of a struct, from 0; NULL when there are no more. */
const char *arrow_reader_child(const struct arrow_reader *reader, const struct arrow_place *place,
                               size_t i);

/* The next rows; *rows is 0 at the end. */
enum err arrow_reader_batch(struct arrow_reader *reader, size_t *rows, struct error *why) MUST_USE;

/* Values of those rows.  Null is UNKNOWN, and so is what is not finite, which *not_finite counts. */
void arrow_reader_numbers(const struct arrow_reader *reader, const struct arrow_place *place,
                          double *out, uint64_t *not_finite);

/* The bytes stand until the next batch, and do not end in NUL.  Null, or no text, is NULL. */
struct arrow_text {
    const char *bytes;
    size_t length;
};
void arrow_reader_texts(const struct arrow_reader *reader, const struct arrow_place *place,
                        struct arrow_text *out);

/* Whether each is there, whatever its kind. */
void arrow_reader_known(const struct arrow_reader *reader, const struct arrow_place *place,
                        bool *out);

#endif
