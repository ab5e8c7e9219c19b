/* Rows of text files: JSON lines, the elements of one JSON array, or the records of a CSV file.
 * A struct text_rows owns its file and buffers: open, close. */
#ifndef IPW_DATASETS_TEXT_ROWS_H
#define IPW_DATASETS_TEXT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/csv.h"
#include "core/err.h"
#include "core/text.h"

/* The longest row that is read, in bytes. */
#define ROW_BYTES_MAX ((size_t)64 * 1024 * 1024)

/* A file read byte by byte through a buffer. */
struct byte_reader {
    int fd;
    char *buffer;
    size_t at, end;
    uint64_t line; /* line of the next byte, from 1 */
    enum err err;  /* error that ended reading, if not the end of the file */
    int errno_value;
};

struct text_rows {
    struct byte_reader file;
    size_t row_max;        /* bytes */
    char separator;        /* separator of CSV; 0 for JSON */
    bool is_array;         /* "[ {...}, {...} ]", by its first byte; otherwise JSON lines */
    bool array_closed;     /* its "]" was read */
    struct text json;      /* the current row */
    struct csv_row record; /* the same of CSV; its columns are csv.columns */
    struct csv_reader csv; /* reads from `file`: a struct text_rows must not be moved */
};

/* Skips a byte order mark.  The first record of CSV names the columns.  ERR_UNSUPPORTED for a directory, UTF-16,
 * compressed files and Parquet. */
enum err text_rows_open(const char *path, char separator, size_t row_max, struct text_rows *out,
                        struct error *why) MUST_USE;
void text_rows_close(struct text_rows *rows);

/* The next row, as JSON in rows->json or as a record in rows->record, and the line on which it begins; *end at the end.
 * Blank lines are skipped.  ERR_BAD_VALUE for a row that is too long, and for a record with a wrong number of fields or
 * a misplaced quote; the next call continues after it. */
enum err text_rows_next(struct text_rows *rows, uint64_t *line, bool *end, struct error *why)
    MUST_USE;

#endif
