#include "sampler/window.h"

#include <math.h>

#include "stats/descriptive.h"

/* A reading is a mean over some part of the time since the one before, at a time that drivers do not document: between
 * its own time and half a spacing earlier, uniformly distributed. */
#define READING_LAG 0.2887

/* ---- plain windows ---- */

/* The running sums at one instant, and their uncertainty. */
struct edge {
    double sum;
    nanos covered;
    double variance;      /* accumulated up to here */
    double edge_variance; /* of the interpolation itself */
    double watts, lag;    /* of readings: interpolated; standard uncertainty of their time, s */
    size_t index;         /* first point after the instant */
};

double window_lag(const struct timeline *timeline, nanos spacing)
{
    if (timeline->shape != SHAPE_POINTS)
        return 0;
    return fmax(timeline->lag_sigma, READING_LAG * seconds(spacing));
}

static double sum_between(const struct timeline *timeline, const struct timeline_point *a,
                          const struct timeline_point *b, double f)
{
    double straight = a->sum + (b->sum - a->sum) * f;
    if (timeline->shape == SHAPE_MEANS || b->covered == a->covered)
        return straight;
    double dt = seconds(b->t - a->t), whole = b->sum - a->sum;
    /* If thinning has removed readings in between, the integral differs from the line from a to b. */
    double line = dt * (a->value + b->value) / 2;
    if (fabs(line - whole) > 1e-9 * (fabs(line) + fabs(b->sum)))
        return straight;
    return straight - dt * (b->value - a->value) * f * (1 - f) / 2;
}

static nanos covered_between(const struct timeline_point *a, const struct timeline_point *b,
                             nanos t, double f)
{
    if (b->covered - a->covered == b->t - a->t)
        return a->covered + (t - a->t); /* exact: a window without gaps is covered to 1.0 */
    return a->covered + (nanos)((double)(b->covered - a->covered) * f);
}

/* The largest value near an instant whose time is uncertain: that of another host, whose clock is known less
 * precisely than readings are apart. */
static double highest_near(const struct timeline *timeline, nanos t, double sigma)
{
    size_t first, last;
    double low, high = 0;
    if (timeline_after(timeline, t - from_seconds(sigma), &first) != ERR_OK ||
        timeline_after(timeline, t + from_seconds(sigma), &last) != ERR_OK)
        return 0;
    last += last < timeline_count(timeline); /* the interval that contains the end */
    return timeline_range(timeline, first, last, &low, &high) == ERR_OK ? high : 0;
}

/* Inside an interval a counter does not show when its joules were spent.  What it spent above its neighbors' power
 * may have come in one burst anywhere in it: before the edge with probability f, when a straight line misses 1-f of
 * it, or after, when the line has f of it too much.  That is a variance of f(1-f) times the burst squared.  The
 * second part is the uncertainty of the tick's time times the power; the third is the counter's resolution (a whole
 * joule on some platforms).  Readings of power need none of this: the uncertainty between them is in the running
 * variance, and that of their times, which all have in common, in window_read. */
static double edge_variance(const struct timeline *timeline, const struct timeline_point *around,
                            nanos t, double f)
{
    if (timeline->shape == SHAPE_POINTS)
        return 0;
    const struct timeline_point *a = &around[1], *b = &around[2], *next = &around[3];
    /* A point after a gap has no value: fmax ignores that side. */
    double step = fmax(0, fmax(fabs(next->value - b->value), fabs(b->value - a->value)));
    double burst = step * seconds(b->t - a->t);
    double power = fmax(b->value, fmax(a->value, next->value));
    double sigma = a->t_sigma * (1 - f) + b->t_sigma * f;
    if (sigma > seconds(b->t - a->t))
        power = fmax(power, highest_near(timeline, t, sigma));
    double timing = power * sigma;
    double rounding = timeline->resolution * timeline->resolution / 12;
    return burst * burst * f * (1 - f) + timing * timing + rounding;
}

static enum err edge_at(const struct timeline *timeline, nanos t, struct edge *out)
{
    size_t count = timeline_count(timeline), after;
    enum err err = timeline_after(timeline, t, &after);
    if (err)
        return err;
    struct timeline_point p[4];
    if (after == 0 || after == count) {
        /* Before the first or after the last point nothing is covered. */
        err = timeline_read(timeline, after == 0 ? 0 : count - 1, 1, p);
        if (!err)
            *out = (struct edge){.sum = p->sum,
                                 .covered = p->covered,
                                 .variance = p->variance,
                                 .watts = p->value,
                                 .lag = window_lag(timeline, 0),
                                 .index = after};
        return err;
    }
    size_t first = after >= 2 ? after - 2 : after - 1;
    size_t n = (after + 2 <= count ? after + 2 : count) - first;
    err = timeline_read(timeline, first, n, p + (after >= 2 ? 0 : 1));
    if (err)
        return err;
    if (after < 2)
        p[0] = p[1];
    if (after + 2 > count)
        p[3] = p[2];
    double f = (double)(t - p[1].t) / (double)(p[2].t - p[1].t);
    *out = (struct edge){
        .sum = sum_between(timeline, &p[1], &p[2], f),
        .covered = covered_between(&p[1], &p[2], t, f),
        .variance = p[1].variance + (p[2].variance - p[1].variance) * f,
        .edge_variance = p[2].covered > p[1].covered ? edge_variance(timeline, p, t, f) : 0,
        .watts = p[1].value + (p[2].value - p[1].value) * f,
        .lag = window_lag(timeline, p[2].t - p[1].t),
        .index = after,
    };
    return ERR_OK;
}

enum err window_read(const struct timeline *timeline, nanos from, nanos to, struct window *out)
{
    *out = (struct window){.sum = UNKNOWN, .variance = UNKNOWN, .coverage = 0};
    if (timeline_count(timeline) == 0 || to <= from)
        return ERR_NO_DATA;
    struct edge start, end;
    enum err err = edge_at(timeline, from, &start);
    if (!err)
        err = edge_at(timeline, to, &end);
    if (err)
        return err;
    out->covered_s = seconds(end.covered - start.covered);
    out->coverage = fmin(1.0, out->covered_s / seconds(to - from));
    out->updates = end.index - start.index;
    if (out->covered_s <= 0)
        return ERR_NO_DATA;
    out->sum = end.sum - start.sum;
    out->edge_variance[0] = start.edge_variance;
    out->edge_variance[1] = end.edge_variance;
    out->variance =
        fmax(0, end.variance - start.variance) + start.edge_variance + end.edge_variance;
    /* Readings that are late by a constant time belong to an earlier window: what they miss of this one is that time
     * times the difference of the power at its edges. */
    double lag = fmax(start.lag, end.lag);
    if (lag > 0)
        out->variance += square(lag * known_or(end.watts - start.watts, 0));
    return ERR_OK;
}

enum err window_running(const struct timeline *timeline, struct running_cursor *cursor, nanos t,
                        double *sum, nanos *covered)
{
    struct timeline_point *a = &cursor->before, *b = &cursor->after;
    if (!cursor->between || t < a->t || t >= b->t) {
        size_t count = timeline_count(timeline), index;
        cursor->between = false;
        if (count == 0)
            return ERR_NO_DATA;
        enum err err = timeline_after(timeline, t, &index);
        if (err)
            return err;
        if (index == 0 || index == count) {
            err = timeline_read(timeline, index == 0 ? 0 : count - 1, 1, a);
            *sum = a->sum;
            *covered = a->covered;
            return err;
        }
        struct timeline_point around[2];
        err = timeline_read(timeline, index - 1, 2, around);
        if (err)
            return err;
        *a = around[0];
        *b = around[1];
        cursor->between = true;
    }
    double f = (double)(t - a->t) / (double)(b->t - a->t);
    *sum = sum_between(timeline, a, b, f);
    *covered = covered_between(a, b, t, f);
    return ERR_OK;
}

/* Whether the time between point index-1 and point index is covered. */
static enum err is_covered(const struct timeline *timeline, size_t index, bool *out)
{
    struct timeline_point p[2];
    *out = false;
    if (index == 0 || index >= timeline_count(timeline))
        return ERR_OK;
    enum err err = timeline_read(timeline, index - 1, 2, p);
    *out = !err && p[1].covered > p[0].covered;
    return err;
}

enum err window_extremes(const struct timeline *timeline, nanos from, nanos to, double *low,
                         double *high)
{
    size_t count = timeline_count(timeline), first, last;
    bool includes_previous = false;
    *low = *high = UNKNOWN;
    if (count == 0 || to <= from)
        return ERR_NO_DATA;
    /* The interval that contains the end counts too: its mean is at the point after it. */
    bool means = timeline->shape == SHAPE_MEANS;
    enum err err = timeline_after(timeline, from, &first);
    if (!err)
        err = timeline_after(timeline, means ? to - 1 : to, &last);
    if (!err && !means)
        err = is_covered(timeline, first, &includes_previous);
    if (err)
        return err;
    if (means && last < count)
        last++;
    if (includes_previous)
        first--;
    double min, max;
    err = timeline_range(timeline, first, last, &min, &max);
    if (err || max < min)
        return err ? err : ERR_NO_DATA;
    *low = min;
    *high = max;
    return ERR_OK;
}

/* ---- values ---- */

/* The median of this many values, evenly chosen, is as good as that of all. */
enum { MEDIAN_OF = 255 };

struct range {
    size_t first, end; /* points [first, end) */
};

/* Whether the reading before the window was still current when it began. */
static bool is_current(const struct timeline *timeline, size_t index, nanos from, nanos stale)
{
    struct timeline_point p[2];
    size_t n = index + 1 < timeline_count(timeline) ? 2 : 1;
    if (timeline_read(timeline, index, n, p) != ERR_OK)
        return false;
    return from - p[0].t <= stale || (n == 2 && p[1].covered > p[0].covered);
}

static enum err find_values(const struct timeline *timeline, nanos from, nanos to, nanos stale,
                            struct range *out)
{
    size_t count = timeline_count(timeline);
    bool means = timeline->shape == SHAPE_MEANS;
    enum err err = timeline_after(timeline, means ? from : from - 1, &out->first);
    if (!err)
        err = timeline_after(timeline, means ? to - 1 : to, &out->end);
    if (err)
        return err;
    /* The interval that contains the end has its mean at the point after it. */
    if (means && out->end < count)
        out->end++;
    if (!means && out->first == out->end && out->first > 0 &&
        is_current(timeline, out->first - 1, from, stale))
        out->first--;
    return out->first < out->end ? ERR_OK : ERR_NO_DATA;
}

/* Insertion sort: most windows hold a handful of values. */
static void sort_values(double *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        double value = values[i];
        size_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

/* The known ones of at most MEDIAN_OF values, evenly chosen, ascending. */
static enum err choose_values(const struct timeline *timeline, const struct range *range,
                              double *values, size_t *kept)
{
    enum { CHUNK = 16 };
    struct timeline_point chunk[CHUNK];
    size_t all = range->end - range->first, wanted = all < MEDIAN_OF ? all : MEDIAN_OF;
    *kept = 0;
    for (size_t i = 0, n; i < wanted; i += n) {
        n = 1;
        if (all == wanted)
            n = wanted - i < CHUNK ? wanted - i : CHUNK;
        enum err err = timeline_read(timeline, range->first + i * all / wanted, n, chunk);
        if (err)
            return err;
        for (size_t k = 0; k < n; k++)
            if (is_known(chunk[k].value))
                values[(*kept)++] = chunk[k].value;
    }
    sort_values(values, *kept);
    return *kept ? ERR_OK : ERR_NO_DATA;
}

enum err window_values(const struct timeline *timeline, nanos from, nanos to, nanos stale,
                       struct value_stats *out)
{
    struct range range;
    struct window window;
    double values[MEDIAN_OF];
    size_t kept = 0;
    *out = (struct value_stats){UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    if (timeline_count(timeline) == 0 || to <= from)
        return ERR_NO_DATA;
    enum err err = find_values(timeline, from, to, stale, &range);
    if (!err)
        err = choose_values(timeline, &range, values, &kept);
    if (err)
        return err;
    *out = (struct value_stats){
        .avg = mean_of(values, kept),
        .max = values[kept - 1],
        .median = quantile_sorted(values, kept, 0.5),
        .min = values[0],
    };
    if (range.end - range.first > MEDIAN_OF)
        err = window_extremes(timeline, from, to, &out->min, &out->max);
    if (!err && window_read(timeline, from, to, &window) == ERR_OK)
        out->avg = window.sum / window.covered_s;
    return err;
}
