/* Learning when a sensor updates.
 *
 * A sensor shows a new value every T (1 ms for RAPL, 100 ms for an NVIDIA energy counter) and the
 * same one in between.  Given every read - was the value new? - this finds T and the phase,
 * predicts when the next read is worth making, and dates each new value to the tick that produced it
 * rather than to the read that found it.
 *
 * What is known of a tick is an interval, edge +- slack.  It widens with every predicted tick (T is
 * known only so well) and each read cuts it: an old value says "not yet", a new one "already".  A
 * read that leaves nothing of it proves the prediction wrong, and the read alone counts then.
 *
 * Pure: no clock, no I/O.  One struct per channel, owned by the thread that reads it. */
#ifndef IPW_SAMPLER_TICK_H
#define IPW_SAMPLER_TICK_H

#include <stdbool.h>

#include "core/units.h"

struct tick {
    nanos period;       /* learned T; 0 while unknown */
    nanos period_slack; /* half-width of that */
    bool locked;        /* phase known: period and edge predict the ticks */
    nanos edge;         /* the latest tick known or predicted */
    nanos slack;        /* half-width of that */
    nanos anchor;       /* an earlier tick: the base line that makes the period precise */
    nanos anchor_slack;
    nanos anchor_steps; /* ticks from there to edge */
    nanos doubt; /* a read up to here may or may not have seen the tick after `edge`; 0 none */
    nanos dated; /* the last time given to a new value */

    /* the last read, and the last change */
    nanos read_t, read_within;
    nanos change_low, change_high; /* the last new value appeared in (low, high] */
    unsigned unchanged;            /* reads since then without a new value */
    bool seen_read, seen_change;

    /* planning */
    nanos second_look; /* a probe was planned: the read that must follow it; 0 none */
    unsigned planned;
    unsigned misses; /* predicted ticks that did not come, in a row */

    /* learning: the run of evenly spaced changes, each with unchanged reads before it */
    unsigned run;
    nanos run_low, run_high; /* bracket of the run's first change */
    nanos intervals[8];      /* newest distances between changes */
    unsigned interval_count;
};

/* When a new value really appeared, and how sure that is. */
struct tick_time {
    nanos t;
    nanos sigma; /* standard uncertainty */
};

void tick_init(struct tick *tick);

/* Reports a read at t and whether the value was new.  The read took a while: the value was taken
 * in t - within .. t + within.  For a new value *when says when it appeared; such times never
 * decrease and are never after t.  The first read dates nothing: its value may be as old as T.
 * True when *when is such a time: of every new value, and of one that was read so close to a tick that
 * it was dated badly, once a read after that tick found it unchanged. */
bool tick_observe(struct tick *tick, nanos t, nanos within, bool is_new, struct tick_time *when);

/* The best moment for the next read: just after the first predicted tick that is at least `gap`
 * after now.  Where the tick is not known well, and now and then to see that it still is, a read
 * before that splits the interval in which it is expected.  0 when not locked: poll. */
nanos tick_next_read(struct tick *tick, nanos now, nanos gap);

/* How far ahead ticks are predicted well: a read farther away than this would find a tick that it
 * cannot date. */
nanos tick_reach(const struct tick *tick);

/* Forgets the phase (suspend, driver reload) but keeps the period as a guess. */
void tick_unlock(struct tick *tick);

#endif
