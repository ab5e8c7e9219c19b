/* The bootstrap: observations are drawn with replacement, within their own stratum (repeats of one piece of work),
 * to see how much a figure would vary had the experiment been repeated.  Pure. */
#ifndef IPW_STATS_BOOTSTRAP_H
#define IPW_STATS_BOOTSTRAP_H

#include <stddef.h>

struct random;

/* picked[i] is an observation of the stratum of i: every stratum keeps its size. */
void bootstrap_pick(struct random *draws, const unsigned *strata, size_t count, size_t *picked);

#endif
