/* Runs that are parts of one: each asked a shard of the questions, and they are merged into one directory.
 * Nothing here keeps state. */
#ifndef IPW_RUNDIR_RUN_PARTS_H
#define IPW_RUNDIR_RUN_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

/* Part `number` (from 1) of `of`; zeros: no part. */
struct run_part {
    unsigned number, of;
};

/* As options and the settings of a journal have it: "2/4"; "" for no part. */
enum { RUN_PART_MAX = 32, RUN_PARTS_MOST = 10000 };
#define RUN_PART_KEY "shard"
void run_part_name(const struct run_part *part, char *to, size_t size);
bool run_part_parse(const char *text, struct run_part *out);

/* Appends "_shard2of4" to the name of a directory; false when it does not fit.  The length of a path without that. */
bool run_part_suffix(const struct run_part *part, char *name, size_t size);
size_t run_part_stem(const char *path);

/* FOLDER/NAME_shard2of4; false when it does not fit.  And whether a run there came to its end. */
bool run_part_path(const char *folder, const char *name, const struct run_part *part, char *to,
                   size_t size);
bool run_part_ended(const char *directory);

/* Joins the files of all parts, given in any order, in a new directory: each start of a part becomes a start of the run,
 * with its spans and samples, and the journal says that its records are in the order of their keys.  The summary and
 * the stores are the caller's.  ERR_USAGE: the directories are not all parts of one run, once each. */
enum err run_parts_merge(const char *const *directories, size_t count, const char *to,
                         struct error *why) MUST_USE;

#endif
