/* Synthetic run tables, with anything that a run may have or lack. table_of returns one for
 * table_free. */
#ifndef IPW_TESTS_SUPPORT_TABLES_H
#define IPW_TESTS_SUPPORT_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "rundir/run_table.h"

/* Of every number: none is known, all are equal, they vary, a third is unknown, or 0 and
 * implausibly large. */
enum filling { FILL_NOTHING, FILL_SAME, FILL_VARIED, FILL_HOLES, FILL_EXTREME };

struct run_table table_of(enum filling filling, size_t rows, bool all_failed);
void table_free(struct run_table *table);

#endif
