/* The uncertainty of an edge inside an interval of the counter has five components: the deviation of the samples
 * from a straight line; unknown changes between two samples; the unknown delay of the samples, up to their spacing;
 * the disagreement of counter and samples, at an unknown place in the interval; and the uncertainty of the counter's
 * tick times. */
#include "sampler/shaped.h"

#include <math.h>

/* Samples that cover less than this share of a counter's interval do not define its shape. */
#define COVERS_ENOUGH 0.98

/* Maximum number of samples of an interval used for its shape. */
enum { SAMPLES_MAX = 256 };

/* A sample is a mean over some part of its spacing, at a time that drivers do not document: its time is uncertain by
 * this share of the spacing. */
#define LAG_SHARE 0.25

/* Steps shorter than a sample are attenuated in it: differences of samples are smaller than those of the power, by
 * this factor. */
#define STEPS_SHOWN 0.65

/* ---- one interval ---- */

/* The two points of the counter around t; ERR_NO_DATA outside of it. */
static enum err find_interval(const struct timeline *counter, nanos t, struct shaped *out)
{
    struct timeline_point around[2];
    size_t after;
    enum err err = timeline_after(counter, t, &after);
    if (err)
        return err;
    if (after == 0 || after == timeline_count(counter))
        return ERR_NO_DATA;
    err = timeline_read(counter, after - 1, 2, around);
    *out = (struct shaped){.from = around[0], .to = around[1]};
    return err;
}

struct sample_stats {
    double steps;      /* sum of the steps between samples, J */
    double squares;    /* of their squares, J^2 */
    double deviations; /* of the running sum from a straight line, J^2 */
    double powers;     /* of the power from its mean, W^2 */
    double spacing;    /* s */
    unsigned count;
};

static void add_sample(const struct shaped *shape, const struct timeline_point *before,
                       const struct timeline_point *p, struct sample_stats *out)
{
    double length = seconds(shape->to.t - shape->from.t), dt = seconds(p->t - before->t);
    double f = seconds(p->t - shape->from.t) / length;
    if (!is_known(p->value) || !is_known(before->value))
        return;
    out->steps += fabs(p->value - before->value) * dt;
    out->squares += square((p->value - before->value) * dt);
    out->deviations += square(p->sum - shape->power_sum - f * shape->integral);
    out->powers += square(p->value - shape->integral / length);
    out->spacing += dt;
    out->count++;
}

/* Statistics of the samples inside the interval. */
static enum err read_samples(const struct timeline *power, const struct shaped *shape,
                             struct sample_stats *out)
{
    enum { CHUNK = 32 };
    struct timeline_point chunk[CHUNK + 1];
    size_t at, end, capacity = CHUNK;
    *out = (struct sample_stats){0};
    enum err err = timeline_after(power, shape->from.t, &at);
    if (!err)
        err = timeline_after(power, shape->to.t, &end);
    if (err || at == 0)
        return err;
    if (end - at > SAMPLES_MAX)
        end = at + SAMPLES_MAX;
    for (; at < end && !err; at += capacity) {
        if (capacity > end - at)
            capacity = end - at;
        err = timeline_read(power, at - 1, capacity + 1, chunk);
        for (size_t i = 1; i <= capacity && !err; i++)
            add_sample(shape, &chunk[i - 1], &chunk[i], out);
    }
    return err;
}

static double watts_at(const struct timeline *power, nanos t)
{
    struct timeline_point p;
    size_t after;
    if (timeline_after(power, t - 1, &after) != ERR_OK || after >= timeline_count(power) ||
        timeline_read(power, after, 1, &p) != ERR_OK)
        return UNKNOWN;
    return p.value;
}

/* Each estimate is weighted by the other's variance, over the interval as a whole, where f(1-f) has a mean of 1/6.
 * One of n deviations from the line is that of its end. */
static void weigh(struct shaped *shape, const struct sample_stats *stats)
{
    double n = stats->count, ratio = shape->joules / shape->integral;
    shape->disagreement = shape->joules - shape->integral;
    shape->lag = LAG_SHARE * stats->spacing / n;
    shape->deviation = ratio * sqrt(stats->powers / n);
    shape->line_variance = square(ratio) * stats->deviations / fmax(1, n - 1);
    shape->steps = square(stats->steps / n) / STEPS_SHOWN;
    double missed = square(ratio) * (shape->steps + stats->squares / n / 3);
    double samples = (missed + square(shape->disagreement)) / 6;
    shape->weight = samples > 0 ? shape->line_variance / (shape->line_variance + samples) : 1;
}

/* Fills the remaining fields of an interval. */
static void take_samples(const struct timeline *power, struct running_cursor *cursor,
                         struct shaped *shape)
{
    struct window whole;
    struct sample_stats stats;
    if (shape->from.covered == shape->to.covered ||
        window_read(power, shape->from.t, shape->to.t, &whole) != ERR_OK ||
        whole.coverage < COVERS_ENOUGH || whole.sum <= 0)
        return;
    shape->joules = shape->to.sum - shape->from.sum;
    shape->integral = whole.sum;
    if (window_running(power, cursor, shape->from.t, &shape->power_sum, &shape->power_covered) !=
            ERR_OK ||
        read_samples(power, shape, &stats) != ERR_OK || stats.count == 0)
        return;
    weigh(shape, &stats);
    shape->watts[0] = watts_at(power, shape->from.t);
    shape->watts[1] = watts_at(power, shape->to.t);
    shape->usable = true;
}

/* ---- one edge ---- */

struct shaped_edge {
    double sum;    /* running sum of the counter there, J */
    double share;  /* of the interval's joules before it, by the samples */
    double line;   /* variance of the straight line */
    double inside; /* of what happens between two samples */
    double
        ahead; /* power there above that at the interval's ends, which a delay would misplace, W */
};

/* The variance of a straight line through the sample around t.  The power may have stepped there from one neighbor's
 * level to the other's at any time; and where samples differ throughout the interval, it may also have risen and
 * fallen in one burst on either side of t, as between ticks of a counter. */
static double step_missed(const struct timeline *power, double mean_step, nanos t)
{
    struct timeline_point p[3];
    size_t after;
    if (timeline_after(power, t, &after) != ERR_OK || after == 0 || after >= timeline_count(power))
        return 0;
    size_t n = after + 1 < timeline_count(power) ? 3 : 2;
    if (timeline_read(power, after - 1, n, p) != ERR_OK)
        return 0;
    double dt = seconds(p[1].t - p[0].t), f = seconds(t - p[0].t) / dt;
    double step = fmax(0, fabs(p[1].value - p[0].value));
    if (n == 3)
        step = fmax(step, fabs(p[2].value - p[1].value));
    return (square(step * dt) / 3 + mean_step) * f * (1 - f);
}

/* The sum of the counter at t, within the interval; false where the samples do not reach. */
static bool place_edge(const struct shaped *shape, double power_sum, nanos power_covered, nanos t,
                       double *share, double *sum)
{
    double reach = (double)(power_covered - shape->power_covered);
    if (t > shape->from.t && (reach <= 0 || reach < COVERS_ENOUGH * (double)(t - shape->from.t)))
        return false;
    double f = (double)(t - shape->from.t) / (double)(shape->to.t - shape->from.t);
    *share = (power_sum - shape->power_sum) / shape->integral;
    *sum = shape->from.sum + shape->joules * (f + shape->weight * (*share - f));
    return true;
}

static bool place(const struct shaped *shape, const struct timeline *power, nanos t,
                  struct shaped_edge *out)
{
    struct running_cursor cursor = {0};
    double power_sum;
    nanos covered;
    if (!shape->usable || window_running(power, &cursor, t, &power_sum, &covered) != ERR_OK ||
        !place_edge(shape, power_sum, covered, t, &out->share, &out->sum))
        return false;
    double s = fmin(1, fmax(0, out->share)), ratio = shape->joules / shape->integral;
    double near =
        seconds(t - shape->from.t < shape->to.t - t ? t - shape->from.t : shape->to.t - t);
    out->inside = square(ratio) * step_missed(power, shape->steps, t);
    /* Close to a tick there is little that could have been missed. */
    out->line = fmin(shape->line_variance, square(shape->deviation * near)) + out->inside;
    double ahead = watts_at(power, t) - (1 - s) * shape->watts[0] - s * shape->watts[1];
    out->ahead = is_known(ahead) ? ratio * ahead : 0;
    return true;
}

static double shaped_variance(const struct shaped *shape, const struct shaped_edge *at)
{
    double s = fmin(1, fmax(0, at->share));
    return square(1 - shape->weight) * at->line +
           square(shape->weight) * (at->inside + square(shape->disagreement) * s * (1 - s));
}

/* The power at which uncertain times of ticks count.  An interval that only seems long has too little of it by the
 * counter: the samples then show more. */
static double tick_watts(const struct shaped *shape)
{
    return fmax(shape->joules, shape->integral) / seconds(shape->to.t - shape->from.t);
}

/* From the times of the adjacent ticks, at the power of that interval, and the counter's resolution. */
static double tick_variance(const struct timeline *counter, const struct shaped *shape,
                            double share)
{
    double timing =
        tick_watts(shape) * (shape->from.t_sigma * (1 - share) + shape->to.t_sigma * share);
    return square(timing) + square(counter->resolution) / 12;
}

/* ---- windows ---- */

/* A window inside one interval of the counter gets its share of the interval's joules.  The uncertainty of the
 * interval (tick times, resolution) then counts by that share only, where two separate edges would count it twice in
 * full. */
static void set_inside(const struct timeline *counter, const struct shaped *shape,
                       const struct shaped_edge at[2], double length, struct window *out)
{
    double share = (at[1].sum - at[0].sum) / shape->joules;
    double timing = hypot(shape->from.t_sigma, shape->to.t_sigma) * tick_watts(shape);
    double common = square(1 - shape->weight) *
                    fmax(0, at[0].line + at[1].line - square(shape->deviation * length));
    out->sum = at[1].sum - at[0].sum;
    out->variance =
        fmax(0, shaped_variance(shape, &at[0]) + shaped_variance(shape, &at[1]) - common) +
        square(shape->weight * shape->lag * (at[1].ahead - at[0].ahead)) +
        square(share) * (square(timing) + square(counter->resolution) / 6);
}

static void set_across(const struct timeline *counter, const struct shaped shapes[2],
                       const struct shaped_edge at[2], const bool is_placed[2],
                       const double line[2], struct window *out)
{
    double late[2] = {0};
    for (int i = 0; i < 2; i++) {
        if (!is_placed[i])
            continue;
        out->sum += (i ? 1 : -1) * (at[i].sum - line[i]);
        out->variance += shaped_variance(&shapes[i], &at[i]) +
                         tick_variance(counter, &shapes[i], at[i].share) - out->edge_variance[i];
        late[i] = shapes[i].weight * shapes[i].lag * at[i].ahead;
    }
    out->variance = fmax(0, out->variance) + square(late[1] - late[0]);
}

enum err shaped_window(const struct timeline *counter, const struct timeline *power, nanos from,
                       nanos to, struct window *out)
{
    struct shaped shapes[2];
    struct shaped_edge at[2];
    bool is_placed[2];
    double line[2];
    nanos covered, edges[2] = {from, to};
    enum err err = window_read(counter, from, to, out);
    if (err)
        return err;
    for (int i = 0; i < 2; i++) {
        struct running_cursor cursor = {0}, power_cursor = {0};
        is_placed[i] = find_interval(counter, edges[i], &shapes[i]) == ERR_OK &&
                       edges[i] > shapes[i].from.t; /* no placement needed on a tick */
        if (is_placed[i])
            take_samples(power, &power_cursor, &shapes[i]);
        is_placed[i] = is_placed[i] && place(&shapes[i], power, edges[i], &at[i]) &&
                       window_running(counter, &cursor, edges[i], &line[i], &covered) == ERR_OK;
    }
    if (is_placed[0] && is_placed[1] && shapes[0].from.t == shapes[1].from.t)
        set_inside(counter, &shapes[0], at, seconds(to - from), out);
    else
        set_across(counter, shapes, at, is_placed, line, out);
    /* With both edges placed by the samples, their updates are the ones that count. */
    struct window fine;
    if (is_placed[0] && is_placed[1] && window_read(power, from, to, &fine) == ERR_OK &&
        fine.updates > out->updates)
        out->updates = fine.updates;
    return ERR_OK;
}

/* The samples of the counter's interval, once per interval. */
static void update_shape(const struct timeline *power, struct shaped_cursor *cursor)
{
    if (cursor->known && cursor->shape.from.t == cursor->counter.before.t)
        return;
    cursor->known = true;
    cursor->shape = (struct shaped){.from = cursor->counter.before, .to = cursor->counter.after};
    take_samples(power, &cursor->power, &cursor->shape);
}

enum err shaped_running(const struct timeline *counter, const struct timeline *power,
                        struct shaped_cursor *cursor, nanos t, double *sum, nanos *covered)
{
    enum err err = window_running(counter, &cursor->counter, t, sum, covered);
    if (err || !cursor->counter.between || t == cursor->counter.before.t)
        return err;
    update_shape(power, cursor);
    double power_sum, share, placed;
    nanos power_covered;
    if (cursor->shape.usable &&
        window_running(power, &cursor->power, t, &power_sum, &power_covered) == ERR_OK &&
        place_edge(&cursor->shape, power_sum, power_covered, t, &share, &placed))
        *sum = placed;
    return ERR_OK;
}

/* ---- what is not resolved ---- */

static void set_sample(const struct timeline *power, const struct shaped *shape, nanos t,
                       struct resolution *out)
{
    struct timeline_point p[2];
    size_t after;
    if (timeline_after(power, t, &after) != ERR_OK || after == 0 ||
        after >= timeline_count(power) || timeline_read(power, after - 1, 2, p) != ERR_OK)
        return;
    double both = square(shape->weight) + square(1 - shape->weight);
    double ratio = shape->joules / shape->integral, at_half = 0.25;
    nanos middle = p[0].t + (p[1].t - p[0].t) / 2;
    out->sample.from = p[0].t;
    out->sample.to = p[1].t;
    out->sample.burst = both * square(ratio) * step_missed(power, shape->steps, middle) / at_half;
    out->watts = ratio * p[1].value;
}

enum err shaped_resolution(const struct timeline *counter, const struct timeline *power,
                           struct shaped_cursor *cursor, nanos t, struct resolution *out)
{
    double sum;
    nanos covered;
    enum err err = window_resolution(counter, t, out);
    if (!err)
        err = window_running(counter, &cursor->counter, t, &sum, &covered);
    if (err || !cursor->counter.between || out->interval.to == 0)
        return err;
    update_shape(power, cursor);
    const struct shaped *shape = &cursor->shape;
    if (!shape->usable)
        return ERR_OK;
    /* A straight line that is off by that variance in the mean is off as after a burst: f(1-f) has a mean of 1/6. */
    out->interval.burst = square(shape->weight * shape->disagreement) +
                          square(1 - shape->weight) * 6 * shape->line_variance;
    for (int i = 0; i < 2; i++)
        out->interval.edges[i] =
            square(tick_watts(shape) * (i ? shape->to.t_sigma : shape->from.t_sigma)) +
            square(counter->resolution) / 12;
    double ratio = shape->joules / shape->integral;
    out->interval.lag = shape->weight * shape->lag;
    out->interval.rise = ratio * (shape->watts[1] - shape->watts[0]);
    set_sample(power, shape, t, out);
    return ERR_OK;
}
