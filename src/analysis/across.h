/* Several runs side by side: the figures of each, and how they depend on concurrency, model size and precision.  A
 * struct run_point is plain data and owns nothing: its directory is that of the table, whose string the caller keeps. */
#ifndef IPW_ANALYSIS_ACROSS_H
#define IPW_ANALYSIS_ACROSS_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/quality_axis.h"
#include "core/err.h"
#include "metrics/uncertainty.h"
#include "rundir/run_table.h"

struct compare_groups;
struct freq_curve;
struct result;
struct sweep_points;

struct run_point {
    const char *directory; /* complete: used to open files in it */
    char model[128], hardware[64], dataset[128];
    char setting[200]; /* for a run of a sweep; "" otherwise */
    size_t sweep;      /* length of the sweep's directory prefix; 0: not part of a sweep */
    size_t queries, failed, canceled;
    double concurrency, parameters, bits; /* bits per weight, from the model's name */
    double joules_per_query, joules_per_output_token, output_tokens_per_s, watts;
    double accuracy, ipj;
    struct summary_quality
        quality; /* the first metric of all answers that is known; else without a name */
};

/* The table must have RUN_ACROSS_NEEDS. */
#define RUN_ACROSS_NEEDS                                                                           \
    (RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_LATENCY))
void run_point_of(const struct run_table *table, struct run_point *out);

/* The result "scaling" of several runs: "data" has "runs" and "against".  The caller releases *out in any case;
 * ERR_NO_DATA for fewer than two. */
enum err across_run(const struct run_point *points, size_t count, struct result *out) MUST_USE;

/* ---- the spread between runs: run_spread.c ---- */

/* How far repeats of one configuration scatter: standard deviations relative to the figure, with their degrees of
 * freedom. */
struct run_spread {
    double energy, energy_freedom, time, time_freedom;
    size_t runs; /* repeats in the run index; 0: all assumed */
};
#define SPREAD_ASSUMED     0.05
#define FREEDOM_ASSUMED    1e6 /* a standard deviation that is not estimated */
#define RUN_SPREAD_ASSUMED {SPREAD_ASSUMED, FREEDOM_ASSUMED, SPREAD_ASSUMED, FREEDOM_ASSUMED, 0}

/* Of the repeats of these two runs' configurations on this machine, which the run index beside each has; they may be the
 * same run. */
void run_spread_of(const struct run_table *a, const struct run_table *b, struct run_spread *out);

/* ---- figures with errors ---- */

/* 95 % of a normal distribution lie within this many standard deviations. */
#define NORMAL_95 1.96

/* Errors are NORMAL_95 standard uncertainties, of the questions alone until run_figures_settle; accuracy has its 95 %
 * interval.  Repetitions of a command are runs: their errors have no spread to be added. */
struct run_figures {
    struct run_point point;
    char method[24]; /* energy method: "counter", "estimated"; "" if unknown */
    struct uncertainty uncertainty;
    struct run_spread spread;
    double accuracy_low, accuracy_high;
    double accuracy_at_most, unread_share; /* if all unread answers were correct; or UNKNOWN */
    double joules_per_query_error, joules_per_output_token_error;
    double prompt_tokens;                              /* mean */
    double ttft_s, latency_s;                          /* medians */
    double seconds_per_query, seconds_per_query_error; /* mean latency */
    double edp, edp_error;   /* J·s: joules per query times seconds per query */
    double ed2p, ed2p_error; /* J·s²: times seconds again */
    bool is_command;         /* a run of `ipw run`: its queries are runs of a command */
};

/* The table must have RUN_FIGURES_NEEDS. */
#define RUN_FIGURES_NEEDS                                                                          \
    (RUN_ACROSS_NEEDS | RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_INDEX) |    \
     RUN_WANT(RUN_REPEAT))
#define RUN_FIGURES_WORDS (RUN_WANT(RUN_SOURCE) | RUN_WANT(RUN_METHOD))
void run_figures_of(const struct run_table *table, struct run_figures *out);

/* What the errors of several runs shown together include of the spread between runs: ", with 5 % between runs
 * (assumed)"; "" if each has repetitions. */
const char *run_spread_note(const struct run_figures *runs, size_t count, char to[static 64]);

/* For several runs shown together: errors are extended by the spread between runs, as in comparisons of one run a side,
 * and, if different sensors measured them, by those of the sensors.  Returns the common part (uncertainty_join). */
struct uncertainty run_figures_settle(struct run_figures *runs, size_t count);

/* ---- names: run_names.c ---- */

/* Names of runs shown together, from what differs between them: model, hardware, dataset, concurrency; from their
 * setting if they are of one sweep, from their directory if nothing differs.  Tables, plots and pages all use these
 * names. */
enum { RUN_NAME_MAX = 256 };

/* Released by the caller. */
struct run_names {
    char family[RUN_NAME_MAX]; /* common prefix of all models, removed from the names: "ipw"; "" */
    char (*names)[RUN_NAME_MAX]; /* unique */
    size_t count;
};

/* Names have about `letters` letters at most; 0: unlimited.  The model's name is abbreviated in the middle. */
void run_names_of(const struct run_point *const *points, size_t count, size_t letters,
                  struct run_names *out);
void run_names_release(struct run_names *names);

/* ---- the Pareto frontier: front.c ---- */

/* A figure that can be better or worse; units are constants. */
struct front_axis {
    const char *key, *label, *unit;
    bool is_low_better;
};

/* A run with both figures; errors may be UNKNOWN, texts NULL. */
struct front_point {
    const char *id, *name, *group, *method;
    double x, x_error, y, y_error;
};

/* The groups "x" and "y" and the list "points", with those on the frontier marked; the only error is ERR_NO_MEMORY. */
void front_to_result(const struct front_axis *x, const struct front_axis *y,
                     const struct front_point *points, size_t count, struct result *result);

/* ---- settings: run_settings.c ---- */

/* The settings that runs shown together make: a run, or the repeats of one setting with the means of their figures.
 * Intervals are of 95 %, of what can differ between runs.  Released by the caller. */
struct run_settings {
    struct run_figures *means; /* of each setting; the directory is that of its first run */
    size_t *order, *sizes;     /* its runs: places among the runs, one setting after the other */
    size_t count;
    struct uncertainty common; /* of all energies */
};

/* Settles the errors of the runs first (run_figures_settle).  Every text of `groups` is one of the runs' directories, by
 * its address. */
void run_settings_of(const struct compare_groups *groups, struct run_figures *runs, size_t count,
                     struct run_settings *out);
void run_settings_release(struct run_settings *settings);

/* Fills *out, zero at first, which the caller releases: "names" of the runs, by what differs between them; "family": what
 * all models share; "common", the relative error that all energies share, or null;
 * "mixed": different sensors measured them; and "settings": [{"name", "runs": [place among the runs], "hardware",
 * "queries", "concurrency", figures of struct run_point, "intervals": {"accuracy", "joules_per_query"},
 * "pareto_optimal"}]. */
void run_settings_result(const struct run_settings *settings, const struct run_figures *runs,
                         size_t count, struct result *out);

/* ---- ranking: ranking.c ---- */

/* Settings in order of merit: the most accurate and the cheapest, and whether others differ from them by the test of
 * `ipw compare`; and the Pareto-optimal ones. */

enum { NO_SETTING = -1 };

/* How a setting compares with the best one. */
struct stand {
    bool is_peer;       /* tested, and not distinguishable from the best */
    const char *caveat; /* compare_caveat; "" for a verdict */
};

struct standing {
    long best, next;  /* NO_SETTING if there is none, or the figure is unknown */
    struct stand *of; /* of each setting */
};

/* Marks the points that are Pareto-optimal in quality against energy per query among those of their dataset: answers to
 * different questions are no alternatives. */
void run_points_mark(const struct quality_axis *axis, const struct run_point *const *points,
                     size_t count, bool *optimal);

struct run_ranking {
    size_t datasets; /* several: nothing is the best of all, and both standings are empty */
    const struct run_settings *settings;
    struct run_names names;
    bool *optimal;                    /* of each setting */
    const char *method;               /* of all energies; NULL: they differ */
    struct standing accuracy, energy; /* the most accurate, of equals the cheapest; the cheapest */
};

/* `model`: as in struct compare_options.  Names have about `letters` letters at most. */
void run_ranking_of(const struct run_settings *settings, const struct compare_groups *groups,
                    const char *model, size_t letters, struct run_ranking *out);
void run_ranking_release(struct run_ranking *ranking);

/* ---- against the clock: clock_settings.c ---- */

/* Energy, time and their products (EDP, ED2P) against the clock: of runs that differ in nothing else, of the settings of
 * a sweep, or of measurements that were imported.  The clock of a run is that of its busiest GPU, or of the CPU, while
 * requests ran, from its samples; that of a sweep is the setting, or another knob that was swept. */

enum clock_measure { CLOCK_ENERGY, CLOCK_TIME, CLOCK_EDP, CLOCK_ED2P, CLOCK_MEASURES };

/* A run at its clock, or a setting of a sweep. */
struct clock_setting {
    const struct run_figures *run; /* NULL: of a sweep */
    double x;                      /* the clock in MHz, or another knob of a sweep */
    bool is_cpu;
    double values[CLOCK_MEASURES], errors[CLOCK_MEASURES]; /* errors: 95 % */
};

/* Settings with clock, energy and time, in order of the clock. */
struct clock_settings {
    struct clock_setting *items;
    size_t count;
    const char *each; /* "query", "run" */
    const char *knob; /* knob of a sweep other than the clock; NULL: the clock */
    char label[120];  /* of the x axis */
    double same;      /* settings within this relative difference are one */
    /* Of a sweep or imported measurements: */
    const char *application, *device, *method; /* method: "" if unknown */
    size_t measurements;                       /* attempts, or runs, in all settings */
    char excluded[160];                        /* why attempts were excluded; "" */
};

/* ERR_NO_DATA: fewer than two, or the clocks do not differ, or the runs differ in something else. */
enum err clock_settings_of_runs(const struct run_figures *runs, size_t count,
                                struct clock_settings *out, struct error *why) MUST_USE;
enum err clock_settings_of_sweep(const struct sweep_points *points, struct clock_settings *out,
                                 struct error *why) MUST_USE;
enum err clock_settings_of_curve(const struct freq_curve *curve, struct clock_settings *out,
                                 struct error *why) MUST_USE;
void clock_settings_release(struct clock_settings *settings);

/* The mean of the settings from `from` on that have the same x; returns the first of the others. */
size_t clock_settings_mean(const struct clock_settings *settings, enum clock_measure measure,
                           size_t from, double *x, double *value);
/* The first with the smallest value. */
const struct clock_setting *clock_settings_lowest(const struct clock_settings *settings,
                                                  enum clock_measure measure);

#endif
