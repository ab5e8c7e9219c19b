/* Runs against a baseline, metric by metric: values, differences with their intervals, and whether
 * chance alone may have made them; and what makes the comparison unfair.
 *
 * A struct comparison is plain data of the caller's and points to nothing. */
#ifndef IPW_ANALYSIS_COMPARE_H
#define IPW_ANALYSIS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rundir/run_table.h"
#include "core/err.h"
#include "stats/contrast.h"

enum compare_better { BETTER_LOWER = -1, BETTER_NEITHER, BETTER_HIGHER };

/* COMPARE_ENERGY_PER_QUERY ...: from rundir/record.def. */
enum compare_metric {
#define METRIC(constant, name, unit, better, energy, label, of)         COMPARE_##constant,
#define PRODUCT(constant, name, unit, better, energy, label, of, times) COMPARE_##constant,
#include "rundir/record.def"
    COMPARE_METRICS
};

struct compare_metric_info {
    const char *name, *unit, *label;
    enum compare_better better;
    bool energy; /* sensors are in it, and what they are wrong by */
};
extern const struct compare_metric_info COMPARE_METRIC_INFO[COMPARE_METRICS];

enum compare_verdict {
    VERDICT_UNKNOWN, /* a run lacks the figure */
    VERDICT_NO_EVIDENCE,
    VERDICT_BETTER,
    VERDICT_WORSE,
    VERDICT_HIGHER, /* of what is neither good nor bad */
    VERDICT_LOWER,
    VERDICT_NOT_COMPARABLE, /* energy under conditions that differ */
    VERDICTS
};
const char *compare_verdict_text(enum compare_verdict verdict);

struct compared {
    size_t a_queries, b_queries; /* that enter; the same when paired */
    struct contrast found; /* b against a; intervals with what different sensors are wrong by */
    double a_plus_minus,
        b_plus_minus; /* standard uncertainties, the sensors' calibration included */
    double p_holm;    /* UNKNOWN until compare_judge */
    const char *test; /* what p comes from; NULL without one */
    enum compare_verdict verdict;
};

enum { COMPARE_WARNINGS_MOST = 32 };

/* Whether the machine's state (idle power, other load, throttling) lets energies be compared. */
enum compare_conditions {
    CONDITIONS_UNKNOWN, /* a run does not record them */
    CONDITIONS_COMPARABLE,
    CONDITIONS_DIFFER,
    CONDITIONS_IGNORED, /* they differ, and the caller compares anyway */
};

struct comparison {
    char directory[512], model[256], hardware[128];
    enum run_kind kind; /* of the baseline: what its records are */
    bool paired;
    size_t same;           /* questions that both asked, with their repeats */
    size_t pairs;          /* of those, the ones that both completed; 0 unless paired */
    size_t a_only, b_only; /* that one asked alone */
    size_t changed;        /* the same key, another question */
    enum compare_conditions conditions;
    struct compared metrics[COMPARE_METRICS];
    struct compare_warning {
        char text[320];
    } warnings[COMPARE_WARNINGS_MOST];
    size_t warning_count;
};

#define COMPARE_ALPHA 0.05

/* The columns that the tables must have. */
#define COMPARE_NEEDS                                                                              \
    ((struct run_wanted){RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT) | RUN_WANT(RUN_QUESTION) |     \
                             RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_LATENCY) |                 \
                             RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_ITL_MEDIAN) |                       \
                             RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_ACTIVE_JOULES) |                  \
                             RUN_WANT(RUN_COVERAGE) | RUN_WANT(RUN_COMPANY),                       \
                         RUN_WANT(RUN_SOURCE) | RUN_WANT(RUN_METHOD)})

/* `b` against the baseline `a`; the same seed gives the same.  Verdicts are open until compare_judge. */
enum err compare_runs(const struct run_table *a, const struct run_table *b, uint64_t seed,
                      struct comparison *out, struct error *why) MUST_USE;

/* All questions that were asked, of all runs, as one family: Holm's correction, then the verdicts.  A
 * difference is one when its corrected p is below COMPARE_ALPHA and its interval leaves out 0. */
enum err compare_judge(struct comparison *all, size_t count, struct error *why) MUST_USE;

/* ---- fairness: compare_fairness.c ---- */

/* Adds the warnings; the comparison's counts must be there. */
void compare_warn(const struct run_table *a, const struct run_table *b, struct comparison *out);

/* ---- bounds: --fail-if ---- */

struct compare_check {
    char text[128]; /* as it was given */
    enum compare_metric metric;
    bool above;    /* fails above the bound; else below it */
    bool or_equal; /* at it as well */
    bool relative; /* the bound is a share of the baseline; else in the metric's unit */
    double bound;
};

/* METRIC OP BOUND: > >= < <= and a signed number, with % of the baseline.  ERR_USAGE says what is wrong, and
 * names the nearest metric. */
enum err compare_check_parse(const char *text, struct compare_check *out, struct error *why)
    MUST_USE;

enum compare_outcome { CHECK_HOLDS, CHECK_FAILS, CHECK_UNKNOWN, CHECK_NOT_COMPARABLE };

/* By the difference itself; when `confident`, it fails only where the whole interval does.  CHECK_UNKNOWN: a
 * run lacks the figure. */
enum compare_outcome compare_check_judge(const struct compare_check *check,
                                         const struct comparison *comparison, bool confident);

#endif
