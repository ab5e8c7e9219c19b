/* Rows in a random order, without holding them in memory: they go to a scratch file once and are read
 * back in the order drawn.  Memory is some tens of bytes a row.
 *
 * row_shuffle takes the source over, closes it, and puts another in its place. */
#ifndef IPW_DATASETS_ROWS_SHUFFLE_H
#define IPW_DATASETS_ROWS_SHUFFLE_H

#include "datasets/rows/source.h"

enum err row_shuffle(struct row_source *source, uint64_t seed, struct error *why) MUST_USE;

#endif
