/* The feed: rows of any source, shuffled, cut and mapped to items.  This is all of a driver that maps
 * rows but its reading.
 *
 * feed_open takes the source over, also when it fails; feed_close gives all of it back. */
#ifndef IPW_DATASETS_ROWS_FEED_H
#define IPW_DATASETS_ROWS_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "datasets/rows/mapping.h"
#include "datasets/rows/source.h"

struct dataset;
struct feed;
struct item;
struct params;

#define FEED_PARAMS                                                                                \
    MAPPING_PARAMS,                                                                                \
        {"shuffle", "SEED", "the rows in an order drawn by this seed; offset counts in it"},       \
        {"offset", "ROWS", "leave out that many rows at the start (0)"},                           \
        {"limit", "ITEMS", "give at most that many items (all)"},                                  \
        {"skip_bad", "BOOL", "leave out rows that cannot be used, with a warning (false)"}

/* Looks at the first rows: an empty source, one without a row that can be used, and one without the
 * fields are refused.  `where` is for messages: the file's name.  Sets out->state, count, and the
 * grader of a dataset with choices. */
enum err feed_open(const struct params *params, struct row_source source, const char *where,
                   struct dataset *out, struct error *why) MUST_USE;

/* What a driver uses as its next and close. */
enum err feed_next(struct dataset *dataset, struct item *out, bool *end, struct error *why);
void feed_close(struct dataset *dataset);

#endif
