/* The run index: catalog.db in the folder of the run directories, an SQLite database with one row per run for
 * queries across runs.  Everything in it comes from the directories: it is brought up to date when it is missing
 * or stale.  A build without SQLite has none (ERR_UNSUPPORTED).  Nothing here keeps state. */
#ifndef IPW_RUNDIR_RUN_INDEX_H
#define IPW_RUNDIR_RUN_INDEX_H

#include "core/err.h"

struct run_list;
struct summary;

/* The row of one run, in place of what was there; `summary` may be NULL. */
enum err run_index_put(const char *directory, const struct summary *summary, struct error *why)
    MUST_USE;

/* Rows of runs whose directory is gone are deleted, those that are missing or older than the summary are written
 * again; an index that is up to date is not touched. */
enum err run_index_refresh(const char *parent, const struct run_list *list, struct error *why)
    MUST_USE;

#endif
