/* The bootstrap: how much a figure would differ, had the same experiment been done again.  What was
 * observed is drawn from with replacement, within its own stratum (replays of one piece of work), and
 * the figure taken anew from what was drawn.  The same seed draws the same.
 * A struct draws is the caller's, and plain data.  Pure. */
#ifndef IPW_STATS_BOOTSTRAP_H
#define IPW_STATS_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

struct draws {
    uint64_t state;
};

struct draws draws_from(uint64_t seed);

/* 0 .. limit-1, each equally likely; 0 when limit is 0. */
size_t draw_below(struct draws *draws, size_t limit);

/* From the normal distribution of mean 0 and standard deviation 1. */
double draw_normal(struct draws *draws);

/* picked[i] is one of the observations in the stratum of i, so that every stratum keeps its number. */
void bootstrap_pick(struct draws *draws, const unsigned *strata, size_t count, size_t *picked);

#endif
