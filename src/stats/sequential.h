/* Looking at a test again and again while data arrive: how small p must be at each look, such that all looks together
 * have the error rate of one test.  Group-sequential bounds by alpha spending: independent increments of equal
 * variance, recursive numerical integration over the values at which the test goes on. */
#ifndef IPW_STATS_SEQUENTIAL_H
#define IPW_STATS_SEQUENTIAL_H

#include <stddef.h>

/* spent[i]: two-sided error probability up to look i, ascending; information[i]: of the data at look i, ascending, of
 * any scale.  bounds[i]: the test ends at look i if |z| is at least that. */
void sequential_bounds(const double *spent, const double *information, size_t looks,
                       double *bounds);

/* Pairs of runs, looked at after each pair from SEQUENTIAL_FIRST on; error is spent in proportion to the number of
 * pairs.  A fifth of it is kept: bounds are those of a normal statistic, and one whose variance is estimated from few
 * pairs crosses them more often. */
enum { SEQUENTIAL_FIRST = 3, SEQUENTIAL_MAX = 200 };
#define SEQUENTIAL_SPENT 0.8

/* The share of `alpha` at which to test after `pairs` of at most `most` pairs; 1 if that is a single look.  For fewer
 * pairs than were looked at first, that of the first look. */
double sequential_share(size_t pairs, size_t most, double alpha);

#endif
