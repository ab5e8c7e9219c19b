/* A rarely read counter interpolated by power: the energy of a low-overhead session.
 *
 * Between two readings of the counter (anchors), energy is the integral of a power channel of the same device times the
 * ratio of counter to integral at earlier anchors.  At an anchor the difference is known, and is corrected over the
 * time to the next one; so energy follows the counter without ever being revised or decreasing.  Time that power does
 * not cover (the process was stopped) is filled with the counter's own joules.
 *
 * Pure over timelines; the owner calls it under the sampler's lock. */
#ifndef IPW_SAMPLER_ANCHORED_H
#define IPW_SAMPLER_ANCHORED_H

#include <stdbool.h>

#include "core/err.h"
#include "core/units.h"
#include "sampler/timeline.h"
#include "sampler/window.h"

struct anchored {
    const struct timeline *counter, *power; /* not owned */
    struct timeline energy;     /* the result: joules, with a point for each of `power` */
    struct timeline_point last; /* last point of power included in energy */
    bool has_last;
    struct timeline_point anchor; /* the last one, of the counter */
    bool has_anchor;
    bool has_ratio;
    double offset;    /* target of (energy - running sum of the counter), J */
    double power_sum; /* running sum of power at the anchor, J */
    nanos power_covered, energy_covered;
    nanos seen;        /* newest point of the counter that was compared */
    double ratio;      /* of counter to power */
    double error;      /* relative standard uncertainty of energy after the last anchor */
    double correction; /* outstanding correction, J */
    nanos apply_time;  /* time over which it is applied */
    double carried;    /* error of energy at recent anchors, J */
    nanos valid_for;   /* how long an anchor is valid; then the counter is considered dead */
};

/* period: between readings of the counter. */
void anchored_init(struct anchored *anchored, const struct timeline *counter,
                   const struct timeline *power, struct spill *spill, nanos period);
void anchored_release(struct anchored *anchored);

/* Processes new points of both timelines.  *wants_counter: energy waits for a reading of the counter. */
enum err anchored_advance(struct anchored *anchored, bool *wants_counter) MUST_USE;

/* Whether there is an anchor, so that energy is that of the counter. */
bool anchored_is_usable(const struct anchored *anchored);

/* Like window_read(energy, ...), including the uncertainty of the time after the last anchor. */
enum err anchored_window(const struct anchored *anchored, nanos from, nanos to, struct window *out)
    MUST_USE;

#endif
