/* Between two readings, a sensor does not show when its energy was spent, and a request's fraction of it varies.  Energy
 * B that was spent at one unknown time in an interval, instead of evenly, gives a request B times its fraction at that
 * time, instead of B times the fraction's mean: an error with the variance B^2 x variance of the fraction over the
 * interval, the fraction being 0 where the request is not in flight.  So the edges of a request and the changes of its
 * fraction inside are one sum; errors of different intervals are independent, except for the lag of readings, which is
 * the same in all of them. */
#include "attribute/share_parts.h"

#include <math.h>

static double mean_in(const struct split_interval *interval, size_t part)
{
    return interval->sum[part] / seconds(interval->at.to - interval->at.from);
}

/* Adds the errors of an interval that the request has left, or in which it ended. */
static void close_interval(const struct split_interval *interval, struct split_error *out)
{
    const struct unresolved *at = &interval->at;
    double length = seconds(at->to - at->from);
    for (size_t part = 0; part < SPLIT_PARTS; part++) {
        double mean = mean_in(interval, part), squares = interval->squares[part] / length;
        out->variance[part] += at->burst * fmax(0, squares - mean * mean) + at->own * squares +
                               at->edges[0] * square(mean - interval->before[part]);
        out->lag[part] += at->lag * (interval->drift[part] - mean * at->rise);
    }
}

/* The end of an interval that no other one follows. */
static void close_end(const struct split_interval *interval, struct split_error *out)
{
    for (size_t part = 0; part < SPLIT_PARTS; part++)
        out->variance[part] += interval->at.edges[1] * square(mean_in(interval, part));
}

static void open_interval(struct split_interval *interval, const struct unresolved *at,
                          struct split_error *error)
{
    double before[SPLIT_PARTS] = {0};
    bool was_open = interval->at.to > 0, follows = was_open && interval->at.to == at->from;
    if (was_open)
        close_interval(interval, error);
    if (was_open && !follows)
        close_end(interval, error);
    for (size_t part = 0; part < SPLIT_PARTS && follows; part++)
        before[part] = mean_in(interval, part);
    *interval = (struct split_interval){.at = *at};
    for (size_t part = 0; part < SPLIT_PARTS; part++)
        interval->before[part] = before[part];
}

static void add_fraction(struct split_interval *interval, enum phase phase, double fraction,
                         double length_s, double change_w)
{
    const size_t parts[] = {phase, SPLIT_WHOLE};
    for (size_t i = 0; i < 2; i++) {
        interval->sum[parts[i]] += fraction * length_s;
        interval->squares[parts[i]] += fraction * fraction * length_s;
        interval->drift[parts[i]] += fraction * change_w;
    }
}

void split_error_add(struct split_error *error, const struct resolution *at, enum phase phase,
                     double fraction, double length_s)
{
    double change_w = at->watts - error->watts;
    if (!error->is_begun || !is_known(change_w))
        change_w = 0;
    error->is_begun = true;
    error->watts = at->watts;
    const struct unresolved *const levels[] = {&at->interval, &at->sample};
    struct split_interval *const intervals[] = {&error->interval, &error->sample};
    for (size_t i = 0; i < 2; i++) {
        if (levels[i]->to == 0)
            continue;
        if (intervals[i]->at.from != levels[i]->from || intervals[i]->at.to != levels[i]->to)
            open_interval(intervals[i], levels[i], error);
        add_fraction(intervals[i], phase, fraction, length_s, change_w);
    }
}

double split_error_variance(const struct split_error *error, size_t part)
{
    struct split_error closed = *error;
    const struct split_interval *const intervals[] = {&error->interval, &error->sample};
    for (size_t i = 0; i < 2; i++) {
        if (intervals[i]->at.to == 0)
            continue;
        close_interval(intervals[i], &closed);
        close_end(intervals[i], &closed);
    }
    return closed.variance[part] + square(closed.lag[part]);
}
