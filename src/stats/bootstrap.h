/* The bootstrap: observations are drawn with replacement to estimate how much a statistic varies between repetitions of
 * the experiment.  Intervals are studentized (bootstrap-t): each draw is divided by its own standard error, which keeps
 * 95 % intervals of skewed data near 95 % where percentile and BCa intervals of ten observations cover 80 to 85 %.  The
 * same seed gives the same result.
 * Memory that a call needs is freed before it returns. */
#ifndef IPW_STATS_BOOTSTRAP_H
#define IPW_STATS_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct random;

enum { BOOTSTRAP_SUMS_MAX = 4, BOOTSTRAP_GROUPS = 2048 };

/* A statistic that is a function of sums over queries: a mean, a ratio, a product of them. */
struct bootstrap {
    const double *terms[BOOTSTRAP_SUMS_MAX]; /* contribution of each query to each sum; finite */
    size_t sums;
    size_t count;                         /* queries */
    double (*figure)(const double *sums); /* UNKNOWN where it is undefined */
    unsigned draws;                       /* 2000 suffice for 95 % */
    uint64_t seed;
    size_t groups; /* 0: BOOTSTRAP_GROUPS */
};

struct bootstrap_interval {
    double figure, low, high;
    double error; /* standard deviation of the draws */
};

/* The 95 % interval; UNKNOWN for fewer than two queries.  More queries than `groups` are first summed in that many
 * groups, query i in group i modulo groups, and groups are resampled: their sums vary as those of queries do.  With
 * 2048 groups the ends of the interval change by a percent or two of its width, with 256 by about five. */
void bootstrap_interval(const struct bootstrap *what, struct bootstrap_interval *out);

/* A statistic with its standard error. */
struct bootstrap_draw {
    double value, error;
};

/* Draws of a statistic, each with its standard error; bootstrap_ends overwrites the values. */
struct bootstrap_draws {
    double *values, *errors;
    size_t count;
};

/* The ends of the 95 % interval of a statistic with its own standard error and degrees of freedom.  `of_ratio`: it
 * is a ratio of positive amounts, evaluated on a log scale where every draw is positive.  Never narrower than
 * Student's t, and wider by 1 + 1.5 / n, since small samples rarely contain the tail of their distribution. */
void bootstrap_ends(struct bootstrap_draws *draws, const struct bootstrap_draw *found,
                    double freedom, bool of_ratio, double *low, double *high);

/* One stratified draw (strata: repeats of the same work): picked[i] is an observation of the stratum of i, so every
 * stratum keeps its size. */
void bootstrap_pick(struct random *random, const unsigned *strata, size_t count, size_t *picked);

#endif
