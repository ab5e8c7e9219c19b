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

#endif
