/* Power that varies faster than readings are apart shows in their scatter.  Second differences measure it: they are
 * insensitive to a slow drift, which interpolation follows. */
#include "sampler/resolution.h"

#include <math.h>

#include "sampler/timeline.h"
#include "sampler/window.h"

/* Points on either side of the one that ends an interval: for the second differences at both of its ends, and at the
 * next one. */
enum { REACH = 2, POINTS_MAX = 2 * REACH + 1 };

/* The square of a burst relative to that of a second difference.  White noise would need one sixth.  Power that
 * alternates faster than readings are apart needs more: means over several periods differ less than the power, and
 * fractions change several times in an interval.  The figures are those that cover such loads in simulations
 * (unit/attribute/test_share_error); readings also have a variance of their own. */
#define MEANS_BURST    0.75
#define READINGS_BURST 0.4

/* Second differences of intervals' energies are third differences of the times of their ticks. */
#define TICKS_IN_DIFFERENCE 20

struct neighbors {
    struct timeline_point points[POINTS_MAX];
    size_t count;
    size_t at; /* the interval is from the point before it to this one */
};

static enum err read_neighbors(const struct timeline *timeline, nanos t, struct neighbors *out)
{
    size_t after, count = timeline_count(timeline);
    enum err err = timeline_after(timeline, t, &after);
    if (err)
        return err;
    if (after == 0 || after == count)
        return ERR_NO_DATA;
    size_t first = after > REACH ? after - REACH : 0;
    size_t end = after + REACH + 1 < count ? after + REACH + 1 : count;
    out->count = end - first;
    out->at = after - first;
    return timeline_read(timeline, first, out->count, out->points);
}

/* Change of the slope at a point; UNKNOWN next to a gap. */
static double second_difference(const struct neighbors *near, size_t i)
{
    if (i == 0 || i + 1 >= near->count)
        return UNKNOWN;
    return near->points[i - 1].value - 2 * near->points[i].value + near->points[i + 1].value;
}

static double first_difference(const struct neighbors *near, size_t i)
{
    return i == 0 || i >= near->count ? UNKNOWN : near->points[i].value - near->points[i - 1].value;
}

/* Mean of the squares; UNKNOWN without any. */
static double mean_square(double (*of)(const struct neighbors *, size_t),
                          const struct neighbors *near, size_t first, size_t last)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = first; i <= last; i++) {
        double difference = of(near, i);
        sum += is_known(difference) ? difference * difference : 0;
        count += is_known(difference);
    }
    return count ? sum / (double)count : UNKNOWN;
}

/* Square of the power that a burst in the interval may have above its neighbors', from the second differences around
 * it; without any, as at the start and end of a history, from the steps.  `noise`: what the uncertain times of readings
 * add to a second difference. */
static double burst_watts(const struct neighbors *near, double share, double noise)
{
    size_t first = near->at > 1 ? near->at - 1 : 0;
    double differences = mean_square(second_difference, near, first, near->at + 1);
    if (is_known(differences))
        return share * fmax(0, differences - noise);
    return known_or(mean_square(first_difference, near, near->at, near->at + 1), 0);
}

/* ---- a counter, or means ---- */

static double edge_variance(const struct timeline *timeline, const struct timeline_point *edge,
                            double watts)
{
    return square(watts * edge->t_sigma) + square(timeline->resolution) / 12;
}

static void set_mean(const struct timeline *timeline, const struct neighbors *near,
                     struct resolution *out)
{
    const struct timeline_point *a = &near->points[near->at - 1], *b = &near->points[near->at];
    double before = a->value, after = near->at + 1 < near->count ? b[1].value : UNKNOWN;
    double dt = seconds(b->t - a->t);
    out->interval.edges[0] = edge_variance(timeline, a, fmax(b->value, before));
    out->interval.edges[1] = edge_variance(timeline, b, fmax(b->value, after));
    double noise = TICKS_IN_DIFFERENCE * fmax(out->interval.edges[0], out->interval.edges[1]);
    out->interval.burst = burst_watts(near, MEANS_BURST, noise / square(dt)) * square(dt);
    out->watts = b->value;
}

/* ---- readings ---- */

static void set_readings(const struct timeline *timeline, const struct neighbors *near, nanos t,
                         struct resolution *out)
{
    const struct timeline_point *a = &near->points[near->at - 1], *b = &near->points[near->at];
    double dt = seconds(b->t - a->t), f = (double)(t - a->t) / (double)(b->t - a->t);
    out->interval.own = b->variance - a->variance;
    out->interval.burst = burst_watts(near, READINGS_BURST, 0) * square(dt);
    out->interval.lag = window_lag(timeline, b->t - a->t);
    out->watts = a->value + (b->value - a->value) * f;
}

enum err window_resolution(const struct timeline *timeline, nanos t, struct resolution *out)
{
    struct neighbors near;
    *out = (struct resolution){.watts = UNKNOWN};
    enum err err = read_neighbors(timeline, t, &near);
    if (err)
        return err == ERR_NO_DATA ? ERR_OK : err;
    const struct timeline_point *a = &near.points[near.at - 1], *b = &near.points[near.at];
    if (b->covered == a->covered)
        return ERR_OK;
    out->interval.from = a->t;
    out->interval.to = b->t;
    if (timeline->shape == SHAPE_MEANS)
        set_mean(timeline, &near, out);
    else
        set_readings(timeline, &near, t, out);
    return ERR_OK;
}
