/* What the values of a channel were in a window: their mean, extremes and median.  Pure over a
 * timeline; nothing to own. */
#ifndef IPW_SAMPLER_VALUES_H
#define IPW_SAMPLER_VALUES_H

#include "core/err.h"
#include "core/units.h"
#include "sampler/timeline.h"

/* UNKNOWN where nothing was read. */
struct value_stats {
    double avg; /* over the covered time, or of the values where no time is covered */
    double max, median, min;
};

/* Values are the readings inside the window, or, where none fell inside, the one that stood when it
 * began and is not older than `stale`; of means (counters), every interval that reaches into it.
 * The median of very many values is that of a few hundred of them, evenly chosen; extremes are
 * always of all.  ERR_NO_DATA when there is no value. */
enum err values_of(const struct timeline *timeline, nanos from, nanos to, nanos stale,
                   struct value_stats *out) MUST_USE;

#endif
