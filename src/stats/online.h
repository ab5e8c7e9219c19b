/* Statistics of a stream in bounded memory: moments by Welford's recurrence, which does not cancel where a sum of
 * squares does (a counter's watts differ in the fourth digit), and a sketch that adds quantiles.
 * A struct online is plain data; a struct sketch owns memory.  Zero-initialize both; release the sketch. */
#ifndef IPW_STATS_ONLINE_H
#define IPW_STATS_ONLINE_H

#include <stdint.h>

#include "core/err.h"

struct online {
    uint64_t count;
    double mean;    /* of the values so far; meaningless while count is 0 */
    double squares; /* sum of squared distances from the mean */
    double min;
    double max;
};

/* Adds one value.  UNKNOWN (or infinite) is not a value: it is left out and not counted. */
void online_add(struct online *stats, double value);

/* UNKNOWN without a value. */
double online_mean(const struct online *stats);
double online_min(const struct online *stats);
double online_max(const struct online *stats);

/* Of the sample (divided by n - 1); UNKNOWN under two values. */
double online_stddev(const struct online *stats);

/* Of the mean: stddev / sqrt(n). */
double online_standard_error(const struct online *stats);

/* Exact for the first few thousand values, then a histogram with bins of one per cent.  For values of 0 and
 * more: times, tokens, joules. */
struct sketch {
    struct online moments;
    double *exact;  /* the first values, until there are too many */
    uint64_t *bins; /* NULL until then */
};

enum err sketch_add(struct sketch *sketch, double value) MUST_USE;

/* As stats/quantile.h while exact, then within half a per cent.  UNKNOWN without a value. */
double sketch_quantile(const struct sketch *sketch, double p);
void sketch_release(struct sketch *sketch);

#endif
