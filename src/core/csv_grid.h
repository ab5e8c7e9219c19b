/* A small CSV table (RFC 4180) read whole: the first record names the columns.  It points into the
 * caller's bytes, which it cuts up and which must last as long; csv_grid_release takes the rest back. */
#ifndef IPW_CORE_CSV_GRID_H
#define IPW_CORE_CSV_GRID_H

#include <stddef.h>

#include "core/err.h"

struct csv_grid {
    char **cells; /* names first, then row by row */
    size_t columns, rows;
    size_t *lines; /* of each row, for messages: from 1 */
};

/* `bytes` ends in NUL at `length`.  Blank lines are passed over.  ERR_BAD_VALUE names the line of a row with
 * more or fewer fields than there are columns, or of a quote that is out of place. */
enum err csv_grid_read(char *bytes, size_t length, struct csv_grid *out, struct error *why)
    MUST_USE;
void csv_grid_release(struct csv_grid *grid);

/* The column of that name, -1 when there is none. */
long csv_grid_column(const struct csv_grid *grid, const char *name);

/* "" for a column of -1. */
const char *csv_grid_cell(const struct csv_grid *grid, size_t row, long column);

#endif
