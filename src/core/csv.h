/* CSV (RFC 4180): a reader that yields one row at a time from memory or from any source of bytes, a table that is read
 * into memory, and quoting of fields for output.
 * A reader owns its buffers, not its source: csv_reader_release.  A row belongs to its reader and is valid until
 * the next call. */
#ifndef IPW_CORE_CSV_H
#define IPW_CORE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"

struct text;

/* ---- reading row by row ---- */

/* Like read(2): returns the number of bytes put into `to`, 0 at the end, -1 with errno set. */
typedef long csv_source(void *context, char *to, size_t size);

struct csv_row {
    const struct slice *fields; /* each also ends with a NUL; a field may contain further NULs */
    size_t count;
    uint64_t line;     /* on which it begins, from 1 */
    bool has_line_end; /* false: the input ended without one, so the row may be truncated */
};

struct csv_reader {
    char separator; /* ',' unless changed before the first row */
    size_t row_max; /* bytes of the longest row that is read (64 MiB unless changed) */

    csv_source *source; /* private to the reader from here on */
    void *context;
    char *buffer;
    size_t at, end, capacity;
    bool owns_buffer, at_end;
    bool has_started;  /* a byte order mark can no longer follow */
    bool after_return; /* a '\n' here belongs to the line end before it */
    int failure;       /* errno of the source */
    uint64_t line;
    struct slice *fields;
    size_t field_capacity;
    char *names; /* the header's bytes */
    struct slice *columns;
    size_t column_count; /* 0 before the header */
};

/* Reads from memory, which is modified; bytes[length] must be a NUL, as in a struct text. */
void csv_reader_memory(struct csv_reader *reader, char *bytes, size_t length);
void csv_reader_source(struct csv_reader *reader, csv_source *source, void *context);
void csv_reader_release(struct csv_reader *reader);

/* Takes the first row as the names of the columns; every later row must then have as many fields.
 * ERR_BAD_VALUE when there is no row. */
enum err csv_reader_header(struct csv_reader *reader, struct error *why) MUST_USE;

/* The next row that is not a blank line; *end when there is none.  ERR_BAD_VALUE, with row->line set, for a
 * misplaced quote, a row that is too long, or a wrong number of fields: the next call goes on after that row.
 * A quote inside an unquoted field stands for itself. */
enum err csv_reader_next(struct csv_reader *reader, struct csv_row *row, bool *end,
                         struct error *why) MUST_USE;

/* ---- a small table in memory ---- */

struct csv_grid {
    char *
        *cells; /* the names of the columns, then row by row; they point into the caller's bytes */
    size_t columns, rows;
    size_t *lines; /* line number of each row, from 1 */
};

/* Reads memory as csv_reader_memory does; errors begin with "line N: ".  Release with csv_grid_release; the
 * bytes must outlive the grid. */
enum err csv_grid_read(char *bytes, size_t length, struct csv_grid *out, struct error *why)
    MUST_USE;
void csv_grid_release(struct csv_grid *grid);

/* The column of that name, or -1. */
long csv_grid_column(const struct csv_grid *grid, const char *name);

/* "" for a column of -1. */
const char *csv_grid_cell(const struct csv_grid *grid, size_t row, long column);

/* ---- writing ---- */

/* Appends a field, quoted if necessary. */
void csv_add(struct text *out, const char *value);

/* The same for text that people open in a spreadsheet: an apostrophe is put before what a spreadsheet would
 * evaluate as a formula.  Numbers stay numbers. */
void csv_add_text(struct text *out, const char *value);

#endif
