/* The directory of a sweep: a run directory of kind sweep that contains the runs of its attempts. Its journal has the
 * knobs and settings in the header, then a line for each attempt that has ended; an attempt that was killed leaves no
 * line, so a resumed sweep runs it again.
 *
 * Ownership: a struct sweep owns all its strings and lists; sweep_release frees them. */
#ifndef IPW_RUNDIR_SWEEP_H
#define IPW_RUNDIR_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/xalloc.h"
#include "rundir/run_writer.h"
#include "rundir/setting.h"

struct text;

enum { SWEEP_REPEATS_MAX = 10000 };

/* Why an attempt is not used. */
enum sweep_exclusion {
    SWEEP_USED,
    SWEEP_FAILED,     /* the command's exit status is not 0 */
    SWEEP_THROTTLED,  /* throttled by heat or a power limit */
    SWEEP_OFF_TARGET, /* the requested clock or power limit was not reached */
    SWEEP_UNMEASURED, /* energy or time is not known */
    SWEEP_EXCLUSIONS
};
const char *sweep_exclusion_name(enum sweep_exclusion exclusion); /* "off target" */

/* What the sweep itself saw during an attempt; its other flags are warning codes of its run. */
enum attempt_flag {
#define ATTEMPT_FLAG(constant, ...) ATTEMPT_##constant,
#include "rundir/attempt_flag.def"
#undef ATTEMPT_FLAG
    ATTEMPT_FLAGS
};
const char *attempt_flag_name(enum attempt_flag flag); /* "off_target_clock" */

/* One measurement of a point (one setting of each knob). */
struct sweep_attempt {
    size_t point;
    unsigned repeat;    /* from 1 */
    unsigned tries;     /* attempts at this repeat so far: a later one replaces an earlier */
    char *path;         /* of its run, relative to the sweep's directory; NULL: none */
    int exit_code;      /* of the command, or 128 + signal */
    char *flags;        /* names of flags, and warning codes of its run, comma-separated; or "" */
    unsigned flag_bits; /* 1 << enum attempt_flag, of those names: set by sweep_add */
    char *node, *gpus;  /* host and GPU UUIDs of its run; NULL: unknown */
    double waited_s;    /* before it, for the GPU to cool down or warm up; UNKNOWN: not recorded */
    double wall_s;      /* including startup, idle power and warm-up */
    double seconds, joules, plus_minus, statistical; /* from its summary */
    char *method, *source; /* of its energy; NULL: unknown, as in records of earlier versions */
    double coverage;
};

struct sweep {
    char **knobs; /* names */
    size_t knob_count;
    struct setting *settings; /* of point p and knob k: settings[p * knob_count + k] */
    size_t point_count, point_capacity;
    char **command; /* with {placeholders}; NULL-terminated */
    size_t word_count;
    char **options; /* of `ipw run` or `ipw profile`, before the command; NULL-terminated */
    size_t option_count;
    bool profile;         /* points are profiles: the command is the options of `ipw profile` */
    bool control;         /* the knobs of core/knob.def are set on the GPU */
    char *uncontrolled;   /* why not, with "default" as their only value; NULL: they were */
    char *mode;           /* how the points were chosen: "custom", "baseline", "dvfs", "probe" */
    double time_exponent; /* mode probe: n of the minimized E T^n */
    double min_mhz;       /* modes dvfs and probe: the lowest clock */
    double *clocks;       /* mode probe: candidate clocks of the GPU, highest first; MHz */
    size_t clock_count;
    unsigned seed, repeats, max_repeats;
    double until_pct;  /* repeat until the standard error is this small; UNKNOWN: only `repeats` */
    unsigned reruns;   /* maximum number of reruns of a rejected attempt */
    double cooldown_s; /* wait before each attempt except the first */
    double cooldown_c; /* wait until the GPU is not hotter; UNKNOWN: do not wait */
    double cooldown_min_c;   /* lower bound of its temperature; UNKNOWN: none */
    double cooldown_limit_s; /* maximum wait for the temperature; UNKNOWN: 600 */
    double started_at;
    struct sweep_attempt *attempts; /* in the order in which they ended */
    size_t count, capacity;
    unsigned starts;
    bool ended;         /* all were run */
    double *expected_s; /* of the first expected_count points, by earlier runs of it; or NULL */
    size_t expected_count;
    size_t only; /* 1 + the only point measured by this process; 0: all points */
};

/* Statistics of the attempts at one point that are used.  ± are standard uncertainties. */
struct sweep_figures {
    size_t measured, failed; /* number of attempts: those used, and failed ones */
    double joules, plus_minus;
    double independent; /* the part of the ± that differs between points; UNKNOWN: not recorded */
    double seconds, seconds_error;
    double error_pct; /* standard error of the repeats; UNKNOWN for fewer than two */
};

bool sweep_is(const char *directory);
enum err sweep_load(const char *directory, struct sweep *out, struct error *why) MUST_USE;
void sweep_release(struct sweep *sweep);

/* Appends a copy to a NULL-terminated list of words. */
void sweep_word(char ***words, size_t *count, const char *word);

/* Appends a point, from a text for each knob; all knobs must be there. */
void sweep_add_point(struct sweep *sweep, const char *const *values);
/* Its settings[knob_count]. */
static inline const struct setting *sweep_point(const struct sweep *sweep, size_t point)
{
    return &sweep->settings[point * sweep->knob_count];
}

/* Creates DIR/sweep_<subject>_<UTC time>, or continues the sweep in `directory`; run_writer_close closes it. */
enum err sweep_create(const struct sweep *sweep, const char *parent, struct run_writer *writer,
                      struct error *why) MUST_USE;
enum err sweep_reopen(struct sweep *sweep, const char *directory, struct run_writer *writer,
                      struct error *why) MUST_USE;

/* Opens one point of a sweep, for a process that measures only this point: several processes may do so, each with the
 * lock of its point.  sweep_add then stores an attempt in its folder, from where sweep_collect reads it. */
enum err sweep_open_point(struct sweep *sweep, const char *directory, size_t point,
                          struct run_writer *writer, struct error *why) MUST_USE;
enum err sweep_collect(struct sweep *sweep, struct run_writer *writer, struct error *why) MUST_USE;

/* Drops failed attempts, so that they are run again; or increases the number of repeats, ERR_USAGE if it is not
 * larger.  Without a writer nothing is recorded: for a plan. */
enum err sweep_retry_failed(struct sweep *sweep, struct run_writer *writer, struct error *why)
    MUST_USE;
enum err sweep_repeat_more(struct sweep *sweep, unsigned repeats, struct run_writer *writer,
                           struct error *why) MUST_USE;

void sweep_attempt_release(struct sweep_attempt *attempt);

/* Records an attempt, taking ownership of its strings, also if it fails; synced before it returns. */
enum err sweep_add(struct sweep *sweep, struct run_writer *writer,
                   const struct sweep_attempt *attempt, struct error *why) MUST_USE;

/* Adds a point, values[knob_count], to a running sweep. */
enum err sweep_extend(struct sweep *sweep, struct run_writer *writer, const char *const *values,
                      struct error *why) MUST_USE;

/* Records the end, with a summary, so that the sweep is listed with the runs. */
enum err sweep_finish(struct sweep *sweep, struct run_writer *writer, struct error *why) MUST_USE;

/* The folder of an attempt, with its run, and its log there; the caller frees them. */
char *sweep_folder(const char *directory, size_t point, unsigned repeat) NEVER_NULL;
char *sweep_log(const char *folder) NEVER_NULL;

/* "threads=4, batch=8" */
void sweep_setting(const struct sweep *sweep, size_t point, struct text *out);

/* For the directory of an attempt's run: the length of its sweep's path, 0 if it has none; and its setting, which is
 * not in its own files: a clock that was set is in no command.  "" if it has none. */
size_t sweep_of_run(const char *run);
void sweep_setting_of_run(const char *run, char *to, size_t size);

/* ---- attempts and figures: sweep_figures.c ---- */

/* The bits of a list of flags; other names are ignored. */
unsigned attempt_flags_parse(const char *flags);
enum sweep_exclusion sweep_exclusion_of(const struct sweep_attempt *attempt);
/* Whether its flags exclude it: it is not representative of its setting, and is repeated. */
bool sweep_is_rejected(const struct sweep_attempt *attempt);

struct sweep_figures sweep_figures(const struct sweep *sweep, size_t point);

#endif
