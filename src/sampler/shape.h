/* A counter's window with its edges shaped by sampled power.
 *
 * A counter says how many joules were spent between two of its ticks, not when.  Where finer power
 * samples of the same thing cover that interval, the joules are laid out as the samples run: the
 * counter keeps the amount, the samples give the shape, and the sum over adjacent windows is still
 * the counter's.  Pure over two timelines. */
#ifndef IPW_SAMPLER_SHAPE_H
#define IPW_SAMPLER_SHAPE_H

#include "core/err.h"
#include "core/units.h"
#include "sampler/timeline.h"

/* Like timeline_window(counter, ...); an edge that the samples do not cover stays a straight line. */
enum err shaped_window(const struct timeline *counter, const struct timeline *power, nanos from,
                       nanos to, struct window *out) MUST_USE;

/* The place of the last answer of shaped_running: zero it before the first. */
struct shaped_cursor {
    struct timeline_cursor counter, power;
    bool asked, shaped;            /* whether samples lay out the counter's interval, once asked */
    nanos interval_from;           /* the interval that this was found out for */
    double power_sum, power_whole; /* the samples' sum where it begins, and over all of it */
    nanos power_covered;           /* what they cover before it begins */
};

/* Like timeline_running(counter, ...): a shaped window's sum is the difference of two of these. */
enum err shaped_running(const struct timeline *counter, const struct timeline *power,
                        struct shaped_cursor *cursor, nanos t, double *sum, nanos *covered)
    MUST_USE;

#endif
