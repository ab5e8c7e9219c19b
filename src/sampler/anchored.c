/* Energy is appended point by point as power arrives, and each anchor is compared with the energy at its time.  The
 * offset between energy and counter is constant from anchor to anchor, so errors of single anchors (their ticks are
 * known to milliseconds) do not accumulate. */
#include "sampler/anchored.h"

#include <math.h>

/* Relative uncertainty of energy after the last anchor: before a ratio is known, and the minimum. */
#define ERROR_FIRST 0.05
#define ERROR_MIN   0.002

/* The ratio is updated from two anchors whose times are known to this share of their distance; an anchor whose time
 * is known to less than the second share is ignored. */
#define TIMING_SHARE 0.02
#define TIMING_MAX   0.2

/* The difference at an anchor is corrected within this time, by at most this share of the power. */
#define CORRECTION_TIME_MAX  (30 * NS_PER_S)
#define CORRECTION_SHARE_MAX 0.5

/* Outside this range power and counter do not measure the same device. */
#define RATIO_MIN 0.2
#define RATIO_MAX 5.0

/* How long a gap in power waits for the counter. */
#define HOLD_MAX (2 * NS_PER_S)

/* An anchor not confirmed by the counter for this many of its periods is stale. */
enum { PERIODS_TRUSTED = 4, CHUNK = 64 };

void anchored_init(struct anchored *anchored, const struct timeline *counter,
                   const struct timeline *power, struct spill *spill, nanos period)
{
    *anchored = (struct anchored){
        .counter = counter,
        .power = power,
        .ratio = 1,
        .error = ERROR_FIRST,
        .valid_for = PERIODS_TRUSTED * period,
    };
    timeline_init(&anchored->energy, spill, SHAPE_MEANS);
}

void anchored_release(struct anchored *anchored)
{
    timeline_release(&anchored->energy);
}

bool anchored_is_usable(const struct anchored *anchored)
{
    return anchored->has_anchor;
}

static bool is_covered(const struct timeline_point *a, const struct timeline_point *b)
{
    return b->covered - a->covered == b->t - a->t;
}

/* ---- anchors ---- */

/* Energy, and power, at the time of a point of the counter. */
struct moment {
    double energy, power;
    nanos energy_covered, power_covered;
};

static enum err look_up(const struct anchored *anchored, nanos t, struct moment *out)
{
    struct running_cursor energy = {0}, power = {0};
    enum err err =
        window_running(&anchored->energy, &energy, t, &out->energy, &out->energy_covered);
    return err ? err : window_running(anchored->power, &power, t, &out->power, &out->power_covered);
}

static void set_anchor(struct anchored *anchored, const struct timeline_point *point,
                       const struct moment *at)
{
    anchored->anchor = *point;
    anchored->has_anchor = true;
    anchored->power_sum = at->power;
    anchored->power_covered = at->power_covered;
    anchored->energy_covered = at->energy_covered;
}

/* Restarts from this anchor: initially, and after a reset. */
static void start_at(struct anchored *anchored, const struct timeline_point *point,
                     const struct moment *at)
{
    set_anchor(anchored, point, at);
    anchored->offset = at->energy - point->sum;
    anchored->correction = 0;
}

/* Weight of a difference that may be noise of this standard deviation. */
static double gain(double difference, double noise)
{
    double squared = difference * difference, min = 4 * noise * noise;
    return squared > 0 ? squared / (squared + min) : 0;
}

/* Updates the ratio from the interval between two anchors. */
static void learn_ratio(struct anchored *anchored, const struct timeline_point *point,
                        const struct moment *at)
{
    nanos elapsed = point->t - anchored->anchor.t;
    double timing = hypot(point->t_sigma, anchored->anchor.t_sigma);
    double power = at->power - anchored->power_sum;
    if (at->power_covered - anchored->power_covered != elapsed || power <= 0 ||
        timing > TIMING_SHARE * seconds(elapsed))
        return;
    double seen = (point->sum - anchored->anchor.sum) / power;
    seen = fmin(RATIO_MAX, fmax(RATIO_MIN, seen));
    double noise = timing / seconds(elapsed), off = fabs(seen / anchored->ratio - 1) + noise;
    /* The ratio depends on the load and on errors of the tick times. */
    anchored->ratio += gain(seen - anchored->ratio, noise) * (seen - anchored->ratio);
    anchored->error = fmax(ERROR_MIN, anchored->has_ratio ? (anchored->error + off) / 2 : noise);
    anchored->has_ratio = true;
}

static void take_anchor(struct anchored *anchored, const struct timeline_point *point,
                        const struct moment *at)
{
    const struct timeline_point *before = &anchored->anchor;
    nanos elapsed = point->t - before->t;
    if (!anchored->has_anchor || !is_covered(before, point) ||
        at->energy_covered - anchored->energy_covered != elapsed) {
        start_at(anchored, point, at);
        return;
    }
    /* While ticks are being learned, several anchors arrive per second: start from the one whose time is known best. */
    if (hypot(point->t_sigma, before->t_sigma) > TIMING_SHARE * seconds(elapsed) &&
        elapsed < CORRECTION_TIME_MAX) {
        if (!anchored->has_ratio && point->t_sigma < before->t_sigma)
            start_at(anchored, point, at);
        return;
    }
    learn_ratio(anchored, point, at);
    double off = anchored->offset + point->sum - at->energy;
    double watts = (point->sum - before->sum) / seconds(elapsed);
    anchored->correction = off * gain(off, watts * hypot(point->t_sigma, before->t_sigma));
    anchored->apply_time = elapsed < CORRECTION_TIME_MAX ? elapsed : CORRECTION_TIME_MAX;
    anchored->carried = fmax(fabs(off), anchored->carried / 2);
    set_anchor(anchored, point, at);
}

/* Processes the points of the counter up to the end of energy. */
static enum err take_anchors(struct anchored *anchored)
{
    const struct timeline_point *end = timeline_last(&anchored->energy);
    const struct timeline_point *newest = timeline_last(anchored->counter);
    struct timeline_point point;
    struct moment at;
    size_t index;
    if (!end || !newest || newest->t <= anchored->seen)
        return ERR_OK;
    enum err err = timeline_after(anchored->counter, anchored->seen, &index);
    for (; !err && index < timeline_count(anchored->counter); index++) {
        err = timeline_read(anchored->counter, index, 1, &point);
        if (err || point.t > end->t)
            break;
        anchored->seen = point.t;
        err = look_up(anchored, point.t, &at);
        if (!err && point.t_sigma <= TIMING_MAX)
            take_anchor(anchored, &point, &at);
    }
    return err;
}

/* ---- energy ---- */

static enum err append(struct anchored *anchored, const struct timeline_point *power, double joules,
                       bool covered)
{
    const struct timeline_point *last = timeline_last(&anchored->energy);
    struct timeline_point point = {.t = power->t, .value = UNKNOWN};
    if (last) {
        nanos length = power->t - last->t;
        point.sum = last->sum + joules;
        point.covered = last->covered + (covered ? length : 0);
        point.variance = last->variance + fmax(0, power->variance - anchored->last.variance);
        if (covered)
            point.value = joules / seconds(length);
    }
    anchored->last = *power;
    anchored->has_last = true;
    return timeline_append(&anchored->energy, &point);
}

/* The part of the outstanding correction that is applied in one interval of power. */
static double make_up(struct anchored *anchored, double joules, nanos length)
{
    double share =
        anchored->apply_time > length ? seconds(length) / seconds(anchored->apply_time) : 1;
    double max = CORRECTION_SHARE_MAX * joules;
    double part = fmax(-max, fmin(max, share * anchored->correction));
    anchored->correction -= part;
    anchored->apply_time = anchored->apply_time > length ? anchored->apply_time - length : 0;
    return part;
}

/* The joules of a gap in power that ends at `to`: those of the counter minus the power around the gap.  ERR_NO_DATA:
 * the counter has not been read since. */
static enum err bridge(const struct anchored *anchored, const struct timeline_point *to,
                       double *joules)
{
    struct running_cursor cursor = {0};
    struct timeline_point point;
    size_t index;
    double sum;
    nanos covered;
    enum err err = timeline_after(anchored->counter, to->t - 1, &index);
    if (err || !anchored->has_anchor || index >= timeline_count(anchored->counter))
        return err ? err : ERR_NO_DATA;
    err = timeline_read(anchored->counter, index, 1, &point);
    if (!err && !is_covered(&anchored->anchor, &point))
        return ERR_BAD_VALUE; /* reset meanwhile */
    if (!err)
        err = window_running(anchored->power, &cursor, point.t, &sum, &covered);
    if (err)
        return err;
    const struct timeline_point *last = timeline_last(&anchored->energy);
    *joules = fmax(0, anchored->offset + point.sum - last->sum -
                          anchored->ratio * fmax(0, sum - to->sum));
    return ERR_OK;
}

/* Adds one point of power.  False in *taken: it has to wait for the counter. */
static enum err take_power(struct anchored *anchored, const struct timeline_point *point,
                           nanos newest, bool *taken)
{
    *taken = true;
    if (!anchored->has_last) {
        anchored->seen = point->t - 1; /* anchors before the first power reading are ignored */
        return append(anchored, point, 0, false);
    }
    bool is_trusted = !anchored->has_anchor || point->t - anchored->anchor.t <= anchored->valid_for;
    double joules = anchored->ratio * (point->sum - anchored->last.sum);
    if (is_covered(&anchored->last, point) && is_trusted) {
        joules += make_up(anchored, joules, point->t - anchored->last.t);
        return append(anchored, point, joules, true);
    }
    enum err err =
        anchored->has_anchor && is_trusted ? bridge(anchored, point, &joules) : ERR_BAD_VALUE;
    if (err == ERR_NO_DATA && newest - point->t < HOLD_MAX) {
        *taken = false;
        return ERR_OK;
    }
    anchored->correction = 0;
    return append(anchored, point, err ? 0 : joules, !err);
}

enum err anchored_advance(struct anchored *anchored, bool *wants_counter)
{
    struct timeline_point chunk[CHUNK];
    const struct timeline_point *newest = timeline_last(anchored->power);
    size_t index = 0;
    bool taken = true;
    *wants_counter = false;
    if (!newest || (anchored->has_last && newest->t <= anchored->last.t))
        return take_anchors(anchored);
    enum err err = ERR_OK;
    if (anchored->has_last)
        err = timeline_after(anchored->power, anchored->last.t, &index);
    while (!err && taken && index < timeline_count(anchored->power)) {
        size_t left = timeline_count(anchored->power) - index, count = left < CHUNK ? left : CHUNK;
        err = timeline_read(anchored->power, index, count, chunk);
        for (size_t i = 0; i < count && !err && taken; i++) {
            err = take_power(anchored, &chunk[i], newest->t, &taken);
            if (!err && taken)
                err = take_anchors(anchored);
        }
        index += count;
    }
    *wants_counter = !taken;
    return err;
}

/* ---- windows ---- */

enum err anchored_window(const struct anchored *anchored, nanos from, nanos to, struct window *out)
{
    enum err err = window_read(&anchored->energy, from, to, out);
    struct running_cursor cursor = {0};
    double start, anchor;
    nanos covered;
    if (err)
        return err;
    nanos last = anchored->anchor.t > from ? anchored->anchor.t : from;
    err = window_running(&anchored->energy, &cursor, from, &start, &covered);
    if (!err && last < to)
        err = window_running(&anchored->energy, &cursor, last, &anchor, &covered);
    else if (!err)
        anchor = start + out->sum;
    if (err)
        return err;
    double known = fmin(out->sum, fmax(0, anchor - start)), beyond = out->sum - known;
    double of_known = fmin(anchored->error * known, anchored->carried);
    out->variance += of_known * of_known + anchored->error * anchored->error * beyond * beyond;
    return ERR_OK;
}
