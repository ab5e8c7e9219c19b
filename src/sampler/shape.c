#include "sampler/shape.h"

#include <math.h>

/* Samples that cover less than this of a counter's interval say too little about its shape. */
#define COVERS_ENOUGH 0.98

struct shaped_edge {
    double shift;    /* what the shape adds to the straight line's sum, J */
    double variance; /* of the shaped edge */
};

/* The two points of the counter around t. */
static enum err find_interval(const struct timeline *counter, nanos t, struct point around[2])
{
    size_t after;
    enum err err = timeline_after(counter, t, &after);
    if (err)
        return err;
    if (after == 0 || after == timeline_count(counter))
        return ERR_NO_DATA;
    return timeline_read(counter, after - 1, 2, around);
}

/* What is left unsure once the samples give the shape: their own sampling error over the shorter
 * side; that they and the counter disagree (the ratio is laid evenly over the interval, and may
 * not be even); and when the counter's ticks were, at the power of the moment. */
static double remaining_variance(const struct point around[2], const struct window *whole,
                                 const struct window *part, double joules)
{
    double ratio = joules / whole->sum;
    double share = part->sum / whole->sum;
    double lesser = fmin(share, 1 - share);
    double sampling = fmin(part->variance, fmax(0, whole->variance - part->variance));
    double uneven = (ratio - 1) * whole->sum * lesser;
    double power = joules / seconds(around[1].t - around[0].t);
    double timing = power * (around[0].t_sigma * (1 - share) + around[1].t_sigma * share);
    return sampling * ratio * ratio + uneven * uneven / 3 + timing * timing;
}

static bool shape_edge(const struct timeline *counter, const struct timeline *power, nanos t,
                       struct shaped_edge *out)
{
    struct point around[2];
    struct window whole, part;
    if (find_interval(counter, t, around) != ERR_OK || around[1].covered == around[0].covered)
        return false;
    if (t == around[0].t)
        return false; /* on a tick there is nothing to lay out */
    if (timeline_window(power, around[0].t, around[1].t, &whole) != ERR_OK ||
        timeline_window(power, around[0].t, t, &part) != ERR_OK)
        return false;
    if (whole.coverage < COVERS_ENOUGH || part.coverage < COVERS_ENOUGH || whole.sum <= 0)
        return false;
    double joules = around[1].sum - around[0].sum;
    double straight = (double)(t - around[0].t) / (double)(around[1].t - around[0].t);
    out->shift = joules * (part.sum / whole.sum - straight);
    out->variance = remaining_variance(around, &whole, &part, joules) +
                    counter->resolution * counter->resolution / 12;
    return true;
}

/* A window inside one interval of the counter: its share of the interval's joules.  What is unsure
 * of the interval (when its ticks were, its last digits) then weighs by that share only, where two
 * edges taken apart would count it twice in full. */
static bool shape_inside(const struct timeline *counter, const struct timeline *power, nanos from,
                         nanos to, struct window *out)
{
    struct point around[2];
    struct window whole, part;
    if (find_interval(counter, from, around) != ERR_OK || to > around[1].t ||
        around[1].covered == around[0].covered)
        return false;
    if (timeline_window(power, around[0].t, around[1].t, &whole) != ERR_OK ||
        timeline_window(power, from, to, &part) != ERR_OK)
        return false;
    if (whole.coverage < COVERS_ENOUGH || part.coverage < COVERS_ENOUGH || whole.sum <= 0)
        return false;
    double joules = around[1].sum - around[0].sum;
    double ratio = joules / whole.sum, share = part.sum / whole.sum;
    double length = seconds(around[1].t - around[0].t);
    double timing = hypot(around[0].t_sigma, around[1].t_sigma) * joules / length;
    double digits = counter->resolution * counter->resolution / 6;
    double uneven = (ratio - 1) * part.sum;
    out->sum = ratio * part.sum;
    out->variance = ratio * ratio * part.variance + uneven * uneven / 3 +
                    share * share * (timing * timing + digits);
    if (part.updates > out->updates)
        out->updates = part.updates;
    return true;
}

enum err shaped_window(const struct timeline *counter, const struct timeline *power, nanos from,
                       nanos to, struct window *out)
{
    enum err err = timeline_window(counter, from, to, out);
    if (err || shape_inside(counter, power, from, to, out))
        return err;
    struct shaped_edge edge;
    bool from_shaped = shape_edge(counter, power, from, &edge);
    if (from_shaped) {
        out->sum -= edge.shift;
        out->variance += edge.variance - out->edge_variance[0];
    }
    bool to_shaped = shape_edge(counter, power, to, &edge);
    if (to_shaped) {
        out->sum += edge.shift;
        out->variance += edge.variance - out->edge_variance[1];
    }
    out->variance = fmax(0, out->variance);
    /* With both edges laid out by the samples, it is their updates that the window must hold. */
    struct window fine;
    if (from_shaped && to_shaped && timeline_window(power, from, to, &fine) == ERR_OK &&
        fine.updates > out->updates)
        out->updates = fine.updates;
    return ERR_OK;
}

/* ---- running sums ---- */

/* Finds out once for each interval of the counter whether samples lay it out. */
static bool lays_out(const struct timeline *power, struct shaped_cursor *cursor)
{
    const struct point *a = &cursor->counter.before, *b = &cursor->counter.after;
    if (cursor->asked && cursor->interval_from == a->t)
        return cursor->shaped;
    struct window whole;
    cursor->asked = true;
    cursor->interval_from = a->t;
    cursor->shaped = false;
    if (a->covered == b->covered || timeline_window(power, a->t, b->t, &whole) != ERR_OK ||
        whole.coverage < COVERS_ENOUGH || whole.sum <= 0)
        return false;
    cursor->power_whole = whole.sum;
    cursor->shaped = timeline_running(power, &cursor->power, a->t, &cursor->power_sum,
                                      &cursor->power_covered) == ERR_OK;
    return cursor->shaped;
}

enum err shaped_running(const struct timeline *counter, const struct timeline *power,
                        struct shaped_cursor *cursor, nanos t, double *sum, nanos *covered)
{
    enum err err = timeline_running(counter, &cursor->counter, t, sum, covered);
    const struct point *a = &cursor->counter.before, *b = &cursor->counter.after;
    if (err || !cursor->counter.between || t == a->t || !lays_out(power, cursor))
        return err;
    double power_sum;
    nanos power_covered;
    if (timeline_running(power, &cursor->power, t, &power_sum, &power_covered) != ERR_OK)
        return ERR_OK;
    double part = power_sum - cursor->power_sum;
    double reach = (double)(power_covered - cursor->power_covered);
    if (reach <= 0 || reach < COVERS_ENOUGH * (double)(t - a->t))
        return ERR_OK; /* as for a window: too little is known of this side of it */
    double straight = (double)(t - a->t) / (double)(b->t - a->t);
    *sum += (b->sum - a->sum) * (part / cursor->power_whole - straight);
    return ERR_OK;
}
