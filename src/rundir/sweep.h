/* The directory of a sweep: a run directory of kind sweep whose measurements are runs of their own, in folders of it.
 * Its journal has the knobs and settings in the header, then a line for each attempt that has ended; an attempt that
 * was killed leaves no line, so a resumed sweep makes it again.
 *
 * Ownership: a struct sweep owns all its texts and lists; sweep_release frees them. */
#ifndef IPW_RUNDIR_SWEEP_H
#define IPW_RUNDIR_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "rundir/run_writer.h"

struct text;

enum { SWEEP_REPEATS_MOST = 10000 };

/* A setting (one value of each knob), measured once. */
struct sweep_attempt {
    size_t point;
    unsigned repeat;   /* from 1 */
    unsigned tries;    /* at this repeat so far: a later one takes the place of an earlier */
    char *path;        /* of its run, below the sweep's directory; NULL: it left none */
    int exit_code;     /* of the command, or 128 + signal */
    char *flags;       /* codes of the warnings of its run, separated by commas; "" for none */
    char *node, *gpus; /* host and UUIDs of the GPUs of its run; NULL when unknown */
    double waited_s;   /* before it, for the GPU to cool down or warm up; UNKNOWN: not recorded */
    double wall_s;     /* with start, idle power and warm-up */
    double seconds, joules, plus_minus, statistical; /* as its summary has them */
    char *method,
        *source; /* likewise, of the energy; NULL when unknown, as in records of earlier versions */
    double coverage;
};

struct sweep {
    char **knobs; /* names */
    size_t knob_count;
    char **values; /* of point p and knob k: values[p * knob_count + k] */
    size_t point_count;
    char **command; /* with {placeholders}; word_count of them, then NULL */
    size_t word_count;
    char **options; /* of `ipw run` or `ipw profile`, before the command; then NULL */
    size_t option_count;
    bool profile;         /* points are profiles: the command is the options of `ipw profile` */
    bool control;         /* knobs gpu-clock, mem-clock and power-limit are set on the GPU */
    char *uncontrolled;   /* why they were not, their only value being "default"; NULL: they were */
    char *mode;           /* how the points were chosen: "custom", "baseline", "dvfs", "probe" */
    double time_exponent; /* mode probe: n of the E T^n that is minimized */
    double least_mhz;     /* modes dvfs and probe: the lowest clock */
    double *clocks;       /* mode probe: those of the GPU to choose from, highest first; MHz */
    size_t clock_count;
    unsigned seed, repeats, most_repeats;
    double
        until_pct; /* repeat until the standard error is so small; UNKNOWN: `repeats` are enough */
    unsigned reruns;         /* of an attempt that was rejected, at most */
    double cooldown_s;       /* before each attempt but the first */
    double cooldown_c;       /* and until the GPU is not hotter; UNKNOWN: not waited for */
    double cooldown_min_c;   /* the lower end of that band; UNKNOWN: none */
    double cooldown_limit_s; /* the GPU is waited for at most so long; UNKNOWN: 600 */
    double started_at;
    struct sweep_attempt *attempts; /* in the order of their ends */
    size_t count, capacity;
    unsigned starts;
    bool ended; /* all were made */
    double *
        expected_s; /* of the first expected_count points, by earlier runs of the same work; NULL */
    size_t expected_count;
    size_t only; /* 1 + the point that this process measures; 0: all of them */
};

/* What the attempts at one point come to.  ± are standard uncertainties. */
struct sweep_figures {
    size_t measured, failed; /* attempts */
    double joules, plus_minus;
    double
        independent; /* the part of the ± that differs between points; UNKNOWN where it is not recorded */
    double seconds, seconds_error;
    double error_pct; /* standard error of the repeats; UNKNOWN under two */
};

bool sweep_is(const char *directory);
enum err sweep_load(const char *directory, struct sweep *out, struct error *why) MUST_USE;
void sweep_release(struct sweep *sweep);

/* Appends a copy to a list of words that NULL ends. */
enum err sweep_word(char ***words, size_t *count, const char *word) MUST_USE;

/* Creates DIR/sweep_<subject>_<UTC time>, or continues the sweep in `directory`; run_writer_close closes it. */
enum err sweep_create(const struct sweep *sweep, const char *parent, struct run_writer *writer,
                      struct error *why) MUST_USE;
enum err sweep_reopen(struct sweep *sweep, const char *directory, struct run_writer *writer,
                      struct error *why) MUST_USE;

/* Opens one point of a sweep, for a process that measures nothing else: many may do so, each with the lock of its
 * point.  sweep_add then keeps an attempt in its folder, from where sweep_collect takes it. */
enum err sweep_open_point(struct sweep *sweep, const char *directory, size_t point,
                          struct run_writer *writer, struct error *why) MUST_USE;
enum err sweep_collect(struct sweep *sweep, struct run_writer *writer, struct error *why) MUST_USE;

/* Forgets the attempts that failed, so that they are made again; or has each point measured more often, ERR_USAGE where
 * that is not more.  Without a writer nothing is recorded: for a plan. */
enum err sweep_retry_failed(struct sweep *sweep, struct run_writer *writer, struct error *why)
    MUST_USE;
enum err sweep_repeat_more(struct sweep *sweep, unsigned repeats, struct run_writer *writer,
                           struct error *why) MUST_USE;

void sweep_attempt_release(struct sweep_attempt *attempt);

/* Records an attempt, whose texts the sweep takes over, also when that fails; synced before it returns. */
enum err sweep_add(struct sweep *sweep, struct run_writer *writer,
                   const struct sweep_attempt *attempt, struct error *why) MUST_USE;

/* Whether the GPU was held back or not at its clock, so that the attempt does not show what its setting is worth. */
bool sweep_is_rejected(const struct sweep_attempt *attempt);

/* Adds a point, values[knob_count], to a sweep under way. */
enum err sweep_extend(struct sweep *sweep, struct run_writer *writer, char *const *values,
                      struct error *why) MUST_USE;

/* Records the end, with a summary, so that the sweep is listed among the runs. */
enum err sweep_finish(struct sweep *sweep, struct run_writer *writer, struct error *why) MUST_USE;

/* The folder of an attempt, in which its run and its log are; false when it does not fit. */
bool sweep_folder(const char *directory, size_t point, unsigned repeat, char *to, size_t size);
bool sweep_log(const char *folder, char *to, size_t size);

struct sweep_figures sweep_figures(const struct sweep *sweep, size_t point);

/* The names of knobs that a sweep with `control` sets on the GPU, not in the command alone. */
bool sweep_knob_is_gpu(const char *name);

/* Whether all knobs have the same values at two points. */
bool sweep_same_point(const struct sweep *sweep, size_t a, size_t b);

/* "threads=4, batch=8" */
void sweep_setting(const struct sweep *sweep, size_t point, struct text *out);

/* Of the directory of an attempt's run: how long that of its sweep is, 0 where it is of none; and its setting, which its
 * own files do not tell: a clock that was set is in no command.  "" where it is of none. */
size_t sweep_of_run(const char *run);
void sweep_setting_of_run(const char *run, char *to, size_t size);

#endif
