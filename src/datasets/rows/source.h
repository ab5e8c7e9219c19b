/* A source of rows, each one JSON value: what a driver makes of its file or server, and what the feed
 * turns into items.  Whoever holds a struct row_source owns its state and closes it. */
#ifndef IPW_DATASETS_ROWS_SOURCE_H
#define IPW_DATASETS_ROWS_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

struct text;

struct row_source {
    /* The next row in *row (cleared first) and its number for people, or *end.  ERR_BAD_VALUE is about
     * this row alone, and the next call goes on after it; any other error ends the source. */
    enum err (*next)(void *state, struct text *row, uint64_t *number, bool *end, struct error *why);

    /* Passes over that many rows.  NULL: they are read and dropped. */
    enum err (*skip)(void *state, uint64_t rows, struct error *why);

    void (*close)(void *state);
    void *state;
    const char *unit; /* what number counts: "line", "row" */
    int64_t count;    /* rows altogether; -1 when only reading to the end would tell */
};

#endif
