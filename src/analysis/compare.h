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
#include "analysis/compare_quality.h"
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
    VERDICT_UNDECIDED, /* different in these runs, but one run a side, or their order, may be why */
    VERDICT_NOT_COMPARABLE, /* different conditions may be why */
    VERDICTS
};
const char *compare_verdict_text(enum compare_verdict verdict);

struct compared {
    size_t a_queries, b_queries; /* used, over all runs of the side */
    struct contrast found;       /* b relative to a; with the error of different sensors */
    double a_plus_minus,
        b_plus_minus; /* standard uncertainties; calibration only if the sensors differ */
    double shift_low, shift_high; /* difference that conditions may cause, in the metric's unit */
    /* Without regard to conditions, the order of runs, and what one run a side cannot show: */
    struct compare_plain {
        struct contrast_figure difference, relative;
        double p_value, p_holm;
    } plain;
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

/* What differences of the recorded conditions may explain, relative to the energy and the time of the other side: from
 * `low`, at most 0, to `high`, at least 0. */
struct compare_influence {
    double energy_low, energy_high, time_low, time_high;
    double idle;         /* share of the energy that idle power may explain, of either sign */
    double active_scale; /* energy over active energy */
    char text[256];      /* what differs: "idle power 41.8 W, baseline 40 W"; "" */
};

/* Two settings whose runs alternated: runs of the same number were measured next to each other and are a pair. */
struct compare_series {
    bool is_interleaved;
    size_t until_decided; /* the most pairs of a series that ends when it is decided; else 0 */
    size_t pairs;         /* of which both runs were completed */
    double look;          /* sequential_share for so many pairs */
};

struct compare_options {
    const char *model; /* use only records of this model; NULL: the run's own */
    uint64_t seed;
    bool ignore_conditions;
    uint32_t only;               /* a bit for each metric to compare; 0: all */
    const struct tariff *tariff; /* overrides those of the runs; NULL: none */
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
    struct compare_influence influence;
    struct run_spread spread; /* with one run a side */
    bool has_order;           /* when each run was measured is known, and used */
    struct compare_series series;
    struct compared metrics[COMPARE_METRICS];
    struct compared_quality qualities[SUMMARY_QUALITIES_MAX];
    size_t quality_count;
    struct findings findings; /* that make the comparison unfair; owned */
};

#define COMPARE_ALPHA   0.05
#define COMPARE_PRIMARY 0.7 /* share of the level for the energy per query */

/* The columns that the tables must have. */
struct run_wanted compare_needs(void);

/* Compares `b` with the baseline `a`; the same seed gives the same result.  Verdicts are set by compare_verdicts.
 * `spread` is used with one run a side. */
void compare_sides(const struct compare_side *a, const struct compare_side *b,
                   const struct compare_options *options, const struct run_spread *spread,
                   struct comparison *out);

/* Everything except the name. */
void compare_describe(const struct compare_side *side, struct compared_side *out);

/* Whether both sides have several runs, so that differences between runs are known: repeats of commands that alternated
 * are runs, too. */
static inline bool compare_is_repeated(const struct comparison *comparison)
{
    return (comparison->a_runs > 1 && comparison->side.runs > 1) || comparison->series.pairs > 1;
}

/* ---- verdicts: compare_verdict.c ---- */

/* Whether a condition prevents any comparison of the metric. */
bool compare_is_blocked(const struct comparison *comparison, enum compare_metric metric);

/* Whether a metric is a cost or an emission: energy and device time times a price. */
bool compare_is_priced(enum compare_metric metric);

/* All tests of all runs form one family of level COMPARE_ALPHA.  The energy per query is primary: it is tested first,
 * at COMPARE_PRIMARY of that level, the other metrics at the rest of it, or at all of it if every primary test is
 * significant; by Holm's correction in both.  Priced metrics are not part of the family of the others, so that a price
 * changes no other verdict; their own includes all.  p_holm is scaled such that a difference is significant if it is
 * below COMPARE_ALPHA and the interval excludes 0. */
void compare_verdicts(struct comparison *all, size_t count);

/* Metrics of all answers are a family of their own, of the same level; known after compare_verdicts. */
enum compare_verdict compare_quality_verdict(const struct compared_quality *quality);

/* Whether each side is one run; repetitions of a command are runs. */
bool compare_is_single(const struct comparison *comparison);

/* The metric in words, the same in every view: "lower in this run by 9 %; one run a side: not decided". */
enum { STATEMENT_MAX = 200 };
const char *compare_statement(const struct comparison *comparison, enum compare_metric metric,
                              char to[static STATEMENT_MAX]);

/* What a view adds to a difference that it states itself: "one run a side: not decided"; "" for a verdict. */
const char *compare_caveat(const struct comparison *comparison, enum compare_metric metric);

/* What p and the intervals are based on, a sentence; "" if there are none. */
enum { BASIS_MAX = 320 };
const char *compare_basis(const struct comparison *comparison, char to[static BASIS_MAX]);

/* ---- runs that alternated: compare_series.c ---- */

/* Whether the runs of both sides did. */
bool compare_is_interleaved(const struct compare_side *a, const struct compare_side *b);
void compare_series_of(const struct compare_side *a, const struct compare_side *b,
                       struct compare_series *out);

/* The values of the runs of a, then of b, and their numbers: those of equal number are a pair.  Sets the look at the
 * series. */
void compare_pairs(struct compare_series *series, const double *values, const double *numbers,
                   size_t a_count, size_t count, struct contrast *out);

/* ---- conditions: compare_conditions.c ---- */

/* What the conditions that both sides record may explain. */
void compare_influence_of(const struct compare_side *a, const struct compare_side *b,
                          struct compare_influence *out);

/* Sets the conditions, and raises findings about those that forbid any comparison of energies. */
void compare_check_conditions(const struct compare_side *a, const struct compare_side *b,
                              struct comparison *out);

/* ---- fairness: compare_fairness.c ---- */

/* Adds the findings; the comparison's counts must be set. */
void compare_warn(const struct compare_side *a, const struct compare_side *b,
                  struct comparison *out);

/* Adds a finding about the comparison, once. */
void compare_warn_of(struct comparison *comparison, enum finding_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Adds a finding where so few were compared that no difference, however large, could have had a verdict. */
void compare_warn_few(struct comparison *comparison, size_t tests);

/* Whether two runs have the same configuration and machine. */
bool compare_same_setting(const struct summary *a, const struct summary *b);

#endif
