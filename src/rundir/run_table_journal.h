/* Rows of a run's table out of the journal, for a run that has not come to its end, or whose Arrow
 * files are missing or older.  Nothing is kept. */
#ifndef IPW_RUNDIR_RUN_TABLE_JOURNAL_H
#define IPW_RUNDIR_RUN_TABLE_JOURNAL_H

#include "rundir/run_table.h"

struct builder;

/* The table's `model` is the one to take, or NULL for the first record's, which it then becomes. */
enum err journal_rows(const char *path, struct builder *builder, struct error *why) MUST_USE;

#endif
