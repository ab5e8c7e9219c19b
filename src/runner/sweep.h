/* Running a sweep: the points of its knobs, their order, and each attempt as a separate process (`ipw run` or `ipw
 * profile`), so that a crash ends an attempt and not the sweep.
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

enum { SWEEP_POINTS_MAX = 10000, SWEEP_COOLDOWN_LIMIT_S = 600 };

/* Expands knobs such as "threads=1,2,4" and "clock=600-1200:150" into all combinations, or with `paired` into the first
 * values of all, then the second ones ...  ERR_USAGE names the invalid one. */
enum err sweep_expand(const char *const *knobs, size_t count, bool paired, struct sweep *sweep,
                      struct error *why) MUST_USE;

/* Reads points from a CSV file: the names of the knobs, then one point per line.  ERR_USAGE names what is invalid,
 * other errors why it cannot be read. */
enum err sweep_read_list(const char *path, struct sweep *sweep, struct error *why) MUST_USE;

/* Mode probe: the --knob for a number of clocks, from clocks[count] (highest first) down to 0.45 of the highest; and,
 * after they were measured, points near the optimum of the fitted model, one per setting of the other knobs. *added is
 * false if the optimum was already measured, and in other modes. */
enum { SWEEP_PROBES_MIN = 3, SWEEP_PROBES_MAX = 5 };
void sweep_probe_knob(const double *clocks, size_t count, unsigned probes, struct text *out);
enum err sweep_refine(struct sweep *sweep, struct run_writer *writer, bool *added,
                      struct error *why) MUST_USE;

/* Each knob must be a {placeholder} of the command or be set on the GPU; other braces are literal.  ERR_USAGE: one is
 * neither. */
enum err sweep_check_command(const struct sweep *sweep, struct error *why) MUST_USE;

/* The command's words at a point, substituted word by word: a value is never split, and there is no shell.  Ends with
 * NULL; sweep_free_words frees it. */
char **sweep_words(const struct sweep *sweep, size_t point);
void sweep_free_words(char **words);

/* The next attempt that was not run yet, then rejected ones, up to `reruns` times; false after the last.  Each round
 * has every point once, in a random order determined by the seed and the round, so that drift does not favor some
 * points. */
struct sweep_step {
    size_t point;
    unsigned repeat;
};
bool sweep_next(const struct sweep *sweep, struct sweep_step *out);

/* Visits all remaining attempts in order, until `visit` returns true; returns whether it did. */
typedef bool sweep_visit(void *context, const struct sweep *sweep, const struct sweep_step *step);
bool sweep_each(const struct sweep *sweep, sweep_visit *visit, void *context);

/* The last attempt at a point and repeat; NULL: none. */
const struct sweep_attempt *sweep_find(const struct sweep *sweep, size_t point, unsigned repeat);

/* The points with remaining attempts, in the order of the first round; returns their number.  points: NULL, or space
 * for all. */
size_t sweep_unfinished(const struct sweep *sweep, size_t *points);

/* Whether an attempt has failed, at its one point if it has `only` that. */
bool sweep_has_failures(const struct sweep *sweep);

/* Estimates the duration of a new sweep from the folder `parent`: from the latest sweep of the same command and
 * options, else from runs of its commands, else from a profile of its model and dataset, by the number of queries.
 * `from` gets the name of the source; empty if there is none. */
void sweep_expect_from(struct sweep *sweep, const char *parent, struct text *from);

/* Expected seconds of an attempt at a point, including cool-down, from those made there so far, or else anywhere;
 * UNKNOWN without any.  And the remaining attempts, without those of `until_pct`, with their seconds. */
double sweep_expected(const struct sweep *sweep, size_t point);
size_t sweep_left(const struct sweep *sweep, double *seconds_left);

/* Runs all remaining attempts, with the GPU's settings of each unless control is NULL. A command that fails is
 * recorded with its exit code, and the sweep continues. *signal: what ended the sweep, else 0; the current attempt
 * is then not recorded. */
struct sweep_progress {
    void (*begin)(void *context, const struct sweep *sweep, const struct sweep_step *step);
    void (*end)(void *context, const struct sweep *sweep, const struct sweep_attempt *attempt);
    /* Called while waiting for a GPU hotter than cooldown_c, or while warming up one colder than cooldown_min_c. */
    void (*cool)(void *context, const struct sweep *sweep, double celsius);
    /* Called while waiting for the current attempt, which was interrupted (runner/await.h). */
    void (*slow)(void *context, const struct sweep *sweep, int number, unsigned signals);
    void *context;
};
enum err sweep_execute(struct sweep *sweep, struct run_writer *writer,
                       struct sweep_control *control, const struct sweep_progress *progress,
                       int *signal, struct error *why) MUST_USE;

/* sweep_open_point for an element of a job array: a requeued element waits for its predecessor to end. */
enum err sweep_wait_for_point(struct sweep *sweep, const char *directory, size_t point,
                              struct run_writer *writer, struct error *why) MUST_USE;

#endif
