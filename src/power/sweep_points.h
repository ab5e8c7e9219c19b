/* The measurements of a sweep (rundir/sweep.h) as all that read one take them: of each attempt what the summary of its
 * run says, and why it is left out where it is; of each setting the means of the others.  Figures are per query where
 * the points are profiles with the same number of queries (their time is the mean latency of a query), else per run:
 * where a knob changes how the work is cut into queries, one query is not the same work at every setting.
 *
 * Ownership: sweep_points_release frees what sweep_points_load filled. */
#ifndef IPW_POWER_SWEEP_POINTS_H
#define IPW_POWER_SWEEP_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "power/optimize.h"
#include "rundir/sweep.h"

struct clock_choice;
struct data_findings;
struct freq_points;
struct freq_source;
struct params;

/* Why an attempt is not used. */
enum sweep_exclusion {
    SWEEP_USED,
    SWEEP_FAILED,     /* the command's exit status is not 0 */
    SWEEP_THROTTLED,  /* heat or a power limit held the GPU back */
    SWEEP_OFF_TARGET, /* the clock or power limit that was set was not reached */
    SWEEP_UNMEASURED, /* energy or time is not known */
    SWEEP_EXCLUSIONS
};
const char *sweep_exclusion_name(enum sweep_exclusion exclusion); /* "off target" */

/* What the quality of a setting may be.  Of a perplexity and of bits per byte less is better. */
enum sweep_quality {
    QUALITY_ACCURACY,
    QUALITY_SCORE,
    QUALITY_PERPLEXITY,
    QUALITY_BITS_PER_BYTE,
    SWEEP_QUALITIES
};
const char *sweep_quality_name(enum sweep_quality quality); /* "bits_per_byte" */

/* What the summary of an attempt's run says. */
struct sweep_measurement {
    enum sweep_exclusion exclusion;
    char gpu[40];                 /* its name, or the hardware of the run where it has none */
    char application[64];         /* the model of a profile, or the command */
    char method[24], source[160]; /* of the energy: "estimated" ...; "": not known */
    double coverage;
    double joules, plus_minus, seconds; /* as measured, also where the attempt is left out */
    double watts;                       /* mean power of the run */
    double qualities[SWEEP_QUALITIES];  /* UNKNOWN: the run has none */
    double idle_w, temperature_c;
    double queries;                                /* that were answered */
    double planned_queries;                        /* also those that failed */
    double query_joules, query_seconds;            /* what one cost; time: the mean latency */
    double activity[FREQ_ACTIVITIES];              /* of the busiest GPU */
    struct freq_value latency[OPTIMIZE_LATENCIES]; /* of sweep_choice_latencies; else UNKNOWN */
};

struct sweep_points {
    struct sweep sweep;              /* energy and time of its attempts are per query or per run */
    struct sweep_measurement *items; /* one for each of its attempts */
    bool is_per_query;
    bool is_uneven; /* profiles whose settings have different numbers of queries: per run */
    enum sweep_quality quality; /* the first that an attempt has; it may be set to another */
    long clock;                 /* the knob that is the GPU clock; -1: none */
    size_t idled;               /* attempts that are used, and at which the GPU was idle */
};

bool sweep_points_is(const char *directory); /* a sweep's */
enum err sweep_points_load(const char *directory, struct sweep_points *out, struct error *why)
    MUST_USE;
void sweep_points_release(struct sweep_points *points);

/* Means of the attempts that are used, which figures.measured counts; `quality` may be NULL. */
struct sweep_figures sweep_points_figures(const struct sweep_points *points, size_t point,
                                          double *quality);
/* How many attempts are left out for a reason. */
size_t sweep_points_excluded(const struct sweep_points *points, enum sweep_exclusion exclusion);
/* "2 failed, 1 throttled"; "" where all are used. */
void sweep_points_exclusions(const struct sweep_points *points, char *to, size_t size);
/* Whether the energy of an attempt that is used was estimated, not measured. */
bool sweep_points_is_estimated(const struct sweep_points *points);

/* The settings to choose from, in the order of the sweep.  ERR_NO_DATA where none was measured. */
enum err sweep_points_settings(const struct sweep_points *points, const struct params *where,
                               struct setting_points *out, struct error *why) MUST_USE;

/* The point of a setting as struct setting_points has it, which may be cut; point_count: none. */
size_t sweep_points_find(const struct sweep_points *points, const char *setting);

/* What savings are relative to: the setting of `settings` with clocks and power limit at their default, else at the
 * highest clock, else the first. */
size_t sweep_points_baseline(const struct sweep_points *points,
                             const struct setting_points *settings);

/* Settings that no attempt which is used was made at; the last of them into example[size], which may be NULL. */
size_t sweep_points_missing(const struct sweep_points *points, char *example, size_t size);
/* The UUIDs, with commas, of the GPUs that every attempt which is used ran on; NULL: not known, or others each time. */
const char *sweep_points_gpus(const struct sweep_points *points);

/* The knobs that are set on the GPU, by the name of their option of nvidia-smi: "-lgc", "-lmc", "-pl"; NULL: others. */
const char *sweep_points_gpu_option(const struct sweep_points *points, size_t knob);

/* Whether the clock is the only knob, at clocks enough for a fit or without a default to compare them with. */
bool sweep_points_is_fitted(const struct sweep_points *points);
/* Why no optimum of this sweep is meaningful: the GPU idled; NULL: nothing is known against it. */
const char *sweep_points_void(const struct sweep_points *points);

/* Appends every attempt as a measurement at a clock (the path of `source` is the sweep's directory).  Other knobs are
 * part of the application's name.  ERR_BAD_VALUE without a knob that is the clock. */
enum err sweep_points_read(struct freq_points *points, const struct freq_source *source,
                           struct error *why) MUST_USE;

/* ---- the best setting (sweep_choice.c) ---- */

struct sweep_question {
    const struct sweep_points *points;
    const struct optimize_goal *goal;
    const struct params *where; /* knob = value; NULL: all settings */
    const char *baseline;       /* a setting; NULL: sweep_points_baseline */
    const char *quality_file;   /* the quality of each setting, see optimize.h; NULL: of the runs */
};
/* Adds what a sweep as a whole says of a choice to its flags and to the findings, which may be NULL. */
enum err sweep_choice_note(const struct sweep_points *points, struct clock_choice *out,
                           struct data_findings *findings) MUST_USE;
/* Reads the latencies that the goal has an SLO for from the records of the runs, for all that follows.  UNKNOWN where a run
 * has too few queries for an upper end of its percentile.  ERR_USAGE where the points are no profiles. */
enum err sweep_choice_latencies(struct sweep_points *points, const char *directory,
                                const struct optimize_goal *goal, struct error *why) MUST_USE;
/* As measured; what was left out is added to the findings, which may be NULL. */
enum err sweep_choice_of_settings(const struct sweep_question *question, struct clock_choice *out,
                                  struct data_findings *findings, struct error *why) MUST_USE;
/* By a fit where sweep_points_is_fitted, of the GPU that most was measured on; else as measured. */
enum err sweep_choice_of(const struct sweep_points *points, const char *directory,
                         const struct optimize_goal *goal, struct clock_choice *out,
                         struct error *why) MUST_USE;

#endif
