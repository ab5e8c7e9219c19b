/* The feed: rows of any source, shuffled, limited and mapped to items.  A driver that maps rows only has to
 * read them.
 *
 * The holder of a struct row_source owns its state and closes it.  row_feed_open takes ownership of the
 * source, also when it fails; row_feed_close frees everything. */
#ifndef IPW_DATASETS_ROW_FEED_H
#define IPW_DATASETS_ROW_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "datasets/row_mapping.h"

struct dataset;
struct item;
struct params;
struct text;

/* A source of rows, each one JSON value: what a driver makes of its file or server. */
struct row_source {
    /* The next row in *row (cleared first) and its number, or *end.  ERR_BAD_VALUE concerns this row
     * alone, and the next call continues after it; any other error ends the source. */
    enum err (*next)(void *state, struct text *row, uint64_t *number, bool *end, struct error *why);

    /* Skips that many rows.  NULL: they are read and dropped. */
    enum err (*skip)(void *state, uint64_t rows, struct error *why);

    void (*close)(void *state);
    void *state;
    const char *unit; /* what number counts: "line", "row" */
    int64_t count;    /* of rows; -1 when unknown before the end */
};

#define ROW_FEED_PARAMS                                                                            \
    ROW_MAPPING_PARAMS,                                                                            \
        {"shuffle", "SEED", "random order of the rows with this seed; offset applies after it"},   \
        {"offset", "ROWS", "skip that many rows at the start (0)"},                                \
        {"limit", "ITEMS", "at most that many items (all)"},                                       \
        {"skip_bad", "BOOL", "skip invalid rows with a warning (false)"}

/* Reads the first rows: an empty source, one without a valid row, and one without the fields are errors.
 * `where` is the file name for messages.  Sets out->state, count, and the grader of a dataset with
 * choices. */
enum err row_feed_open(const struct params *params, struct row_source source, const char *where,
                       struct dataset *out, struct error *why) MUST_USE;

/* The same for a driver that reads what its parameter path= names: of that driver, its rows. */
struct row_file {
    const char *placeholder; /* of the parameter, in a message: "FILE" */
    size_t state_size;       /* of the state, zeroed before open; close frees what is in it */
    enum err (*open)(const struct dataset *dataset, const struct params *params, const char *path,
                     void *state, struct error *why);
    struct row_source source; /* without a state */
};
enum err row_feed_open_file(const struct params *params, const struct row_file *file,
                            struct dataset *out, struct error *why) MUST_USE;

/* The next and close of such a driver. */
enum err row_feed_next(struct dataset *dataset, struct item *out, bool *end, struct error *why);
void row_feed_close(struct dataset *dataset);

#endif
