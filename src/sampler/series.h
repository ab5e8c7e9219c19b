/* A series: one channel's samples turned into a timeline.  Counters are unwrapped, resets and
 * impossible readings become gaps, power is integrated, and nothing unknown is ever counted as zero.
 * Owned by the sampler and used under its lock. */
#ifndef IPW_SAMPLER_SERIES_H
#define IPW_SAMPLER_SERIES_H

#include <stdbool.h>

#include "sampler/ring.h"
#include "sampler/timeline.h"
#include "sensors/sensor.h"

struct series {
    const struct sensor_channel *channel; /* not owned */
    struct timeline timeline;
    nanos gap_limit; /* readings farther apart than this do not cover the time between them */
    bool has_last;
    uint64_t last_count;
    double last_value;
    unsigned long updates; /* new values */
    unsigned long missing; /* reads without a value */
    unsigned long gaps;    /* intervals between two readings that are unknown */
    unsigned long refused; /* implausible readings */
    unsigned long zeros;   /* of these, 0 W: a dead meter */
    enum err last_error;   /* of the newest missing one */
};

void series_init(struct series *series, const struct sensor_channel *channel, struct spill *spill,
                 nanos gap_limit);
void series_release(struct series *series);

/* Adds one sample.  ERR_NO_MEMORY only; a bad sample is counted, not an error. */
enum err series_take(struct series *series, const struct channel_sample *sample) MUST_USE;

#endif
