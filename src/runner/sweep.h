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
struct text;

enum { SWEEP_POINTS_MOST = 10000, SWEEP_COOLDOWN_LIMIT_S = 600 };

/* Of knobs such as "threads=1,2,4" and "clock=600-1200:150", every combination, or with `paired` the first values of
 * all, then the second ones ...  ERR_USAGE names what is wrong. */
enum err sweep_expand(const char *const *knobs, size_t count, bool paired, struct sweep *sweep,
                      struct error *why) MUST_USE;

/* Of a CSV file: the names of the knobs, then one point per line.  ERR_USAGE names what is wrong, other errors why it cannot
 * be read. */
enum err sweep_read_list(const char *path, struct sweep *sweep, struct error *why) MUST_USE;

/* Mode probe.  The --knob of so many clocks, from clocks[count] (highest first) down to 0.45 of the highest.  And when
 * they were measured, adds points near the optimum of the fitted model, of each setting of the other knobs one at a
 * time; none, and *added false, when the optimum is among the measured ones, and in other modes. */
enum { SWEEP_PROBES_LEAST = 3, SWEEP_PROBES_MOST = 5 };
void sweep_probe_knob(const double *clocks, size_t count, unsigned probes, struct text *out);
enum err sweep_refine(struct sweep *sweep, struct run_writer *writer, bool *added,
                      struct error *why) MUST_USE;

/* Each knob must be a {placeholder} of the command or set on the GPU; other braces stay as they are.  ERR_USAGE names one that is not. */
enum err sweep_check_command(const struct sweep *sweep, struct error *why) MUST_USE;

/* The words of the command at a point, each replaced by itself: a value is never split, and no shell sees it.  Ends
 * with NULL; sweep_free_words frees it. */
char **sweep_words(const struct sweep *sweep, size_t point);
void sweep_free_words(char **words);

/* The next attempt that was not made yet, then those that were spoiled, `reruns` times; false after the last.  Each round
 * has every point once, in a random order that the seed and the round determine, so that drift does not favor some
 * points. */
struct sweep_step {
    size_t point;
    unsigned repeat;
};
bool sweep_next(const struct sweep *sweep, struct sweep_step *out);

/* All that are left in their order, until `visit` returns true; whether it did.  As if each went well. */
typedef bool sweep_visit(void *context, const struct sweep *sweep, const struct sweep_step *step);
bool sweep_each(const struct sweep *sweep, sweep_visit *visit, void *context);

/* The last attempt at a point and repeat; NULL: none was made. */
const struct sweep_attempt *sweep_made(const struct sweep *sweep, size_t point, unsigned repeat);

/* The points with attempts that were not made yet, in the order of the first round; returns how many.  points: NULL, or
 * space for all. */
size_t sweep_unfinished(const struct sweep *sweep, size_t *points);

/* Has an attempt failed, of its one point where it has `only` that? */
bool sweep_has_failures(const struct sweep *sweep);

/* Has the time of a sweep that has measured nothing expected by what is in the folder `parent`: the latest sweep of the same
 * command and options, else runs of its commands, else a profile of its model and dataset, by the number of queries.
 * `from` gets its name; nothing where there is none. */
enum err sweep_expect_from(struct sweep *sweep, const char *parent, struct text *from) MUST_USE;

/* The seconds that an attempt at a point will take, cool-down included, by those made there so far, or else anywhere;
 * UNKNOWN without any.  And the attempts still to be made, those of `until_pct` not counted, with their seconds. */
double sweep_expected(const struct sweep *sweep, size_t point);
size_t sweep_left(const struct sweep *sweep, double *seconds_left);

/* Makes all attempts that are left, with the GPU's settings of each unless control is NULL.  A command that fails is recorded with its exit code, and the sweep goes on.
 * *signal: the number of the one that ended the sweep, else 0; the attempt under way is then not recorded. */
struct sweep_progress {
    void (*begin)(void *context, const struct sweep *sweep, const struct sweep_step *step);
    void (*end)(void *context, const struct sweep *sweep, const struct sweep_attempt *attempt);
    /* It waits for a GPU that is hotter than cooldown_c, or makes the attempt unmeasured for one that is colder than
     * cooldown_min_c. */
    void (*cool)(void *context, const struct sweep *sweep, double celsius);
    void *context;
};
enum err sweep_execute(struct sweep *sweep, struct run_writer *writer,
                       struct sweep_control *control, const struct sweep_progress *progress,
                       int *signal, struct error *why) MUST_USE;

/* sweep_open_point for an element of a job array: one that was requeued waits for its predecessor to end. */
enum err sweep_wait_for_point(struct sweep *sweep, const char *directory, size_t point,
                              struct run_writer *writer, struct error *why) MUST_USE;

#endif
