/* Runs against a baseline, metric by metric: values, differences with their intervals, and whether
 * chance alone may have made them; and what makes the comparison unfair.
 *
 * A side is one run or several repeats of one setting.  Queries of one run share its conditions, so that their
 * scatter says nothing about the next run: with several runs on both sides, the scatter between runs decides.
 *
 * A struct comparison is plain data of the caller's and points to nothing. */
#ifndef IPW_ANALYSIS_COMPARE_H
#define IPW_ANALYSIS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/across.h"
#include "core/energy.h"
#include "core/err.h"
#include "rundir/run_table.h"
#include "stats/contrast.h"

enum compare_better { BETTER_LOWER = -1, BETTER_NEITHER, BETTER_HIGHER };

/* COMPARE_ENERGY_PER_QUERY ...: from rundir/record.def. */
enum compare_metric {
#define METRIC(constant, name, unit, better, energy, of)         COMPARE_##constant,
#define PRODUCT(constant, name, unit, better, energy, of, times) COMPARE_##constant,
#define EXPONENTIAL(constant, name, unit, better, energy, of)    COMPARE_##constant,
#include "rundir/record.def"
    COMPARE_METRICS
};

struct compare_metric_info {
    const char *name, *unit;
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
    size_t a_queries, b_queries; /* that enter, of all runs of the side */
    struct contrast found; /* b against a; intervals with what different sensors are wrong by */
    double a_plus_minus,
        b_plus_minus; /* standard uncertainties of what can differ between the sides: with the sensors'
                         calibration only where these differ */
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

/* The runs of one side. */
struct compare_side {
    const struct run_table *runs;
    size_t count;
};

struct compared_side {
    char name[RUN_NAME_MAX]; /* among all sides, by what differs */
    char directory[512], model[256], hardware[128];
    size_t runs, queries; /* queries of the first run; likewise the rest */
    struct tariff tariff;
    char currency[16];
};

struct comparison {
    struct compared_side side;
    size_t a_runs;      /* of the baseline */
    enum run_kind kind; /* of the baseline: what its records are */
    double common; /* relative standard uncertainty of all energies, the same in all runs; UNKNOWN
                           where different sensors measured them, whose part is then in the rows */
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
                             RUN_WANT(RUN_COVERAGE) | RUN_WANT(RUN_COMPANY) | RUN_WANT(RUN_NLL) |  \
                             RUN_WANT(RUN_SCORED_TOKENS) | RUN_WANT(RUN_SCORED_BYTES),             \
                         RUN_WANT(RUN_SOURCE) | RUN_WANT(RUN_METHOD)})

/* `b` against the baseline `a`; the same seed gives the same.  Verdicts are open until compare_judge. */
enum err compare_sides(const struct compare_side *a, const struct compare_side *b, uint64_t seed,
                       struct comparison *out, struct error *why) MUST_USE;

/* All of it but the name. */
void compare_describe(const struct compare_side *side, struct compared_side *out);

/* Whether both sides have several runs, so that differences between runs are known. */
static inline bool compare_is_repeated(const struct comparison *comparison)
{
    return comparison->a_runs > 1 && comparison->side.runs > 1;
}

/* Whether conditions keep the metric from being compared. */
bool compare_is_blocked(const struct comparison *comparison, enum compare_metric metric);

/* Whether a metric is a cost or an emission: energy and device time at a price, no quantity of its own. */
bool compare_is_priced(enum compare_metric metric);

/* All questions that were asked, of all runs, as one family: Holm's correction, then the verdicts.  Priced metrics are
 * no part of that of the others, so that a price changes no other verdict; their own has all.  A
 * difference is one when its corrected p is below COMPARE_ALPHA and its interval leaves out 0. */
enum err compare_judge(struct comparison *all, size_t count, struct error *why) MUST_USE;

/* ---- fairness: compare_fairness.c ---- */

/* Adds the warnings; the comparison's counts must be there. */
void compare_warn(const struct compare_side *a, const struct compare_side *b,
                  struct comparison *out);

/* Whether two runs were asked for in the same way on the same machine. */
bool compare_same_setting(const struct summary *a, const struct summary *b);

#endif
