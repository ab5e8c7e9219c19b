/* Runs that asked a shard of the questions each (struct run_part in run_path.h) become one.  Nothing here keeps state. */
#ifndef IPW_RUNDIR_RUN_PARTS_H
#define IPW_RUNDIR_RUN_PARTS_H

#include <stddef.h>

#include "core/err.h"

/* Joins the files of all parts, given in any order, in a new directory: each start of a part becomes a start of the run,
 * with its spans and samples, and the journal says that its records are in the order of their keys.  The summary and
 * the stores are the caller's.  ERR_USAGE: the directories are not all parts of one run, once each. */
enum err run_parts_merge(const char *const *directories, size_t count, const char *to,
                         struct error *why) MUST_USE;

#endif
