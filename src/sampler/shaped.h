/* Windows of a counter whose joules are distributed in time by finer power samples of the same device.
 *
 * A counter reports how many joules were spent between two of its ticks, not when.  Where samples cover that interval,
 * an edge of a window inside it is a mean of two estimates, each weighted by the other's variance: a straight line, and
 * the shape of the samples.  The counter gives the amount, so the sum over adjacent windows is still the counter's.
 *
 * Pure over timelines; the caller owns every struct. */
#ifndef IPW_SAMPLER_SHAPED_H
#define IPW_SAMPLER_SHAPED_H

#include <stdbool.h>

#include "core/err.h"
#include "core/units.h"
#include "sampler/timeline.h"
#include "sampler/resolution.h"
#include "sampler/window.h"

/* Like window_read(counter, ...); an edge that the samples do not cover is interpolated linearly. */
enum err shaped_window(const struct timeline *counter, const struct timeline *power, nanos from,
                       nanos to, struct window *out) MUST_USE;

/* One interval of a counter and the samples in it. */
struct shaped {
    struct timeline_point from, to;
    bool usable;          /* the samples cover it */
    double joules;        /* by the counter */
    double integral;      /* integral of the samples */
    double power_sum;     /* running sum of the samples at its start */
    nanos power_covered;  /* and the time they cover before it */
    double watts[2];      /* of the samples, at both ends */
    double weight;        /* of the samples' shape; the remainder is that of the straight line */
    double line_variance; /* of a straight line inside it, J^2 */
    double steps;         /* between samples in it, square of the mean, J^2 */
    double deviation;     /* of the power from its mean, root mean square, W */
    double lag;           /* possible delay of the samples, s */
    double disagreement;  /* of counter and samples, J */
};

/* The position of the last call of shaped_running: zero it before the first. */
struct shaped_cursor {
    struct running_cursor counter, power;
    bool known; /* shape is that of the counter's interval */
    struct shaped shape;
};

/* Like window_running(counter, ...): a shaped window's sum is the difference of two of these. */
enum err shaped_running(const struct timeline *counter, const struct timeline *power,
                        struct shaped_cursor *cursor, nanos t, double *sum, nanos *covered)
    MUST_USE;

/* Like window_resolution(counter, ...), with the samples inside the counter's interval. */
enum err shaped_resolution(const struct timeline *counter, const struct timeline *power,
                           struct shaped_cursor *cursor, nanos t, struct resolution *out) MUST_USE;

#endif
