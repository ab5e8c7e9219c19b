#include "sampler/tick.h"

#include <string.h>

/* sqrt(12): the standard deviation of a uniform error is its full width over this. */
static nanos uniform_sigma(nanos width)
{
    return (nanos)((double)width * 0.288675);
}

void tick_init(struct tick *tick)
{
    *tick = (struct tick){0};
}

void tick_unlock(struct tick *tick)
{
    nanos period = tick->period;
    *tick = (struct tick){.period = period};
}

static nanos max_nanos(nanos a, nanos b)
{
    return a > b ? a : b;
}

/* The predicted tick nearest to t. */
static nanos nearest_edge(const struct tick *tick, nanos t)
{
    nanos offset = t - tick->edge;
    nanos steps = (offset + (offset >= 0 ? tick->period / 2 : -tick->period / 2)) / tick->period;
    return tick->edge + steps * tick->period;
}

static nanos median_interval(const struct tick *tick)
{
    nanos sorted[8];
    unsigned n = tick->interval_count < 8 ? tick->interval_count : 8;
    memcpy(sorted, tick->intervals, n * sizeof *sorted);
    for (unsigned i = 1; i < n; i++)
        for (unsigned j = i; j > 0 && sorted[j] < sorted[j - 1]; j--) {
            nanos swap = sorted[j];
            sorted[j] = sorted[j - 1];
            sorted[j - 1] = swap;
        }
    return sorted[n / 2];
}

/* A change seen with unchanged reads before it is a tick caught between two reads.  Three such in
 * a row, evenly spaced, give period and phase. */
static void learn(struct tick *tick, nanos low, nanos high)
{
    bool caught = tick->seen_change && tick->unchanged > 0;
    if (!caught) {
        tick->run = 1;
        tick->run_low = low;
        tick->run_high = high;
        return;
    }
    nanos middle = low + (high - low) / 2;
    nanos interval = middle - (tick->change_low + (tick->change_high - tick->change_low) / 2);
    tick->intervals[tick->interval_count++ % 8] = interval;
    tick->run++;
    nanos typical = median_interval(tick);
    nanos tolerance = max_nanos(high - low, tick->change_high - tick->change_low) + typical / 8;
    if (interval > typical + tolerance || interval < typical - tolerance) {
        tick->run = 1;
        tick->run_low = low;
        tick->run_high = high;
        return;
    }
    if (tick->interval_count >= 2)
        tick->period = typical;
    if (tick->run >= 4) {
        nanos first = tick->run_low + (tick->run_high - tick->run_low) / 2;
        nanos steps = (middle - first + typical / 2) / typical;
        if (steps > 0)
            tick->period = (middle - first) / steps;
        tick->edge = tick->anchor = middle;
        tick->slack = (high - low) / 2;
        tick->locked = true;
        tick->misses = 0;
    }
}

/* Locked: a read says on which side of it the tick fell.  The prediction moves only as far as the
 * read contradicts it; when reads stand close on both sides of the tick, it is measured anew. */
static void follow(struct tick *tick, nanos low, nanos high)
{
    nanos from = max_nanos(low, high - tick->period);
    nanos edge = nearest_edge(tick, high);
    if (edge > high)
        edge = high; /* it came earlier than predicted */
    if (edge <= from)
        edge = from + 1; /* it came later */
    nanos width = high - from;
    if (width < tick->period / 4) {
        edge = from + width / 2;
        nanos steps = (edge - tick->anchor + tick->period / 2) / tick->period;
        nanos drift = edge - (tick->anchor + steps * tick->period);
        /* A long base line makes the period precise. */
        if (steps >= 8)
            tick->period += drift / steps;
        tick->anchor = edge;
        tick->slack = width / 2;
    }
    tick->edge = edge;
    tick->misses = 0;
}

/* A read that saw nothing new although a tick was due: the tick is late, or the value happened to
 * repeat.  Several in a row mean that the phase is lost. */
static void note_unchanged(struct tick *tick, nanos t)
{
    if (!tick->locked || t <= tick->change_high + tick->period + tick->slack)
        return;
    if (++tick->misses >= 6)
        tick_unlock(tick);
}

void tick_observe(struct tick *tick, nanos t, bool is_new, struct tick_time *when)
{
    nanos low = tick->seen_read ? tick->read_t : t;
    *when = (struct tick_time){.t = t, .sigma = 0};
    if (is_new) {
        if (tick->locked)
            follow(tick, low, t);
        else if (tick->seen_read)
            learn(tick, low, t);
        nanos from = low;
        if (tick->period > 0 && t - from > tick->period)
            from = t - tick->period;
        if (tick->locked) {
            *when = (struct tick_time){tick->edge, uniform_sigma(2 * tick->slack)};
        } else {
            /* Unknown period: the reads themselves bound it. */
            *when = (struct tick_time){from + (t - from) / 2, uniform_sigma(t - from)};
        }
        tick->seen_change = tick->seen_read;
        tick->change_low = low;
        tick->change_high = t;
        tick->unchanged = 0;
    } else {
        tick->unchanged++;
        note_unchanged(tick, t);
    }
    tick->read_t = t;
    tick->seen_read = true;
}

nanos tick_next_read(struct tick *tick, nanos now, nanos gap)
{
    if (!tick->locked || tick->period <= 0)
        return 0;
    /* Far enough after the tick to be sure of it, early enough to date it well. */
    nanos margin = max_nanos(tick->slack, tick->period / 50);
    if (tick->unchanged > 0) {
        /* The last read came before the tick: look again just after it, or, when it is late,
         * a little later. */
        nanos due = nearest_edge(tick, tick->read_t) + margin;
        return due > now ? due : now + margin;
    }
    nanos edge = tick->edge + tick->period;
    while (edge + margin < now + gap)
        edge += tick->period;
    /* Now and then look just before the tick: the old value there and the new one just after it
     * are the proof that the phase holds. */
    tick->reads_planned++;
    return tick->reads_planned % 16 == 0 && edge - margin > now ? edge - margin : edge + margin;
}
