/* The runs in a folder: every directory in it that holds a run, with its summary.  The directories are authoritative;
 * the run index (run_index.h) is derived from them. run_list_load allocates what run_list_release frees. */
#ifndef IPW_RUNDIR_RUN_LIST_H
#define IPW_RUNDIR_RUN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"

struct result;

struct run_list_entry {
    char *name; /* of the directory, without its parent */
    enum run_kind kind;
    bool has_summary; /* false: the run has not ended, or its summary is unreadable */
    struct summary summary;
    int64_t written_at; /* mtime of the summary, in ns since 1970; INTEGER_UNKNOWN without one */
    double began_at;    /* of a run without a summary; else UNKNOWN */
};

struct run_list {
    struct run_list_entry *entries; /* by start time, unfinished ones last */
    size_t count, capacity;
};

/* ERR_NOT_FOUND: no such folder; one without runs gives an empty list.  For a sweep, the runs of its attempts. */
enum err run_list_load(const char *parent, struct run_list *out, struct error *why) MUST_USE;
void run_list_release(struct run_list *list);

/* The list "runs" of a result: the columns of the run index. */
void run_list_put(const struct run_list *list, struct result *out);

/* Reads one directory; *found: it is a run, and run_list_entry_release frees the entry. */
void run_list_read(const char *directory, struct run_list_entry *out, bool *found);
void run_list_entry_release(struct run_list_entry *entry);

/* The same one by one, in no order, without keeping them: `wants` is called first, with the mtime of the summary, and
 * `take` with each wanted run, until it returns an error. */
enum err run_list_visit(const char *parent,
                        bool (*wants)(void *context, const char *name, int64_t written_at),
                        enum err (*take)(void *context, const struct run_list_entry *entry),
                        void *context, struct error *why) MUST_USE;

/* Expands the arguments of a command: a folder that is not a run stands for the runs in it, a sweep for its successful
 * attempts (or, with whole_sweeps, for itself), and files that commands write among runs (the run index, plots,
 * reports) are dropped from several arguments, since wildcards match them.  run_inputs_release frees it. */
struct run_inputs {
    char **paths; /* NULL-terminated */
    size_t count, capacity;
};

void run_inputs_find(const char *const *words, size_t count, bool whole_sweeps,
                     struct run_inputs *out);
/* The successful runs of a sweep, with "--" between settings. */
void run_inputs_settings(const char *sweep, struct run_inputs *out);
void run_inputs_release(struct run_inputs *inputs);

#endif
