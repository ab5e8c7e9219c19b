/* JSON rows of a file: a line each (JSON lines), or the elements of one array.  Which of the two it
 * is, its first byte tells.  A struct lines owns its file: lines_open, lines_close. */
#ifndef IPW_DATASETS_ROWS_LINES_H
#define IPW_DATASETS_ROWS_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "datasets/rows/bytes.h"

struct text;

struct lines {
    struct bytes bytes;
    size_t most;       /* bytes of a row */
    bool is_array;     /* "[ {...}, {...} ]" */
    bool array_closed; /* its "]" was read */
};

enum err lines_open(const char *path, size_t most, struct lines *out, struct error *why) MUST_USE;
void lines_close(struct lines *lines);

/* The next row in *row (cleared first) and the line on which it begins.  Blank lines are passed over.
 * ERR_BAD_VALUE for a row that is too long, which is passed over, or for what stands between the
 * elements of an array. */
enum err lines_next(struct lines *lines, struct text *row, uint64_t *line, bool *end,
                    struct error *why) MUST_USE;

#endif
