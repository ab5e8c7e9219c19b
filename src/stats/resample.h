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
};

/* The 95 % interval, bias-corrected and accelerated (BCa); UNKNOWN under two queries.  More queries
 * than RESAMPLE_GROUPS are first put together in so many groups, each query with every RESAMPLE_GROUPS-th
 * after it, and groups are drawn: the sums of groups vary as those of queries do, and the interval's
 * ends change by a per cent or two of its width. */
struct resample_interval {
    double figure, low, high;
    double error; /* the standard deviation of what was drawn */
};
enum err resample_interval(const struct resample *what, struct resample_interval *out) MUST_USE;

#endif
