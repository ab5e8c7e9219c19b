/* Online moments: mean, variance and extremes of a stream in constant memory, by Welford's
 * recurrence, which does not cancel where sum-of-squares does (a counter's watts differ in the
 * fourth digit).  A struct online is plain data: zero-initialise it, copy it, nothing to release.
 * Pure: no I/O, no allocation, no shared state. */
#ifndef IPW_STATS_ONLINE_H
#define IPW_STATS_ONLINE_H

#include <stdint.h>

struct online {
    uint64_t count;
    double mean;    /* of the values so far; meaningless while count is 0 */
    double squares; /* sum of squared distances from the mean */
    double min;
    double max;
};

/* Takes one value.  UNKNOWN (or infinite) is not a value: it is left out, and count shows it. */
void online_add(struct online *stats, double value);

/* As if every value of `from` had been added to `into`, in any order. */
void online_merge(struct online *into, const struct online *from);

/* UNKNOWN without a value. */
double online_mean(const struct online *stats);
double online_min(const struct online *stats);
double online_max(const struct online *stats);

/* Of the sample: divided by n - 1.  UNKNOWN under two values, because one value says nothing
 * about spread. */
double online_variance(const struct online *stats);
double online_stddev(const struct online *stats);

/* Standard error of the mean: stddev / sqrt(n). */
double online_standard_error(const struct online *stats);

#endif
