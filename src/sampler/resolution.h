/* What a channel's readings do not show: when, between two of them, its energy was spent.
 *
 * A share of a device's energy is a sum of fractions, which change faster than sensors are updated: its uncertainty
 * follows from how the fraction varies inside the intervals below (attribute/share_error.c).  A window is the share
 * whose fraction is 1 inside and 0 outside.  Pure over timelines; the caller owns every struct. */
#ifndef IPW_SAMPLER_RESOLUTION_H
#define IPW_SAMPLER_RESOLUTION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

struct timeline;

/* The interval between two readings that contains a time. */
struct unresolved {
    nanos from, to; /* 0, 0: not covered */
    double
        burst; /* square of the energy that may have been spent at one time in it, not evenly, J^2 */
    double own; /* variance of its energy, J^2: of an integral of readings */
    double edges
        [2]; /* variance of what belongs to its neighbor, since its start or end is uncertain, J^2 */
    double lag;  /* standard uncertainty of the time of `watts`, s */
    double rise; /* of `watts` from its start to its end, where its energy is known; else 0 */
};

struct resolution {
    struct unresolved interval;
    struct unresolved sample; /* of a counter shaped by samples: the sample inside; else 0 to 0 */
    double watts;             /* at that time, by the readings that place energy in time */
};

/* Of one channel at a time. */
enum err window_resolution(const struct timeline *timeline, nanos t, struct resolution *out)
    MUST_USE;

#endif
