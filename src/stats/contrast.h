/* Comparing two runs by a statistic made of sums over queries: (sum 0 / sum 1), or that times (sum 2 / sum 3).
 * Gives the value of each, the difference with its 95 % interval (studentized bootstrap), and the probability that chance
 * alone makes one as large (two-sided permutation test).
 *
 * More queries than CONTRAST_UNITS per side are first summed in units of equal size, which are then resampled and
 * exchanged.  The same seed draws the same.  Memory that a call needs is freed before it returns. */
#ifndef IPW_STATS_CONTRAST_H
#define IPW_STATS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { CONTRAST_SUMS = 4, CONTRAST_UNITS = 2048, CONTRAST_DRAWS = 2000, CONTRAST_TRIES = 9999 };

/* What each query adds to each sum: CONTRAST_SUMS numbers per query, all finite. */
struct contrast_side {
    const double *terms;
    size_t count;
};

struct contrast_question {
    struct contrast_side a, b;
    bool paired;  /* query i is the same on both sides; the counts must be equal */
    bool product; /* the statistic has its second factor */
    uint64_t seed;
};

struct contrast_figure {
    double value, low, high;
};

/* UNKNOWN where the sums make no statistic; intervals also under two queries per side. */
struct contrast {
    double a, b;                       /* the statistic of each */
    double a_error, b_error;           /* standard errors */
    struct contrast_figure difference; /* b - a */
    struct contrast_figure relative;   /* b / a - 1 */
    double p_value;
    bool exact;     /* every arrangement was tried, not a random sample */
    double freedom; /* degrees of freedom of contrast_runs; UNKNOWN of a permutation test */
};

enum err contrast(const struct contrast_question *question, struct contrast *out) MUST_USE;

/* The statistic of one set of sums; UNKNOWN where they make none. */
double contrast_statistic(const double *sums, bool product);

/* Several runs per side, the statistic of each: Welch's t-test of their means, which does not assume that both sides
 * scatter alike, with the degrees of freedom of Welch and Satterthwaite.  The interval of the relative difference is
 * Fieller's, which leaves out 0 exactly where that of the difference does.  UNKNOWN values do not count; with one
 * left on a side, only the difference is known. */
void contrast_runs(const double *a, size_t a_count, const double *b, size_t b_count,
                   struct contrast *out);

/* The exact two-sided sign test (McNemar's for paired outcomes): the probability that chance alone divides
 * `wins` + `losses` differing pairs as unevenly.  1 when there is none. */
double sign_test(uint64_t wins, uint64_t losses);

/* Holm's step-down correction of several p values, in place, so that each may be compared with one significance
 * level for all.  UNKNOWN ones are not counted. */
void holm_adjust(double *p_values, size_t count);

#endif
