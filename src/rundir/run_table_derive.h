/* Columns of a run's table that are made of others.  Nothing is owned. */
#ifndef IPW_RUNDIR_RUN_TABLE_DERIVE_H
#define IPW_RUNDIR_RUN_TABLE_DERIVE_H

#include "rundir/run_table.h"

/* `wanted` and what its derived columns are made of. */
struct run_wanted derive_needs(struct run_wanted wanted);

/* Fills in the derived columns, then gives back those that were loaded for them alone. */
enum err derive_columns(struct run_table *table, struct run_wanted wanted) MUST_USE;

#endif
