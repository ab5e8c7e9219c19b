/* Tables of runs by hand, with whatever a run may hold or lack.  table_of gives one that table_free takes
 * back. */
#ifndef IPW_TESTS_SUPPORT_TABLES_H
#define IPW_TESTS_SUPPORT_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "rundir/run_table.h"

/* Of every number: none is known, all are the same, they vary, a third is unknown, or 0 and beyond what
 * anything measures. */
enum filling { FILL_NOTHING, FILL_SAME, FILL_VARIED, FILL_HOLES, FILL_EXTREME };

struct run_table table_of(enum filling filling, size_t rows, bool all_failed);
void table_free(struct run_table *table);

#endif
