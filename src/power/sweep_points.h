/* The measurements of a sweep (rundir/sweep.h), for all users of one: for each attempt the figures of its run's
 * summary, and why it is excluded, if it is; for each setting the means of the used attempts.  Figures are per query if
 * the points are profiles with the same number of queries (their time is the mean latency of a query), else per run:
 * where a knob changes how the work is divided into queries, one query is not the same work at every setting.
 *
 * Ownership: sweep_points_release frees what sweep_points_load allocates. */
#ifndef IPW_POWER_SWEEP_POINTS_H
#define IPW_POWER_SWEEP_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "power/optimize.h"
#include "rundir/quality.h"
#include "rundir/sweep.h"

struct clock_choice;
struct findings;
struct freq_points;
struct freq_source;
struct params;

/* Quality measures of a setting: these of any run, then the metrics of all answers that the runs have (ipw.quality). */
enum {
    QUALITY_ACCURACY,
    QUALITY_SCORE,
    QUALITY_PERPLEXITY,
    QUALITY_BITS_PER_BYTE,
    QUALITIES_NAMED
};
enum { SWEEP_QUALITIES_MAX = QUALITIES_NAMED + SUMMARY_QUALITIES_MAX };

struct sweep_quality {
    char name[24]; /* "wer" */
    bool is_lower_better;
};

/* Figures of the summary of an attempt's run. */
struct sweep_measurement {
    enum sweep_exclusion exclusion;
    char gpu[40];                 /* its name, or the hardware of the run if it has none */
    char application[64];         /* the model of a profile, or the command */
    char method[24], source[160]; /* of the energy: "estimated" ...; "": not known */
    double coverage;
    double joules, plus_minus, seconds;    /* as measured, also if the attempt is excluded */
    double watts;                          /* mean power of the run */
    double qualities[SWEEP_QUALITIES_MAX]; /* as those of the sweep; UNKNOWN: the run has none */
    double idle_w, temperature_c;
    double queries;                                /* answered */
    double planned_queries;                        /* including failed ones */
    double query_joules, query_seconds;            /* of one query; time: the mean latency */
    double activity[FREQ_ACTIVITIES];              /* of the busiest GPU */
    struct freq_value latency[OPTIMIZE_LATENCIES]; /* set by sweep_choice_latencies; else UNKNOWN */
};

struct sweep_points {
    struct sweep sweep;              /* energy and time of its attempts are per query or per run */
    struct sweep_measurement *items; /* one for each of its attempts */
    bool is_per_query;
    bool is_uneven; /* profiles with different numbers of queries: figures are per run */
    struct sweep_quality qualities[SWEEP_QUALITIES_MAX];
    size_t quality_count;
    size_t
        quality; /* of the qualities: the first metric that an attempt has, else the first of the others; may be
                       changed */
    long clock;   /* the knob that is the GPU clock; -1: none */
    size_t idled; /* used attempts in which the GPU was idle */
};

bool sweep_points_is(const char *directory); /* is a sweep's directory */
enum err sweep_points_load(const char *directory, struct sweep_points *out, struct error *why)
    MUST_USE;
void sweep_points_release(struct sweep_points *points);

/* The index of a quality by its name; the count if there is none. */
size_t sweep_points_quality(const struct sweep_points *points, const char *name);
/* Means over the used attempts, which figures.measured counts; qualities[quality_count] may be NULL. */
struct sweep_figures sweep_points_figures(const struct sweep_points *points, size_t point,
                                          double *qualities);
/* Number of attempts excluded for a reason. */
size_t sweep_points_excluded(const struct sweep_points *points, enum sweep_exclusion exclusion);
/* "2 failed, 1 throttled"; "" where all are used. */
void sweep_points_exclusions(const struct sweep_points *points, char *to, size_t size);
/* Whether the energy of any used attempt was estimated, not measured. */
bool sweep_points_is_estimated(const struct sweep_points *points);

/* The settings to choose from, in the order of the sweep.  ERR_NO_DATA if none was measured. */
enum err sweep_points_settings(const struct sweep_points *points, const struct params *where,
                               struct setting_points *out, struct error *why) MUST_USE;

/* The baseline of savings: the setting with clocks and power limit at their default, else at the highest clock, else
 * the first. */
size_t sweep_points_baseline(const struct sweep_points *points,
                             const struct setting_points *settings);

/* Number of settings without a used attempt; the last of them into example[size], which may be NULL. */
size_t sweep_points_missing(const struct sweep_points *points, char *example, size_t size);
/* Comma-separated UUIDs of the GPUs that every used attempt ran on; NULL: unknown, or not always the same. */
const char *sweep_points_gpus(const struct sweep_points *points);

/* The GPU's knob that a knob of the sweep sets, in the command or by --control; KNOB_COUNT: another knob. */
enum gpu_knob sweep_points_gpu_knob(const struct sweep_points *points, size_t knob);

/* Whether the clock is the only knob, with enough clocks for a fit or without a default for comparison. */
bool sweep_points_is_fitted(const struct sweep_points *points);
/* Why no optimum of this sweep is meaningful: the GPU was idle; NULL: no known reason. */
const char *sweep_points_void(const struct sweep_points *points);

/* Appends every attempt as a measurement at a clock (the path of `source` is the sweep's directory).  Other knobs
 * are part of the application's name.  ERR_BAD_VALUE without a clock knob. */
enum err sweep_points_read(struct freq_points *points, const struct freq_source *source,
                           struct error *why) MUST_USE;
/* The same for a sweep that is loaded and has a clock; source->columns is ignored. */
enum err sweep_points_add(const struct sweep_points *points, const struct freq_source *source,
                          struct freq_points *out, struct error *why) MUST_USE;

/* ---- the best setting (sweep_choice.c) ---- */

struct sweep_question {
    const struct sweep_points *points;
    const struct optimize_goal *goal;
    const struct params *where; /* knob = value; NULL: all settings */
    const char *baseline;       /* a setting; NULL: sweep_points_baseline */
    const char *quality_file;   /* quality per setting, see optimize.h; NULL: that of the runs */
};
/* Adds flags and findings (may be NULL) about the sweep as a whole to a choice. */
void sweep_choice_note(const struct sweep_points *points, struct clock_choice *out,
                       struct findings *findings);
/* Reads the latencies for the goal's SLOs from the records of the runs.  UNKNOWN if a run has too few queries for
 * the upper end of its percentile.  ERR_USAGE if the points are not profiles. */
enum err sweep_choice_latencies(struct sweep_points *points, const char *directory,
                                const struct optimize_goal *goal, struct error *why) MUST_USE;
/* As measured; excluded attempts are added to the findings, which may be NULL. */
enum err sweep_choice_of_settings(const struct sweep_question *question, struct clock_choice *out,
                                  struct findings *findings, struct error *why) MUST_USE;
/* By a fit if sweep_points_is_fitted, for the GPU with the most measurements; else as measured. */
enum err sweep_choice_of(const struct sweep_points *points, const char *directory,
                         const struct optimize_goal *goal, struct clock_choice *out,
                         struct error *why) MUST_USE;
/* The best by an objective, and what the repeats say about the others. */
struct best_setting {
    size_t point;   /* point_count: none */
    bool is_tested; /* there are repeats */
    size_t alike;   /* others that cannot be distinguished from it */
};
/* The best by each of the goals, out[count], among the candidates of a choice by sweep_choice_of, whose figures are the
 * same for every goal: nothing is read or fitted again. */
enum err sweep_choice_best(const struct sweep_points *points, const struct clock_choice *choice,
                           const struct optimize_goal *goals, size_t count,
                           struct best_setting *out, struct error *why) MUST_USE;

#endif
