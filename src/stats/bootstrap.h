/* The bootstrap: observations are drawn with replacement to see how much a statistic would vary had the experiment
 * been repeated.  Intervals are studentized (bootstrap-t): each draw is measured by its own standard error, which keeps
 * 95 % intervals of skewed data near 95 % where percentile and BCa intervals of ten observations cover 80 to 85 %.
 * The same seed draws the same.
 * Memory that a call needs is freed before it returns. */
#ifndef IPW_STATS_BOOTSTRAP_H
#define IPW_STATS_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct random;

enum { BOOTSTRAP_SUMS_MAX = 4, BOOTSTRAP_GROUPS = 2048 };

/* A statistic made of sums over queries: a mean, a ratio, a product of them. */
struct bootstrap {
    const double *terms[BOOTSTRAP_SUMS_MAX]; /* what each query adds to each sum; finite */
    size_t sums;
    size_t count;                         /* queries */
    double (*figure)(const double *sums); /* UNKNOWN where the sums make none */
    unsigned draws;                       /* 2000 are enough for 95 % */
    uint64_t seed;
    size_t groups; /* 0: BOOTSTRAP_GROUPS */
};

struct bootstrap_interval {
    double figure, low, high;
    double error; /* standard deviation of the draws */
};

/* The 95 % interval; UNKNOWN under two queries.  More queries than `groups` are first summed in that many groups,
 * query i in group i modulo groups, and groups are drawn: their sums vary as those of queries do.  With 2048
 * groups the ends of the interval change by a per cent or two of its width, with 256 by about five. */
enum err bootstrap_interval(const struct bootstrap *what, struct bootstrap_interval *out) MUST_USE;

/* A statistic with its standard error. */
struct bootstrap_draw {
    double value, error;
};

/* Draws of a statistic, each with its standard error; bootstrap_ends overwrites the values. */
struct bootstrap_draws {
    double *values, *errors;
    size_t count;
};

/* The ends of the 95 % interval of a statistic with its own standard error and degrees of freedom.  `of_ratio`: it is
 * a ratio of positive amounts, measured on a log scale where every draw allows it.  Never narrower than Student's t,
 * and wider by 1 + 1.5 / n, since few observations rarely show the tail of their distribution. */
void bootstrap_ends(struct bootstrap_draws *draws, const struct bootstrap_draw *found,
                    double freedom, bool of_ratio, double *low, double *high);

/* One draw within strata (repeats of one piece of work): picked[i] is an observation of the stratum of i, so that
 * every stratum keeps its size. */
void bootstrap_pick(struct random *random, const unsigned *strata, size_t count, size_t *picked);

#endif
