/* Slurm: work in parts as a job array, each element of which runs this program for one part: a setting of a sweep, a
 * shard of a profile.  Submitted with sbatch and followed with squeue.  Whether a part is done is decided by what its
 * element wrote, never by Slurm, so that no accounting database is needed and a requeued element does nothing twice.
 *
 * The caller owns every struct and text. */
#ifndef IPW_RUNNER_SLURM_H
#define IPW_RUNNER_SLURM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

/* As sbatch has them; NULL or 0: not given. */
struct slurm_options {
    const char *partition, *gres, *time, *account;
    unsigned nodes;
    unsigned array_limit;    /* elements that may run at the same time */
    const char *const *more; /* "qos=high", "exclusive" */
    size_t more_count;
};

/* The graphics clocks of the GPU that Slurm gives, at least `least` MHz, highest first, by a dry run of this program on a
 * node (srun), which waits in the queue.  The caller frees *out.  ERR_UNSUPPORTED: why it has none to set. */
enum err slurm_clocks(const struct slurm_options *options, const char *devices, double least,
                      double **out, size_t *count, struct error *why) MUST_USE;

/* ERR_NOT_FOUND names the program of Slurm that is not in PATH. */
enum err slurm_available(struct error *why) MUST_USE;

/* Work in parts.  The folder `slurm` in its directory has the scripts, the numbers of the jobs and the logs of the
 * elements, which run in the working directory of this process: paths may be relative to it. */
struct slurm_work {
    const char *directory; /* created where it is not there */
    const char *name;      /* of the job */
    bool same_call;        /* the words of this process come before those of the command */
    char *const *command;  /* words that NULL ends; the number of the part is added to the last */
    const char *suffix;    /* behind the number */
    /* The parts that are not done, at most so many.  Asked for once the queue was read: an element that ends in between
     * would otherwise be in neither, and be submitted again. */
    enum err (*list)(void *context, size_t *parts, size_t *count, struct error *why);
    void *context;
    size_t most;
};

/* slurm_script.c: what slurm_submit writes for sbatch.  ERR_USAGE names an option that a script cannot hold. */
struct slurm_array {
    const struct slurm_options *options;
    const char *name, *logs; /* logs: the folder for those of the elements */
    const size_t *parts;
    size_t count;
    const char *command; /* as a shell takes it; the number of the part and `suffix` are added */
    const char *suffix;
};
enum err slurm_script(const struct slurm_array *array, struct text *out, struct error *why)
    MUST_USE;

/* Whether slurm_submit wrote a script into the directory. */
bool slurm_was_used(const char *directory);

/* Writes a script for the parts that are left, in their order, but for those that are queued already, or several where they
 * are many, and submits them unless the caller declines.  *count: how many parts.  `wrote` is called for each script, with the
 * job's number or NULL.  ERR_USAGE names an option that a script cannot hold. */
enum err slurm_submit(const struct slurm_work *work, const struct slurm_options *options,
                      size_t *count, bool submit,
                      void (*wrote)(const char *script, const char *job), struct error *why)
    MUST_USE;

/* Elements that have not ended. */
struct slurm_queue {
    size_t *parts;
    size_t count, running;
    char reason[64]; /* why one is pending; "" without any */
};

/* Calls `collect` again and again until it has nothing to wait for (*left 0) or no element is queued any more.  A
 * controller that does not answer is waited for.  *signal: the number of the one that came, else 0; the job goes on. */
struct slurm_follow {
    enum err (*collect)(void *context, size_t *left, struct error *why);
    void (*show)(void *context, size_t left, const struct slurm_queue *queue);
    void (*unreachable)(void *context, const char *why);
    void *context;
};
enum err slurm_follow(const char *directory, const struct slurm_follow *follow, size_t *left,
                      int *signal, struct error *why) MUST_USE;

#endif
