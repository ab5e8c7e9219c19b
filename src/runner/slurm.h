/* Slurm: work in parts as a job array, each element of which runs this program for one part: a setting of a sweep, a
 * shard of a profile.  Submitted with sbatch and followed with squeue.  Whether a part is done is decided by what its
 * element wrote, never by Slurm, so that no accounting database is needed and a requeued element does nothing twice.
 *
 * The caller owns every struct and text. */
#ifndef IPW_RUNNER_SLURM_H
#define IPW_RUNNER_SLURM_H

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

/* ERR_NOT_FOUND names the program of Slurm that PATH has not. */
enum err slurm_available(struct error *why) MUST_USE;

struct slurm_array {
    const struct slurm_options *options;
    const char *name;
    const char *folder;  /* for the logs of its elements; absolute */
    const size_t *parts; /* their numbers, in the order in which they are to start */
    size_t count;
    char *const
        *command;       /* argv that NULL ends; the number of the part is added to its last word */
    const char *suffix; /* behind the number */
};

/* A script for sbatch that needs nothing else.  ERR_USAGE names an option that it cannot hold. */
enum err slurm_script(const struct slurm_array *array, struct text *out, struct error *why)
    MUST_USE;

enum { SLURM_JOB_MAX = 24 };
enum err slurm_submit(const char *script, char job[static SLURM_JOB_MAX], struct error *why)
    MUST_USE;

/* Elements that have not ended. */
struct slurm_queue {
    struct slurm_element {
        char job[SLURM_JOB_MAX];
        size_t index; /* from 0, in parts */
    } *elements;
    size_t count, running;
    char reason[64]; /* why one is pending; "" without any */
};

/* jobs: their numbers, separated by commas; those that Slurm has forgotten have ended.  ERR_LOST: it does not answer. */
enum err slurm_queue_read(const char *jobs, struct slurm_queue *out, struct error *why) MUST_USE;
void slurm_queue_release(struct slurm_queue *queue);

/* Calls `collect` again and again until it has nothing to wait for (*left 0) or no element is queued any more.  A
 * controller that does not answer is waited for.  *signal: the number of the one that came, else 0; the job goes on. */
struct slurm_follow {
    enum err (*collect)(void *context, size_t *left, struct error *why);
    void (*show)(void *context, size_t left, const struct slurm_queue *queue);
    void (*unreachable)(void *context, const char *why);
    void *context;
};
enum err slurm_follow(const char *jobs, const struct slurm_follow *follow, size_t *left,
                      int *signal, struct error *why) MUST_USE;

#endif
