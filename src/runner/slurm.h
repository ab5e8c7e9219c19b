/* Slurm: work divided into parts as a job array, each element of which runs this program for one part: a setting of a
 * sweep, a shard of a profile.  Submitted with sbatch and followed with squeue.  An element's files decide whether its
 * part is done, never Slurm: no accounting database is needed, and a requeued element repeats nothing.
 *
 * The caller owns every struct and string. */
#ifndef IPW_RUNNER_SLURM_H
#define IPW_RUNNER_SLURM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

/* Options of sbatch; NULL or 0: not given. */
struct slurm_options {
    const char *partition, *gres, *time, *account;
    unsigned nodes;
    unsigned array_limit;    /* maximum number of concurrent elements */
    const char *const *more; /* "qos=high", "exclusive" */
    size_t more_count;
};

/* The graphics clocks of a GPU allocated by Slurm, at least `min` MHz, highest first, from a dry run of this program
 * on a node (srun), which waits in the queue.  The caller frees *out.  ERR_UNSUPPORTED: why no clocks can be set. */
enum err slurm_clocks(const struct slurm_options *options, const char *devices, double min,
                      double **out, size_t *count, struct error *why) MUST_USE;

/* ERR_NOT_FOUND names the Slurm program that is not in PATH. */
enum err slurm_available(struct error *why) MUST_USE;

/* Work divided into parts.  The folder `slurm` in its directory contains the scripts, the job ids and the logs of the
 * elements, which run in the working directory of this process: paths may be relative to it. */
struct slurm_work {
    const char *directory; /* created if it does not exist */
    const char *name;      /* job name */
    bool same_call;        /* prepend the command line of this process */
    char *const *command;  /* NULL-terminated; the part number is appended to the last word */
    const char *suffix;    /* appended after the number */
    /* Lists the parts that are not done.  Called after the queue was read: an element that ends in between would
     * otherwise be in neither list, and be submitted again. */
    enum err (*list)(void *context, size_t *parts, size_t *count, struct error *why);
    void *context;
    size_t max;
};

/* slurm_script.c: the batch script of slurm_submit.  ERR_USAGE names an option that a script cannot contain. */
struct slurm_array {
    const struct slurm_options *options;
    const char *name, *logs; /* logs: folder for the elements' logs */
    const size_t *parts;
    size_t count;
    const char *command; /* quoted for a shell; the part number and `suffix` are appended */
    const char *suffix;
};
enum err slurm_script(const struct slurm_array *array, struct text *out, struct error *why)
    MUST_USE;

/* Whether slurm_submit has written a script to the directory. */
bool slurm_was_used(const char *directory);

/* Writes a script (or several, if there are many parts) for the parts that are neither done nor queued, in order, and
 * submits it unless the caller declines.  *count: number of parts.  `wrote` is called for each script, with the job id
 * or NULL. ERR_USAGE names an option that a script cannot contain. */
enum err slurm_submit(const struct slurm_work *work, const struct slurm_options *options,
                      size_t *count, bool submit,
                      void (*wrote)(const char *script, const char *job), struct error *why)
    MUST_USE;

/* Elements that have not ended. */
struct slurm_queue {
    size_t *parts;
    size_t count, running;
    char reason[64]; /* why one is pending; or "" */
};

/* Calls `collect` repeatedly until nothing is left (*left 0) or no element is queued any more.  Waits for a controller
 * that does not respond.  *signal: the signal received, else 0; the job continues. */
struct slurm_follow {
    enum err (*collect)(void *context, size_t *left, struct error *why);
    void (*show)(void *context, size_t left, const struct slurm_queue *queue);
    void (*unreachable)(void *context, const char *why);
    void *context;
};
enum err slurm_follow(const char *directory, const struct slurm_follow *follow, size_t *left,
                      int *signal, struct error *why) MUST_USE;

#endif
