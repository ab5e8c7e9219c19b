/* A run directory as a whole: inspecting, creating, locking and clearing it, and writing a small file to it atomically.
 * No state. */
#ifndef IPW_RUNDIR_RUN_DIR_H
#define IPW_RUNDIR_RUN_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct text;

/* The folder with an agent's traces as a dataset. */
#define RUN_TRACE_DATASET "hf_dataset"

/* Marks a run not yet pushed to a database (run_copy.h). */
#define RUN_PENDING_FILE "pending.db"

/* Files that commands generate from the measured ones: a page, and folders of results, plots, and Slurm scripts and logs. */
#define RUN_REPORT   "report.html"
#define RUN_ANALYSES "analysis"
#define RUN_PLOTS    "plots"
#define RUN_SLURM    "slurm"

/* The folder of the files that a workload generated. */
#define RUN_OUTPUTS "outputs"

enum run_dir_state { RUN_DIR_NEW, RUN_DIR_EMPTY, RUN_DIR_HAS_RUN, RUN_DIR_FOREIGN };

/* Contents of a path: nothing, an empty directory, a run of ours (a journal) or of the Python IPW, or something
 * else, which is never deleted. */
enum err run_dir_inspect(const char *path, enum run_dir_state *out, struct error *why) MUST_USE;

/* Creates the directory with its parents; the error names a read-only directory or an existing file. */
enum err run_dir_make(const char *path, struct error *why) MUST_USE;

/* Makes the directory and the files of a run in it accessible to their owner only.  Files that are created in it later
 * are private too (port/file.h). */
enum err run_dir_make_private(const char *path, struct error *why) MUST_USE;

/* Deletes only the files of a run, then the directory if it is empty. */
enum err run_dir_clear(const char *path, struct error *why) MUST_USE;

/* Whether a file of that name, in the directory ("") or a folder of it, is measured data, which is part of a copy of
 * the run; not files generated from it (reports, plots). */
bool run_dir_is_measured(const char *folder, const char *name);

/* Calls back for the regular files of a run, by name: measured ones, without symbolic links; or all data files. */
enum run_dir_files { RUN_DIR_MEASURED, RUN_DIR_DATA };
typedef void run_dir_take(void *context, const char *name, int64_t bytes);
void run_dir_list(const char *path, enum run_dir_files which, run_dir_take *take, void *context);

/* Appends the bytes of a measured file, to send them as they are; ERR_NOT_FOUND for any other name. */
enum err run_dir_read(const char *path, const char *name, size_t limit, struct text *out,
                      struct error *why) MUST_USE;

/* ERR_BUSY, with the pid, while another process writes the run. */
enum err run_dir_check_idle(const char *path, struct error *why) MUST_USE;

/* Removes a directory in which no run has started: it contains only the lock, which the caller holds and closes next.
 * Keeps it if there is anything else. */
void run_dir_remove_empty(const char *path);

/* Held while a run writes: ERR_BUSY names the other process.  The kernel releases it when the process exits. */
enum err run_dir_lock(const char *path, int *fd, struct error *why) MUST_USE;

/* Readers open the files of a run by name: a FIFO or a device could block forever, and is ERR_BAD_VALUE with its
 * path. */
enum err run_dir_check_files(const char *path, struct error *why) MUST_USE;

/* A resumed run writes to its files: a symbolic link could lead outside, and is ERR_BAD_VALUE with its path. */
enum err run_dir_check_links(const char *path, struct error *why) MUST_USE;

/* Writes a small file ("analysis/quality.json") atomically, without following links. */
enum err run_dir_put(const char *directory, const char *name, const struct text *content,
                     struct error *why) MUST_USE;

#endif
