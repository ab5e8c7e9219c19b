/* Bootstrap intervals of figures that are made of sums over queries: means, ratios, their products.
 * Pure but for memory of its own, which it gives back. */
#ifndef IPW_STATS_RESAMPLE_H
#define IPW_STATS_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { RESAMPLE_SUMS_MOST = 4, RESAMPLE_GROUPS = 2048 };

struct resample {
    const double *terms[RESAMPLE_SUMS_MOST]; /* what each query adds to each sum; finite */
    size_t sums;
    size_t count;                         /* queries */
    double (*figure)(const double *sums); /* UNKNOWN where the sums make none */
    unsigned draws;                       /* 2000 is enough for 95 % */
    uint64_t seed;
    size_t groups; /* 0: RESAMPLE_GROUPS */
};

/* The 95 % interval, bias-corrected and accelerated (BCa); UNKNOWN under two queries.  More queries
 * than `groups` are first put together in so many groups, each query with every so-many-th after it, and
 * groups are drawn: the sums of groups vary as those of queries do.  With 2048 the interval's ends change
 * by a per cent or two of its width, with 256 by about five. */
struct resample_interval {
    double figure, low, high;
    double error; /* the standard deviation of what was drawn */
};
enum err resample_interval(const struct resample *what, struct resample_interval *out) MUST_USE;

#endif
