/* The runs in a folder: every directory in it that holds a run, with its summary.  The directories are the truth;
 * the run index (run_index.h) is made of them.
 * run_list_load allocates what run_list_release frees. */
#ifndef IPW_RUNDIR_RUN_LIST_H
#define IPW_RUNDIR_RUN_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "rundir/run_path.h"
#include "rundir/summary.h"

struct run_list_entry {
    char *name; /* of the directory, without its parent */
    enum run_kind kind;
    bool has_summary; /* else the run has not ended, or its summary cannot be read */
    struct summary summary;
    double written_at; /* of the summary's file, in seconds since 1970; UNKNOWN without one */
    double began_at;   /* of a run without a summary; else UNKNOWN */
};

struct run_list {
    struct run_list_entry *entries; /* by the time at which they started, unfinished ones last */
    size_t count, capacity;
};

/* ERR_NOT_FOUND without the folder; one without runs gives an empty list.  Of a sweep, the runs of its attempts. */
enum err run_list_load(const char *parent, struct run_list *out, struct error *why) MUST_USE;
void run_list_release(struct run_list *list);

/* One directory; *found: it is a run, and run_list_entry_release frees the entry. */
enum err run_list_read(const char *directory, struct run_list_entry *out, bool *found) MUST_USE;
void run_list_entry_release(struct run_list_entry *entry);

/* The same one by one, in no order, for those who keep less of each than a list: `wants` is called first, with the time
 * of the summary, and `take` gets what it wants, until it returns an error.  Of a run that the run index has, the summary
 * has the figures of the index alone: all directories need not be read. */
enum err run_list_visit(const char *parent,
                        bool (*wants)(void *context, const char *name, double written_at),
                        enum err (*take)(void *context, const struct run_list_entry *entry),
                        void *context, struct error *why) MUST_USE;

/* What the arguments of a command name: a folder that is no run stands for the runs in it, a sweep for those of its
 * attempts that succeeded (or, with whole_sweeps, for itself), and what commands leave among runs (the run index, plots,
 * reports) is left out of several arguments, since a wildcard names it too.  run_inputs_release frees it. */
struct run_inputs {
    char **paths; /* count of them, then NULL */
    size_t count, capacity;
};

enum err run_inputs_find(const char *const *words, size_t count, bool whole_sweeps,
                         struct run_inputs *out, struct error *why) MUST_USE;
/* The runs of a sweep that succeeded, with "--" between those of one setting and the next. */
enum err run_inputs_settings(const char *sweep, struct run_inputs *out, struct error *why) MUST_USE;
void run_inputs_release(struct run_inputs *inputs);

#endif
