/* Running a sweep: the points of its knobs, their order, and each attempt as a process of its own (`ipw run` or
 * `ipw profile`), so that a crash ends an attempt and not the sweep.
 *
 * The caller owns the struct sweep (rundir/sweep.h), which these functions fill in. */
#ifndef IPW_RUNNER_SWEEP_H
#define IPW_RUNNER_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "rundir/sweep.h"

struct sweep_control;

/* Of knobs such as "threads=1,2,4" and "clock=600-1200:150", every combination, or with `paired` the first values of
 * all, then the second ones ...  ERR_USAGE names what is wrong. */
enum err sweep_expand(const char *const *knobs, size_t count, bool paired, struct sweep *sweep,
                      struct error *why) MUST_USE;

/* Each knob must be a {placeholder} of the command or set on the GPU; other braces stay as they are.  ERR_USAGE names one that is not. */
enum err sweep_check_command(const struct sweep *sweep, struct error *why) MUST_USE;

/* The words of the command at a point, each replaced by itself: a value is never split, and no shell sees it.  Ends
 * with NULL; sweep_free_words frees it. */
char **sweep_words(const struct sweep *sweep, size_t point);
void sweep_free_words(char **words);

/* The next attempt that was not made yet; false after the last.  Each round has every point once, in a random order
 * that the seed and the round determine, so that drift does not favor some points. */
struct sweep_step {
    size_t point;
    unsigned repeat;
};
bool sweep_next(const struct sweep *sweep, struct sweep_step *out);

/* Attempts still to be made, those of `until_pct` not counted; and the seconds that they will take, by those made so
 * far, UNKNOWN without any. */
size_t sweep_left(const struct sweep *sweep, double *seconds_left);

/* Makes all attempts that are left, with the GPU's settings of each unless control is NULL.  A command that fails is recorded with its exit code, and the sweep goes on.
 * *signal: the number of the one that ended the sweep, else 0; the attempt under way is then not recorded. */
struct sweep_progress {
    void (*begin)(void *context, const struct sweep *sweep, const struct sweep_step *step);
    void (*end)(void *context, const struct sweep *sweep, const struct sweep_attempt *attempt);
    void *context;
};
enum err sweep_execute(struct sweep *sweep, struct run_writer *writer,
                       struct sweep_control *control, const struct sweep_progress *progress,
                       int *signal, struct error *why) MUST_USE;

#endif
