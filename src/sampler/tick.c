#include "sampler/tick.h"

#include <stdlib.h>
#include <string.h>

/* A tick is well known when its slack is below this share of the period. */
#define KNOWN_SHARE 32
/* Drift of a sensor's clock per period: 50 ppm. */
#define DRIFT_SHARE 20000
/* Every this many ticks one is read on both sides. */
#define CHECK_EVERY 16
/* The baseline over which the period is measured, in ticks. */
#define BASELINE 256
/* After this many missed predicted ticks in a row the phase is lost. */
#define MISSES_MAX 3

/* A time that is equally likely anywhere in an interval: the standard deviation is its half-width times 1/sqrt(3). */
static struct tick_time anywhere_in(nanos from, nanos to)
{
    return (struct tick_time){from + (to - from) / 2, (nanos)(0.57735 * (double)(to - from) / 2)};
}

/* Whole periods from the known edge to t, to the nearest. */
static nanos steps_to(const struct tick *tick, nanos from, nanos t)
{
    nanos offset = t - from;
    return (offset + (offset >= 0 ? tick->period / 2 : -tick->period / 2)) / tick->period;
}

/* Uncertainty of the prediction `steps` ticks after the known one. */
static nanos slack_after(const struct tick *tick, nanos steps)
{
    nanos slack = tick->slack + steps * (tick->period_slack + tick->period / DRIFT_SHARE);
    return min_nanos(slack, tick->period / 2);
}

void tick_init(struct tick *tick)
{
    *tick = (struct tick){0};
}

void tick_unlock(struct tick *tick)
{
    *tick = (struct tick){.period = tick->period, .dated = tick->dated};
}

/* ---- learning ---- */

static nanos median_interval(const struct tick *tick)
{
    double sorted[8];
    unsigned n = tick->interval_count < 8 ? tick->interval_count : 8;
    memcpy(sorted, tick->intervals, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    return (nanos)sorted[n / 2];
}

static void begin_run(struct tick *tick, nanos low, nanos high)
{
    tick->run = 1;
    tick->run_quiet = 0;
    tick->run_low = low;
    tick->run_high = high;
}

static void set_anchor(struct tick *tick)
{
    tick->anchor = tick->edge;
    tick->anchor_slack = tick->slack;
    tick->anchor_steps = 0;
}

/* Locks when the run gives the period precisely enough to predict the next ticks. */
static void try_lock(struct tick *tick, nanos low, nanos high)
{
    nanos middle = low + (high - low) / 2, slack = (high - low) / 2;
    nanos first = tick->run_low + (tick->run_high - tick->run_low) / 2;
    nanos steps = (nanos)tick->run - 1;
    nanos period_slack = (slack + (tick->run_high - tick->run_low) / 2) / steps;
    nanos period = (middle - first) / steps;
    if (period_slack > period / 16)
        return;
    tick->period = period;
    tick->period_slack = period_slack;
    tick->edge = middle;
    tick->slack = slack;
    tick->locked = true;
    tick->misses = 0;
    tick->second_look = tick->doubt = 0;
    set_anchor(tick);
}

/* A change after unchanged reads brackets a tick between two reads.  Four of them in a row, evenly spaced, give
 * period and phase.  A bracket that may contain more than one tick ends the run: the reader was suspended, and a missed
 * tick would make the period too long.  One shorter than a time without ticks contains one. */
static void learn(struct tick *tick, nanos low, nanos high)
{
    if (!tick->seen_change || tick->unchanged == 0) {
        begin_run(tick, low, high);
        return;
    }
    nanos middle = low + (high - low) / 2;
    nanos interval = middle - (tick->change_low + (tick->change_high - tick->change_low) / 2);
    tick->intervals[tick->interval_count++ % 8] = (double)interval;
    tick->run++;
    nanos typical = median_interval(tick);
    nanos tolerance = max_nanos(high - low, tick->change_high - tick->change_low) + typical / 8;
    tick->run_quiet = max_nanos(tick->run_quiet, low - tick->change_high);
    bool is_one_tick = high - low <= tick->run_quiet;
    if (!is_one_tick || interval > typical + tolerance || interval < typical - tolerance) {
        begin_run(tick, low, high);
        return;
    }
    if (tick->interval_count >= 2 && typical > 0)
        tick->period = typical;
    if (tick->run >= 4 && tick->period > 0)
        try_lock(tick, low, high);
}

/* ---- following ---- */

/* A long baseline makes the period precise. */
static void refine_period(struct tick *tick, nanos steps)
{
    tick->anchor_steps += steps;
    nanos measured = (tick->edge - tick->anchor) / tick->anchor_steps;
    nanos bound = (tick->slack + tick->anchor_slack) / tick->anchor_steps;
    nanos off = measured > tick->period ? measured - tick->period : tick->period - measured;
    if (bound < tick->period_slack || off > bound + tick->period_slack) {
        tick->period = measured;
        tick->period_slack = bound;
    }
    bool better = tick->anchor_steps < BASELINE / 16 && tick->slack < tick->anchor_slack / 2;
    if (tick->anchor_steps >= BASELINE || better)
        set_anchor(tick);
}

/* The earliest time of the newest tick of a read that ended at `high`: within one period before the value was taken,
 * which was anywhere in the read. */
static nanos earliest(nanos low, nanos high, nanos within, nanos period)
{
    return max_nanos(low, high - 2 * within - period);
}

/* Locked: the newest tick fell into (low, high].  Returns its timestamp. */
static struct tick_time follow(struct tick *tick, nanos low, nanos high, nanos within)
{
    nanos from = earliest(low, high, within, tick->period + tick->period_slack);
    nanos steps = max_nanos(1, steps_to(tick, tick->edge, from + (high - from) / 2));
    nanos edge = tick->edge + steps * tick->period, slack = slack_after(tick, steps);
    tick->misses = 0;
    tick->doubt = 0;
    if (slack >= tick->period / 2) {
        tick_unlock(tick); /* not read for so long that it may be any tick */
        return anywhere_in(from, high);
    }
    /* Which tick it was is not certain where the read was that close to one: the value may have been taken before it
     * and belong to the previous one, if that came after the last read, or belong to the next one. */
    bool may_be_earlier =
        steps > 1 && edge + slack > high - 2 * within && edge - tick->period + slack > low;
    bool may_be_later = edge - slack < earliest(low, high, 0, tick->period + tick->period_slack) &&
                        high - low > tick->period - 2 * slack;
    if (may_be_earlier || may_be_later) {
        /* It is known to the period only.  The next read may resolve it. */
        nanos known = may_be_later ? steps : steps - 1;
        tick->edge += known * tick->period;
        tick->anchor_steps += known;
        tick->slack = slack;
        tick->doubt = high;
        return anywhere_in(from, high);
    }
    nanos min = max_nanos(edge - slack, from), max = min_nanos(edge + slack, high);
    bool refuted = min > max;
    if (refuted) {
        min = from;
        max = high;
    }
    tick->edge = min + (max - min) / 2;
    tick->slack = (max - min + 1) / 2;
    if (refuted)
        set_anchor(tick);
    else
        refine_period(tick, steps);
    return anywhere_in(min, max);
}

/* The value was new in a read close to a tick, and unchanged after that tick's latest time: so the tick came before
 * that read. */
static void resolve_doubt(struct tick *tick)
{
    nanos slack = slack_after(tick, 1), min = tick->edge + tick->period - slack;
    nanos max = min_nanos(min + 2 * slack, tick->doubt);
    tick->edge = min + (max - min) / 2;
    tick->slack = (max - min + 1) / 2;
    tick->doubt = 0;
    tick->unchanged = 0;
    refine_period(tick, 1);
}

/* A read without a new value although a tick was due: the tick is late, or the value repeated.  Several in a row
 * mean that the phase is lost.  True when this gives the time of the last new value. */
static bool note_unchanged(struct tick *tick, nanos t)
{
    if (!tick->locked)
        return false;
    if (tick->doubt > 0 && t >= tick->edge + tick->period + slack_after(tick, 1)) {
        resolve_doubt(tick);
        return true;
    }
    nanos steps = (nanos)tick->misses + 1;
    nanos due = tick->edge + steps * tick->period + slack_after(tick, steps);
    if (t > due + tick->period / 2)
        tick->misses++;
    if (tick->misses >= MISSES_MAX)
        tick_unlock(tick);
    return false;
}

static struct tick_time date(struct tick *tick, nanos low, nanos high, nanos within)
{
    if (tick->locked)
        return follow(tick, low, high, within);
    if (tick->seen_read)
        learn(tick, low, high);
    nanos from = low;
    if (tick->period > 0 && !tick->seen_read)
        from = high - 2 * within - tick->period;
    else if (tick->period > 0)
        from = earliest(low, high, within, tick->period);
    return anywhere_in(from, high);
}

bool tick_observe(struct tick *tick, nanos t, nanos within, bool is_new, struct tick_time *when)
{
    bool is_dated = is_new;
    nanos low = tick->seen_read ? tick->read_t - tick->read_within : t - within;
    nanos high = max_nanos(t + within, low);
    *when = (struct tick_time){.t = t, .sigma = 0};
    if (is_new) {
        *when = date(tick, low, high, within);
        tick->seen_change = tick->seen_read;
        tick->change_low = low;
        tick->change_high = high;
        tick->unchanged = 0;
    } else {
        tick->unchanged++;
        is_dated = note_unchanged(tick, t);
        if (is_dated)
            *when = anywhere_in(tick->edge - tick->slack, tick->edge + tick->slack);
    }
    if (is_dated)
        tick->dated = when->t = min_nanos(t, max_nanos(when->t, tick->dated + 1));
    tick->read_t = t;
    tick->read_within = within;
    tick->seen_read = true;
    return is_dated;
}

/* ---- planning ---- */

nanos tick_reach(const struct tick *tick)
{
    nanos good = tick->period / (KNOWN_SHARE / 2);
    if (!tick->locked || tick->slack >= good)
        return 0;
    nanos widens = tick->period_slack + tick->period / DRIFT_SHARE; /* per tick */
    return (good - tick->slack) / max_nanos(1, widens) * tick->period;
}

nanos tick_to_mid_period(const struct tick *tick)
{
    if (tick->period <= 0)
        return 0;
    nanos middle = tick->dated + tick->period / 2;
    return middle + steps_to(tick, middle, tick->read_t) * tick->period - tick->read_t;
}

/* The value is unchanged: wait for the tick's latest time; when that has passed, read once more a little later, then
 * give up: the next tick is read on both sides. */
static nanos next_while_due(const struct tick *tick, nanos now)
{
    nanos margin = max_nanos(1, tick->period / KNOWN_SHARE);
    nanos steps = max_nanos(1, steps_to(tick, tick->edge, tick->read_t));
    nanos latest = tick->edge + steps * tick->period + slack_after(tick, steps);
    if (tick->read_t < latest)
        return max_nanos(now, latest);
    if (tick->read_t < latest + margin)
        return max_nanos(now, latest + 2 * margin);
    steps++;
    nanos slack = slack_after(tick, steps);
    nanos before = tick->edge + steps * tick->period - slack - 2 * tick->read_within - margin / 4;
    return before > now ? before : before + 2 * slack + margin;
}

/* When to read before the tick: where it is not known precisely, to bisect the interval; now and then just before
 * it, to verify the prediction.  0 for neither.  A slow read is scheduled so that it ends at that time. */
static nanos probe_time(struct tick *tick, nanos edge, nanos slack)
{
    nanos blur = 2 * tick->read_within;
    if (slack > max_nanos(blur, tick->period / KNOWN_SHARE))
        return edge - blur / 2;
    if (++tick->planned % CHECK_EVERY == 0)
        return edge - slack - blur - tick->period / (4 * KNOWN_SHARE);
    return 0;
}

nanos tick_next_read(struct tick *tick, nanos now, nanos gap)
{
    if (!tick->locked || tick->period <= 0)
        return 0;
    nanos second_look = tick->second_look;
    tick->second_look = 0;
    if (tick->unchanged > 0)
        return next_while_due(tick, now);
    if (tick->doubt > 0)
        second_look = tick->edge + tick->period + slack_after(tick, 1);
    if (second_look > now && second_look - now < tick->period)
        return second_look;
    nanos steps = max_nanos(1, (now + gap - tick->edge) / tick->period);
    while (tick->edge + steps * tick->period + slack_after(tick, steps) < now + gap)
        steps++;
    nanos edge = tick->edge + steps * tick->period, slack = slack_after(tick, steps);
    nanos latest = edge + slack, probe = probe_time(tick, edge, slack);
    if (probe <= now)
        return latest;
    /* When ticks are skipped on purpose, a probe finds a new value in any case: only the pair of reads, before and
     * after, shows on which side of it the tick fell. */
    if (steps > 1)
        tick->second_look = latest;
    return probe;
}
