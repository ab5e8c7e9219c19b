/* A run directory as a whole: what is there, creating, locking and clearing it, and writing a small file
 * into it atomically.  Nothing here keeps state. */
#ifndef IPW_RUNDIR_RUN_DIR_H
#define IPW_RUNDIR_RUN_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

/* The folder of a run that has the traces of an agent as a dataset. */
#define RUN_TRACE_DATASET "hf_dataset"

/* The marker of a run that has yet to reach a database (run_copy.h). */
#define RUN_PENDING_FILE "pending.db"

enum run_dir_state { RUN_DIR_NEW, RUN_DIR_EMPTY, RUN_DIR_HAS_RUN, RUN_DIR_FOREIGN };

/* What a path holds: nothing, an empty directory, a run of ours (a journal) or of the Python IPW, or
 * something else, which is never deleted. */
enum err run_dir_inspect(const char *path, enum run_dir_state *out, struct error *why) MUST_USE;

/* Creates it with its parents; the error names a read-only place or a file in the way. */
enum err run_dir_make(const char *path, struct error *why) MUST_USE;

/* Deletes the files that a run makes, and only those, then the directory when it is empty. */
enum err run_dir_clear(const char *path, struct error *why) MUST_USE;

/* Whether a file of that name, in the directory ("") or a folder of it, holds what was measured: a copy of the run needs
 * it.  What other commands make of it (reports, plots) does not count. */
bool run_dir_is_measured(const char *folder, const char *name);

/* ERR_BUSY, with the process, while another one writes the run. */
enum err run_dir_check_idle(const char *path, struct error *why) MUST_USE;

/* Removes a directory in which no run began: nothing is in it but the lock, which the caller holds and
 * closes next.  Anything else in it, and it stays. */
void run_dir_drop(const char *path);

/* Held while a run writes there, so that two do not: ERR_BUSY names the process.  Released by the
 * kernel when the process ends, however it ends. */
enum err run_dir_lock(const char *path, int *fd, struct error *why) MUST_USE;

/* Whoever reads a run opens its files by name: a pipe or a device among them would be waited for, maybe
 * for ever, and is ERR_BAD_VALUE with its path. */
enum err run_dir_check_files(const char *path, struct error *why) MUST_USE;

/* Whoever continues a run writes its files: a symbolic link among them would lead outside, and is ERR_BAD_VALUE with
 * its path. */
enum err run_dir_check_links(const char *path, struct error *why) MUST_USE;

/* Writes a small file ("analysis/quality.json") whole or not at all, and through no link. */
enum err run_dir_put(const char *directory, const char *name, const struct text *content,
                     struct error *why) MUST_USE;

#endif
