/* Several runs side by side: the figures of each, and how they depend on concurrency, model size and precision.  A
 * struct run_point is plain data and owns nothing. */
#ifndef IPW_ANALYSIS_ACROSS_H
#define IPW_ANALYSIS_ACROSS_H

#include <stddef.h>

#include "core/err.h"
#include "metrics/uncertainty.h"
#include "rundir/run_table.h"

struct result;

struct run_point {
    char directory[1024]; /* complete: used to open files in it */
    char model[128], hardware[64], dataset[128];
    char setting[200]; /* for a run of a sweep; "" otherwise */
    size_t sweep;      /* length of the sweep's directory prefix; 0: not part of a sweep */
    size_t queries, failed, canceled;
    double concurrency, parameters, bits; /* bits per weight, from the model's name */
    double joules_per_query, joules_per_output_token, output_tokens_per_s, watts;
    double accuracy, ipj;
};

/* The table must have RUN_ACROSS_NEEDS. */
#define RUN_ACROSS_NEEDS                                                                           \
    (RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_LATENCY))
void run_point_of(const struct run_table *table, struct run_point *out);

/* Bits per weight from the model's name: 16 for "fp16", 4 for "q4_K_M" or "awq"; UNKNOWN. */
double bits_in_name(const char *model);

/* The result "scaling" of several runs: "data" has "runs" and "against".  The caller releases *out in any case;
 * ERR_NO_DATA for fewer than two. */
enum err across_run(const struct run_point *points, size_t count, struct result *out) MUST_USE;

/* ---- figures with errors ---- */

/* 95 % of a normal distribution lie within this many standard deviations. */
#define NORMAL_95 1.96

/* Errors are NORMAL_95 standard uncertainties, of the questions alone until run_figures_settle; accuracy has its 95 %
 * interval. */
struct run_figures {
    struct run_point point;
    char method[24]; /* energy method: "counter", "estimated"; "" if unknown */
    struct uncertainty uncertainty;
    double accuracy_low, accuracy_high;
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
enum err run_figures_of(const struct run_table *table, struct run_figures *out) MUST_USE;

/* For runs shown together: if different sensors measured them, errors are extended by those of the sensors.  Returns
 * the common part (uncertainty_join). */
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
enum err run_names_of(const struct run_point *const *points, size_t count, size_t letters,
                      struct run_names *out) MUST_USE;
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
enum err front_to_result(const struct front_axis *x, const struct front_axis *y,
                         const struct front_point *points, size_t count, struct result *result)
    MUST_USE;

#endif
