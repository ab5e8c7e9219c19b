/* Learning when a sensor updates.
 *
 * A sensor shows a new value every T (1 ms for RAPL, 100 ms for an NVIDIA energy counter) and the
 * same one in between.  Fed with every read - was the value new? - this finds T and the phase,
 * says when the next read is worth making, and dates each new value to the tick that made it
 * rather than to the read that found it.  Pure: no clock, no I/O.  One struct per channel, owned
 * by the thread that reads it. */
#ifndef IPW_SAMPLER_TICK_H
#define IPW_SAMPLER_TICK_H

#include <stdbool.h>

#include "core/units.h"

struct tick {
    nanos period; /* learned T; 0 while unknown */
    bool locked;  /* phase known: period and edge predict the ticks */
    nanos edge;   /* best estimate of the time of one tick, the latest known */
    nanos slack;  /* half-width of that estimate */
    nanos anchor; /* the last tick caught closely between two reads */
    unsigned reads_planned;

    /* the last read, and the last change */
    nanos read_t;
    nanos change_low, change_high; /* the last new value appeared in (low, high] */
    unsigned unchanged;            /* reads since then that saw nothing new */
    bool seen_read, seen_change;

    /* learning: the run of changes seen with unchanged reads between them */
    unsigned run;
    nanos run_low, run_high; /* bracket of the run's first change */
    nanos intervals[8];      /* newest distances between changes */
    unsigned interval_count;
    unsigned misses; /* predicted ticks that did not come, in a row */
};

/* When a new value really appeared, and how sure that is. */
struct tick_time {
    nanos t;
    nanos sigma; /* standard uncertainty */
};

void tick_init(struct tick *tick);

/* Tells of a read at t and whether the value was new.  For a new value *when says when it
 * appeared.  Times never decrease. */
void tick_observe(struct tick *tick, nanos t, bool is_new, struct tick_time *when);

/* The best moment for the next read: just after the first predicted tick that is at least `gap`
 * after now; every 16th time just before it instead, so that drift to either side is noticed, and
 * then (or when a tick is late) soon again.  0 when not locked: poll. */
nanos tick_next_read(struct tick *tick, nanos now, nanos gap);

/* Forgets the phase (suspend, driver reload) but keeps the period as a guess. */
void tick_unlock(struct tick *tick);

#endif
