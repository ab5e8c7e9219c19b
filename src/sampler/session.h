/* A session: the sensors found on this machine, and a sampler over all that can be read.  session_close frees what
 * session_open allocates. */
#ifndef IPW_SAMPLER_SESSION_H
#define IPW_SAMPLER_SESSION_H

#include "core/err.h"
#include "core/units.h"
#include "sensors/sensor.h"

struct sampler;

struct session_options {
    struct sensor_config sensors;
    const char *
        drivers; /* comma-separated names, with NAME=ARGUMENT where a driver takes one; NULL for all */
    nanos period;         /* between reads; 0 for each sensor's own */
    nanos counter_period; /* between readings of an expensive counter; 0: its own */
    bool recent;          /* keep only the newest readings: windows reach back seconds */
    bool low_overhead;    /* for monitors: minimize CPU use (sampler_set_low_overhead) ... */
    nanos tick_period;    /* ... but read energy at each tick, that far apart; 0: not at each */
    bool may_lack;        /* an argument that cannot be read is a finding, not an error */
};

struct session {
    struct sensor_findings findings; /* every finding, the unreadable ones with their reasons */
    long *source_of;                 /* finding -> index in the sampler, -1 when not sampled */
    struct sampler *sampler;         /* running */
    nanos started;
};

/* Reads IPW_SYSROOT from the environment, probes, opens everything that can be opened and starts
 * sampling.  A machine with no sensor at all is not an error: the session is then empty. */
enum err session_open(struct session *session, const struct session_options *options,
                      struct error *why) MUST_USE;
void session_close(struct session *session);

#endif
