/* Rows of text files as JSON: JSON lines, the elements of one JSON array, or the records of a CSV file.
 * The structs own their file and buffers: open, close. */
#ifndef IPW_DATASETS_TEXT_ROWS_H
#define IPW_DATASETS_TEXT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/csv.h"
#include "core/err.h"

struct text;

/* The longest row that is read, in bytes. */
#define ROW_BYTES_MAX ((size_t)64 * 1024 * 1024)

/* A file read byte by byte through a buffer. */
struct byte_reader {
    int fd;
    char *buffer;
    size_t at, end;
    uint64_t line; /* of the next byte, from 1 */
    enum err err;  /* why reading stopped, other than at the end */
    int errno_value;
};

/* ---- JSON ---- */

struct json_rows {
    struct byte_reader reader;
    size_t row_max;    /* bytes */
    bool is_array;     /* "[ {...}, {...} ]", by its first byte; otherwise JSON lines */
    bool array_closed; /* its "]" was read */
};

/* Skips a byte order mark.  ERR_UNSUPPORTED for a directory, UTF-16, compressed files and Parquet. */
enum err json_rows_open(const char *path, size_t row_max, struct json_rows *out, struct error *why)
    MUST_USE;
void json_rows_close(struct json_rows *rows);

/* The next row in *row (cleared first) and the line on which it begins.  Blank lines are skipped.
 * ERR_BAD_VALUE for a row that is too long; the next call continues after it. */
enum err json_rows_next(struct json_rows *rows, struct text *row, uint64_t *line, bool *end,
                        struct error *why) MUST_USE;

/* ---- CSV ---- */

struct csv_rows {
    struct byte_reader file;
    struct csv_reader reader; /* over the file: a struct csv_rows must not be moved */
};

/* As json_rows_open; the first record names the columns. */
enum err csv_rows_open(const char *path, char separator, size_t row_max, struct csv_rows *out,
                       struct error *why) MUST_USE;
void csv_rows_close(struct csv_rows *rows);

/* The next record as an object of strings, and the line on which it begins.  Blank lines are skipped.
 * ERR_BAD_VALUE for a record with a wrong number of fields or a misplaced quote, or that is too long; the
 * next call continues after it. */
enum err csv_rows_next(struct csv_rows *rows, struct text *row, uint64_t *line, bool *end,
                       struct error *why) MUST_USE;

#endif
