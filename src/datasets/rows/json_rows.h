/* JSON rows of a file: a line each (JSON lines), or the elements of one array.  Which of the two it
 * is, its first byte tells.  A struct json_rows owns its file: json_rows_open, json_rows_close. */
#ifndef IPW_DATASETS_ROWS_JSON_ROWS_H
#define IPW_DATASETS_ROWS_JSON_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "datasets/rows/bytes.h"

struct text;

struct json_rows {
    struct bytes bytes;
    size_t most;       /* bytes of a row */
    bool is_array;     /* "[ {...}, {...} ]" */
    bool array_closed; /* its "]" was read */
};

enum err json_rows_open(const char *path, size_t most, struct json_rows *out, struct error *why)
    MUST_USE;
void json_rows_close(struct json_rows *rows);

/* The next row in *row (cleared first) and the line on which it begins.  Blank lines are passed over.
 * ERR_BAD_VALUE for a row that is too long, which is passed over, or for what stands between the
 * elements of an array. */
enum err json_rows_next(struct json_rows *rows, struct text *row, uint64_t *line, bool *end,
                        struct error *why) MUST_USE;

#endif
