/* Learning when a sensor updates.
 *
 * A sensor shows a new value every T (1 ms for RAPL, 100 ms for an NVIDIA energy counter) and the same one in between.
 * From every read and whether its value was new, this module learns T and the phase, predicts when the next read is
 * useful, and timestamps each new value with the tick that produced it instead of the read that found it.
 *
 * The time of a tick is an interval, edge +- slack.  It widens with every predicted tick (T is uncertain) and each read
 * narrows it: an old value is an upper bound, a new one a lower bound.  A read that contradicts the interval
 * invalidates the prediction, and the interval restarts from the read.
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
    nanos anchor;       /* an earlier tick: start of the baseline for the period */
    nanos anchor_slack;
    nanos anchor_steps; /* ticks from there to edge */
    nanos doubt; /* a read up to here may or may not have seen the tick after `edge`; 0 none */
    nanos dated; /* timestamp of the last new value */

    /* the last read, and the last change */
    nanos read_t, read_within;
    nanos change_low, change_high; /* the last new value appeared in (low, high] */
    unsigned unchanged;            /* reads since then without a new value */
    bool seen_read, seen_change;

    /* planning */
    nanos second_look; /* a probe was planned: time of the read that must follow it; 0 none */
    unsigned planned;
    unsigned misses; /* consecutive predicted ticks that did not occur */

    /* learning: the run of evenly spaced changes, each after unchanged reads */
    unsigned run;
    nanos run_low, run_high; /* bracket of the run's first change */
    nanos run_quiet;         /* longest time in the run without a change */
    double intervals[8];     /* newest distances between changes, ns */
    unsigned interval_count;
};

/* When a new value appeared, with its uncertainty. */
struct tick_time {
    nanos t;
    nanos sigma; /* standard uncertainty */
};

void tick_init(struct tick *tick);

/* Adds a read at t and whether the value was new.  The value was taken in t - within .. t + within.  For a new value
 * *when is the time at which it appeared; these times never decrease and are never after t.  The first read gives no
 * time: its value may be as old as T.  True when *when is set: for every new value, and for an ambiguous one once a
 * read after the tick found it unchanged. */
bool tick_observe(struct tick *tick, nanos t, nanos within, bool is_new, struct tick_time *when);

/* The best time for the next read: just after the first predicted tick that is at least `gap` after now.  Where the
 * tick is not known precisely, and now and then for verification, a read before that bisects the interval in which
 * it is expected.  0 when not locked: poll. */
nanos tick_next_read(struct tick *tick, nanos now, nanos gap);

/* How far ahead ticks can be predicted: a read farther away would find a tick whose time is ambiguous. */
nanos tick_reach(const struct tick *tick);

/* From the last read to the nearest middle of a period; 0 while the period is unknown.  A value that is read too rarely
 * to follow its ticks is dated half a period before the read: right on average only if reads do not favor a phase.  The
 * read that learned the period came just after a tick, and one whole periods later would be dated too early. */
nanos tick_to_mid_period(const struct tick *tick);

/* Discards the phase (suspend, driver reload) but keeps the period as a guess. */
void tick_unlock(struct tick *tick);

#endif
