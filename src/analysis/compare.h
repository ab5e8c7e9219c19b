/* Comparison of runs with a baseline, metric by metric: values, differences with intervals and p values; and what makes
 * the comparison unfair.
 *
 * A side is one run or several repeats of one setting.  Queries of one run share its conditions, so their scatter does
 * not predict the next run: with several runs on both sides, the scatter between runs decides.
 *
 * A struct comparison is plain data owned by the caller and points to nothing. */
#ifndef IPW_ANALYSIS_COMPARE_H
#define IPW_ANALYSIS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/across.h"
#include "core/energy.h"
#include "core/err.h"
#include "core/finding.h"
#include "rundir/run_table.h"
#include "stats/contrast.h"

/* COMPARE_ENERGY_PER_QUERY ...: from rundir/record.def. */
enum compare_metric {
#define METRIC(constant, name, label, unit, better, energy, of)         COMPARE_##constant,
#define PRODUCT(constant, name, label, unit, better, energy, of, times) COMPARE_##constant,
#define EXPONENTIAL(constant, name, label, unit, better, energy, of)    COMPARE_##constant,
#include "rundir/record.def"
    COMPARE_METRICS
};

struct compare_metric_info {
    const char *name, *label, *unit;
    enum better better;
    bool energy; /* depends on sensors and their calibration error */
};
extern const struct compare_metric_info COMPARE_METRIC_INFO[COMPARE_METRICS];

enum compare_verdict {
    VERDICT_UNKNOWN, /* a run lacks the figure */
    VERDICT_NO_EVIDENCE,
    VERDICT_BETTER,
    VERDICT_WORSE,
    VERDICT_HIGHER, /* for a metric that is neither good nor bad */
    VERDICT_LOWER,
    VERDICT_NOT_COMPARABLE, /* energy under different conditions */
    VERDICTS
};
const char *compare_verdict_text(enum compare_verdict verdict);

struct compared {
    size_t a_queries, b_queries; /* used, over all runs of the side */
    struct contrast found;       /* b relative to a; with the error of different sensors */
    double a_plus_minus,
        b_plus_minus; /* standard uncertainties; calibration only if the sensors differ */
    double p_holm;    /* UNKNOWN until compare_verdicts */
    const char *test; /* test that gives p; NULL without one */
    enum compare_verdict verdict;
};

/* Whether the machine's state (idle power, background load, throttling) allows energies to be compared. */
enum compare_conditions {
    CONDITIONS_UNKNOWN, /* a run does not record them */
    CONDITIONS_COMPARABLE,
    CONDITIONS_DIFFER,
    CONDITIONS_IGNORED, /* they differ, and the user compares anyway */
};

/* The runs of one side. */
struct compare_side {
    const struct run_table *runs;
    size_t count;
};

struct compared_side {
    char name[RUN_NAME_MAX]; /* unique among all sides, from what differs */
    const char *directory;   /* of the first run, like the following; as passed */
    char model[256], hardware[128];
    size_t runs, queries; /* runs of the side */
    struct tariff tariff;
    char currency[16];
};

struct comparison {
    struct compared_side side;
    size_t a_runs;      /* number of runs of the baseline */
    enum run_kind kind; /* kind of the baseline's records */
    double
        common; /* relative uncertainty common to all energies; UNKNOWN if sensors differ: see rows */
    bool paired;
    size_t same;           /* questions asked by both, with their repeats */
    size_t pairs;          /* questions completed by both; 0 unless paired */
    size_t a_only, b_only; /* asked by one side only */
    size_t changed;        /* same key, different question */
    enum compare_conditions conditions;
    struct compared metrics[COMPARE_METRICS];
    struct findings findings; /* that make the comparison unfair; owned */
};

#define COMPARE_ALPHA 0.05

/* The columns that the tables must have. */
struct run_wanted compare_needs(void);

/* Compares `b` with the baseline `a`; the same seed gives the same result.  Verdicts are set by compare_verdicts. */
void compare_sides(const struct compare_side *a, const struct compare_side *b, uint64_t seed,
                   struct comparison *out);

/* Everything except the name. */
void compare_describe(const struct compare_side *side, struct compared_side *out);

/* Whether both sides have several runs, so that differences between runs are known. */
static inline bool compare_is_repeated(const struct comparison *comparison)
{
    return comparison->a_runs > 1 && comparison->side.runs > 1;
}

/* Whether conditions prevent a comparison of the metric. */
bool compare_is_blocked(const struct comparison *comparison, enum compare_metric metric);

/* Whether a metric is a cost or an emission: energy and device time times a price. */
bool compare_is_priced(enum compare_metric metric);

/* All tests of all runs form one family: Holm's correction, then the verdicts.  Priced metrics are not part of the
 * family of the others, so that a price changes no other verdict; their own family includes all.  A difference is
 * significant if its corrected p value is below COMPARE_ALPHA and its interval excludes 0. */
void compare_verdicts(struct comparison *all, size_t count);

/* ---- fairness: compare_fairness.c ---- */

/* Adds the findings; the comparison's counts must be set. */
void compare_warn(const struct compare_side *a, const struct compare_side *b,
                  struct comparison *out);

/* Adds a finding where so few were compared that no difference, however large, could have had a verdict. */
void compare_warn_few(struct comparison *comparison, size_t tests);

/* Whether two runs have the same configuration and machine. */
bool compare_same_setting(const struct summary *a, const struct summary *b);

#endif
