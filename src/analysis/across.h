/* Several runs side by side: what each comes to, and how that goes with concurrency, model size and
 * precision.  A struct run_point is plain data and owns nothing. */
#ifndef IPW_ANALYSIS_ACROSS_H
#define IPW_ANALYSIS_ACROSS_H

#include <stddef.h>

#include "core/err.h"
#include "metrics/uncertainty.h"
#include "rundir/run_table.h"

struct result;

struct run_point {
    char directory[1024]; /* whole: files in it are read by this name */
    char model[128], hardware[64], dataset[128];
    char setting[200]; /* of a run of a sweep; "": of another */
    size_t sweep;      /* letters of the directory that are the sweep's; 0: it is of none */
    size_t queries, failed;
    double concurrency, parameters, bits; /* of a weight, by the model's name */
    double joules_per_query, joules_per_output_token, output_tokens_per_s, watts;
    double accuracy, ipj;
};

/* The table must have RUN_ACROSS_NEEDS. */
#define RUN_ACROSS_NEEDS                                                                           \
    (RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_LATENCY))
void run_point_of(const struct run_table *table, struct run_point *out);

/* Bits of a weight by the model's name: 16 of "fp16", 4 of "q4_K_M" or "awq"; UNKNOWN. */
double bits_in_name(const char *model);

/* The result "scaling" of several runs: "data" has "runs" and "against".  *out is the caller's to release, whatever
 * is returned; ERR_NO_DATA under two. */
enum err across_run(const struct run_point *points, size_t count, struct result *out) MUST_USE;

/* ---- figures with errors ---- */

/* 95 % of a normal distribution lie within so many standard uncertainties. */
#define NORMAL_95 1.96

/* Errors are NORMAL_95 standard uncertainties, of the questions alone until run_figures_settle; accuracy has its 95 %
 * interval. */
struct run_figures {
    struct run_point point;
    char method[24]; /* of the energy: "counter", "estimated"; "" when it is not known */
    struct uncertainty uncertainty;
    double accuracy_low, accuracy_high;
    double joules_per_query_error, joules_per_output_token_error;
    double prompt_tokens;                              /* mean */
    double ttft_s, latency_s;                          /* medians */
    double seconds_per_query, seconds_per_query_error; /* mean latency */
    double edp, edp_error;   /* J·s: joules per query times seconds per query */
    double ed2p, ed2p_error; /* J·s²: times seconds again */
    bool is_command;         /* of `ipw run`: its queries are runs of a command */
};

/* The table must have RUN_FIGURES_NEEDS. */
#define RUN_FIGURES_NEEDS                                                                          \
    (RUN_ACROSS_NEEDS | RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_INDEX) |    \
     RUN_WANT(RUN_REPEAT))
#define RUN_FIGURES_WORDS (RUN_WANT(RUN_SOURCE) | RUN_WANT(RUN_METHOD))
enum err run_figures_of(const struct run_table *table, struct run_figures *out) MUST_USE;

/* Of runs that stand together: where other sensors measured some of them, errors are made to include those of the
 * sensors.  Returns what is common to all (uncertainty_join). */
struct uncertainty run_figures_settle(struct run_figures *runs, size_t count);

/* ---- names: run_names.c ---- */

/* Names of runs that stand together, by what differs between them: model, hardware, dataset, concurrency; by their
 * setting where they are of one sweep, by their directory where nothing differs.  Tables, plots and pages all name runs
 * by these. */
enum { RUN_NAME_MAX = 256 };

/* The caller's to release. */
struct run_names {
    char family[RUN_NAME_MAX];   /* how all models begin, which no name repeats: "ipw"; "" */
    char (*names)[RUN_NAME_MAX]; /* none twice */
    size_t count;
};

/* At most about `letters` each; 0: whole.  Of a longer name the middle of the model's is left out. */
enum err run_names_of(const struct run_point *const *points, size_t count, size_t letters,
                      struct run_names *out) MUST_USE;
void run_names_release(struct run_names *names);

#endif
