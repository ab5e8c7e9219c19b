/* Comparing two runs by a statistic of sums over queries: (sum 0 / sum 1), or that times (sum 2 / sum 3).  Computes the
 * statistic of each run, the difference with its 95 % interval (studentized bootstrap), and the p value of a two-sided
 * permutation test.
 *
 * More queries than CONTRAST_UNITS per side are first summed in units of equal size, which are then resampled and
 * permuted.  The same seed gives the same result.  Memory that a call needs is freed before it returns. */
#ifndef IPW_STATS_CONTRAST_H
#define IPW_STATS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { CONTRAST_SUMS = 4, CONTRAST_UNITS = 2048, CONTRAST_DRAWS = 2000, CONTRAST_TRIES = 9999 };

/* Contributions to the sums: CONTRAST_SUMS numbers per query, all finite. */
struct contrast_side {
    const double *terms;
    size_t count;
};

struct contrast_question {
    struct contrast_side a, b;
    bool paired;  /* query i is the same on both sides; the counts must be equal */
    bool product; /* the statistic includes its second factor */
    uint64_t seed;
};

struct contrast_figure {
    double value, low, high;
};

/* An estimate of the difference with a t distribution; error UNKNOWN: none. */
struct contrast_model {
    double difference, error, freedom;
};

/* UNKNOWN where the statistic is undefined; intervals also for fewer than two queries per side. */
struct contrast {
    double a, b;                       /* the statistic of each */
    double a_error, b_error;           /* standard errors */
    struct contrast_figure difference; /* b - a */
    struct contrast_figure relative;   /* b / a - 1 */
    double p_value;
    bool exact;     /* all permutations were enumerated, not sampled */
    double freedom; /* degrees of freedom of contrast_runs; UNKNOWN for a permutation test */
    /* Of runs: that the sides differ in level alone, or also change with the order of the runs; how credible the former
     * is.  p and the interval of the difference are averaged over both. */
    struct contrast_model level, trend;
    double level_weight; /* 1 without an order */
    double look; /* the share of the error probability that a look at unfinished data has; else 1 */
};

void contrast(const struct contrast_question *question, struct contrast *out);

/* The statistic of one set of sums; UNKNOWN where it is undefined. */
double contrast_statistic(const double *sums, bool product);

/* Several runs per side, the statistic of each: Welch's t-test of their means, which does not assume equal
 * variances, with Welch-Satterthwaite degrees of freedom.  The interval of the relative difference is Fieller's,
 * which excludes 0 exactly where that of the difference does.  UNKNOWN values are ignored; with one run on a side,
 * only the difference is known. */
void contrast_runs(const double *a, size_t a_count, const double *b, size_t b_count,
                   struct contrast *out);

/* After contrast_runs, with the times at which the runs were measured: allows for a linear trend in their order, with
 * the same slope on both sides.  Without one in the data, runs of one side after those of the other lose little; with
 * one, only the difference beyond it counts.  Does nothing if a time is unknown or two are equal. */
void contrast_allow_trend(const double *a, const double *a_times, size_t a_count, const double *b,
                          const double *b_times, size_t b_count, struct contrast *inout);

/* Runs in pairs, measured next to each other: value i of both sides is a pair.  Student's t-test of the differences
 * within pairs, from which whatever both runs of a pair share has canceled; Fieller's interval of the relative
 * difference.  Pairs with an UNKNOWN value are ignored; fewer than two pairs give no interval.  look: 1, or for a series
 * that ends when it is decided, sequential_share: p is p divided by it, and the interval holds at all looks. */
void contrast_pairs(const double *a, const double *b, size_t count, double look,
                    struct contrast *out);

/* After contrast_runs or contrast_pairs: the p value if the difference may be anything from `low` to `high` without the sides being
 * different.  UNKNOWN without a model. */
double contrast_p(const struct contrast *found, double low, double high);

/* The exact two-sided sign test (McNemar's for paired outcomes): the probability of a split of the differing pairs
 * at least as uneven as `wins` to `losses`.  1 when there are none. */
double sign_test(uint64_t wins, uint64_t losses);

/* Holm's step-down correction of several p values, in place, for one family-wise significance level.  UNKNOWN values
 * are ignored. */
void holm_adjust(double *p_values, size_t count);

#endif
