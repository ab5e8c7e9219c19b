#include "sampler/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/grow.h"
#include "port/file.h"

#define BLOCK_BYTES ((long long)(TIMELINE_BLOCK * sizeof(struct point)))

/* ---- the scratch file ---- */

void spill_init(struct spill *spill)
{
    *spill = (struct spill){.fd = -1};
}

void spill_release(struct spill *spill)
{
    if (spill->fd >= 0)
        close(spill->fd);
    spill_init(spill);
}

static enum err spill_block(struct spill *spill, const struct point *points, long long *place)
{
    if (spill->failed)
        return spill->why.code;
    enum err err = ERR_OK;
    if (spill->fd < 0)
        err = file_open_scratch(&spill->fd, &spill->why);
    if (!err) {
        err = file_write_at(spill->fd, points, (size_t)BLOCK_BYTES, spill->blocks * BLOCK_BYTES);
        if (err)
            err_set(&spill->why, err, "cannot write to the scratch file: %s", err_text(err));
    }
    if (err) {
        spill->failed = true;
        return err;
    }
    *place = spill->blocks++;
    return ERR_OK;
}

/* ---- appending ---- */

void timeline_init(struct timeline *timeline, struct spill *spill, enum timeline_shape shape)
{
    *timeline = (struct timeline){.spill = spill, .shape = shape};
}

void timeline_release(struct timeline *timeline)
{
    free(timeline->tail);
    free(timeline->blocks);
    *timeline = (struct timeline){0};
}

const struct point *timeline_last(const struct timeline *timeline)
{
    return timeline->tail_count ? &timeline->tail[timeline->tail_count - 1] : NULL;
}

size_t timeline_count(const struct timeline *timeline)
{
    return timeline->block_count * TIMELINE_BLOCK + timeline->tail_count;
}

static void widen(double *low, double *high, double value)
{
    if (value < *low)
        *low = value;
    if (value > *high)
        *high = value;
}

static enum err reserve_block_entry(struct timeline *timeline)
{
    struct timeline_block *blocks =
        grow(timeline->blocks, &timeline->block_capacity, timeline->block_count, sizeof *blocks);
    if (!blocks)
        return ERR_NO_MEMORY;
    timeline->blocks = blocks;
    return ERR_OK;
}

/* Moves the oldest block of the tail to the scratch file. */
static enum err spill_oldest(struct timeline *timeline)
{
    enum err err = reserve_block_entry(timeline);
    if (err)
        return err;
    struct timeline_block *entry = &timeline->blocks[timeline->block_count];
    err = spill_block(timeline->spill, timeline->tail, &entry->place);
    if (err)
        return err;
    entry->first = timeline->tail[0].t;
    entry->low = INFINITY;
    entry->high = -INFINITY;
    for (size_t i = 0; i < TIMELINE_BLOCK; i++)
        widen(&entry->low, &entry->high, timeline->tail[i].value);
    timeline->block_count++;
    timeline->tail_count -= TIMELINE_BLOCK;
    memmove(timeline->tail, timeline->tail + TIMELINE_BLOCK,
            timeline->tail_count * sizeof *timeline->tail);
    return ERR_OK;
}

/* Keeps every second point of the tail, the newest and the oldest among them.  Running sums make
 * this lossless for energy; a counter's value becomes the mean over the merged interval. */
static void thin_tail(struct timeline *timeline)
{
    struct point *tail = timeline->tail;
    size_t kept = 1;
    for (size_t i = 1 + timeline->tail_count % 2; i < timeline->tail_count; i += 2) {
        struct point merged = tail[i];
        nanos covered = merged.covered - tail[kept - 1].covered;
        if (timeline->shape == SHAPE_MEANS && covered > 0)
            merged.value = (merged.sum - tail[kept - 1].sum) / seconds(covered);
        tail[kept++] = merged;
    }
    timeline->tail_count = kept;
    timeline->thinned++;
}

static enum err make_room(struct timeline *timeline)
{
    if (timeline->tail && timeline->tail_count < timeline->tail_capacity)
        return ERR_OK;
    if (!timeline->tail || timeline->tail_capacity < (size_t)2 * TIMELINE_BLOCK) {
        /* Start small: most channels of most runs never fill a block. */
        size_t capacity = timeline->tail_capacity ? timeline->tail_capacity * 4 : 64;
        struct point *tail = realloc(timeline->tail, capacity * sizeof *tail);
        if (!tail)
            return ERR_NO_MEMORY;
        timeline->tail = tail;
        timeline->tail_capacity = capacity;
        return ERR_OK;
    }
    if (spill_oldest(timeline) != ERR_OK)
        thin_tail(timeline);
    return ERR_OK;
}

enum err timeline_append(struct timeline *timeline, const struct point *point)
{
    const struct point *last = timeline_last(timeline);
    if (last && point->t <= last->t)
        return ERR_BAD_VALUE;
    enum err err = make_room(timeline);
    if (!err)
        timeline->tail[timeline->tail_count++] = *point;
    return err;
}

/* ---- finding ---- */

enum err timeline_read(const struct timeline *timeline, size_t first, size_t count,
                       struct point *out)
{
    if (first + count > timeline_count(timeline))
        return ERR_NO_DATA;
    while (count > 0) {
        size_t block = first / TIMELINE_BLOCK, offset = first % TIMELINE_BLOCK, n;
        if (block < timeline->block_count) {
            n = TIMELINE_BLOCK - offset < count ? TIMELINE_BLOCK - offset : count;
            long long place = timeline->blocks[block].place * BLOCK_BYTES;
            enum err err = file_read_at(timeline->spill->fd, out, n * sizeof *out,
                                        place + (long long)(offset * sizeof *out));
            if (err)
                return err;
        } else {
            n = count;
            memcpy(out, timeline->tail + (first - timeline->block_count * TIMELINE_BLOCK),
                   n * sizeof *out);
        }
        out += n;
        first += n;
        count -= n;
    }
    return ERR_OK;
}

/* First index in [low, high) whose t is > wanted, among points in memory. */
static size_t after_in(const struct point *points, size_t low, size_t high, nanos wanted)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (points[middle].t <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Same in a spilled block.  Samples are nearly evenly spaced, so the place is guessed from the
 * time and one short read around the guess usually holds it; otherwise the half that must hold
 * it is searched. */
static enum err after_in_block(const struct timeline *timeline, size_t block, nanos wanted,
                               nanos block_end, size_t *out)
{
    enum { NEAR = 32 };
    struct point near[NEAR];
    size_t low = 0, high = TIMELINE_BLOCK;
    nanos first = timeline->blocks[block].first;
    double share = block_end > first ? (double)(wanted - first) / (double)(block_end - first) : 0;
    size_t guess = (size_t)(share * TIMELINE_BLOCK);
    while (high - low > 0) {
        size_t start = guess > low + NEAR / 2 ? guess - NEAR / 2 : low;
        size_t n = high - start < NEAR ? high - start : NEAR;
        enum err err = timeline_read(timeline, block * TIMELINE_BLOCK + start, n, near);
        if (err)
            return err;
        if (near[0].t > wanted && start > low) {
            high = start;
        } else if (near[n - 1].t <= wanted && start + n < high) {
            low = start + n;
        } else {
            *out = start + after_in(near, 0, n, wanted);
            return ERR_OK;
        }
        guess = low + (high - low) / 2;
    }
    *out = low;
    return ERR_OK;
}

enum err timeline_after(const struct timeline *timeline, nanos wanted, size_t *out)
{
    size_t spilled = timeline->block_count * TIMELINE_BLOCK;
    if (timeline->block_count == 0 || timeline->tail[0].t <= wanted) {
        *out = spilled + after_in(timeline->tail, 0, timeline->tail_count, wanted);
        return ERR_OK;
    }
    size_t low = 0, high = timeline->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (timeline->blocks[middle].first <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) {
        *out = 0;
        return ERR_OK;
    }
    size_t block = low - 1, inside;
    nanos end = low < timeline->block_count ? timeline->blocks[low].first : timeline->tail[0].t;
    enum err err = after_in_block(timeline, block, wanted, end, &inside);
    *out = block * TIMELINE_BLOCK + inside;
    return err;
}

/* ---- windows ---- */

/* The running sums at one instant, and how unsure they are. */
struct edge {
    double sum;
    nanos covered;
    double variance;      /* gathered up to here */
    double edge_variance; /* of the interpolation itself */
    size_t index;         /* first point after the instant */
};

static double sum_between(const struct timeline *timeline, const struct point *a,
                          const struct point *b, double f)
{
    double straight = a->sum + (b->sum - a->sum) * f;
    if (timeline->shape == SHAPE_MEANS || b->covered == a->covered)
        return straight;
    double dt = seconds(b->t - a->t), whole = b->sum - a->sum;
    /* Where thinning has taken out the readings between, the line from a to b is no longer what
     * was summed. */
    double line = dt * (a->value + b->value) / 2;
    if (fabs(line - whole) > 1e-9 * (fabs(line) + fabs(b->sum)))
        return straight;
    return straight - dt * (b->value - a->value) * f * (1 - f) / 2;
}

static nanos covered_between(const struct point *a, const struct point *b, nanos t, double f)
{
    if (b->covered - a->covered == b->t - a->t)
        return a->covered + (t - a->t); /* exact: a window without gaps is covered to 1.0 */
    return a->covered + (nanos)((double)(b->covered - a->covered) * f);
}

/* Inside an interval a counter does not say when its joules were spent.  What it spent beyond its
 * neighbours' power may have come in one burst anywhere in it: before the edge with chance f, when
 * a straight line misses 1-f of it, or after, when the line has f of it too much.  That is a
 * variance of f(1-f) times the burst squared.  The time of a tick is uncertain too: that times
 * the power is the second part; the counter's last digit is the third (a whole joule on some
 * platforms).  Readings of power need none of this: their time stamps are good, and
 * what they leave open between them is in the running variance. */
static double edge_variance(const struct timeline *timeline, const struct point *around, double f)
{
    if (timeline->shape == SHAPE_POINTS)
        return 0;
    const struct point *a = &around[1], *b = &around[2], *next = &around[3];
    /* A point after a gap has no value: fmax ignores that side. */
    double step = fmax(0, fmax(fabs(next->value - b->value), fabs(b->value - a->value)));
    double burst = step * seconds(b->t - a->t);
    double power = fmax(b->value, fmax(a->value, next->value));
    double timing = power * (a->t_sigma * (1 - f) + b->t_sigma * f);
    double rounding = timeline->resolution * timeline->resolution / 12;
    return burst * burst * f * (1 - f) + timing * timing + rounding;
}

static enum err edge_at(const struct timeline *timeline, nanos t, struct edge *out)
{
    size_t count = timeline_count(timeline), after;
    enum err err = timeline_after(timeline, t, &after);
    if (err)
        return err;
    struct point p[4];
    if (after == 0 || after == count) {
        /* Before the first or after the last point: nothing is covered there. */
        err = timeline_read(timeline, after == 0 ? 0 : count - 1, 1, p);
        if (!err)
            *out = (struct edge){p->sum, p->covered, p->variance, 0, after};
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
        .edge_variance = p[2].covered > p[1].covered ? edge_variance(timeline, p, f) : 0,
        .index = after,
    };
    return ERR_OK;
}

enum err timeline_window(const struct timeline *timeline, nanos from, nanos to, struct window *out)
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
    return ERR_OK;
}

enum err timeline_running(const struct timeline *timeline, struct timeline_cursor *cursor, nanos t,
                          double *sum, nanos *covered)
{
    struct point *a = &cursor->before, *b = &cursor->after;
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
        struct point around[2];
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

/* Extremes over [first, last) of the history. */
static enum err scan(const struct timeline *timeline, size_t first, size_t last, double *low,
                     double *high)
{
    enum { CHUNK = 128 };
    struct point chunk[CHUNK];
    while (first < last) {
        size_t block = first / TIMELINE_BLOCK;
        bool whole = first % TIMELINE_BLOCK == 0 && block < timeline->block_count &&
                     last - first >= TIMELINE_BLOCK;
        if (whole) {
            widen(low, high, timeline->blocks[block].low);
            widen(low, high, timeline->blocks[block].high);
            first += TIMELINE_BLOCK;
            continue;
        }
        size_t n = last - first < CHUNK ? last - first : CHUNK;
        size_t to_block_end = TIMELINE_BLOCK - first % TIMELINE_BLOCK;
        if (n > to_block_end)
            n = to_block_end;
        enum err err = timeline_read(timeline, first, n, chunk);
        if (err)
            return err;
        for (size_t i = 0; i < n; i++)
            widen(low, high, chunk[i].value);
        first += n;
    }
    return ERR_OK;
}

/* Whether the time between point index-1 and point index is covered. */
static enum err is_covered(const struct timeline *timeline, size_t index, bool *out)
{
    struct point p[2];
    *out = false;
    if (index == 0 || index >= timeline_count(timeline))
        return ERR_OK;
    enum err err = timeline_read(timeline, index - 1, 2, p);
    *out = !err && p[1].covered > p[0].covered;
    return err;
}

enum err timeline_extremes(const struct timeline *timeline, nanos from, nanos to, double *low,
                           double *high)
{
    size_t count = timeline_count(timeline), first, last;
    bool stood = false;
    *low = *high = UNKNOWN;
    if (count == 0 || to <= from)
        return ERR_NO_DATA;
    /* The interval that the end falls into counts too: its mean stands at the point after it. */
    bool means = timeline->shape == SHAPE_MEANS;
    enum err err = timeline_after(timeline, from, &first);
    if (!err)
        err = timeline_after(timeline, means ? to - 1 : to, &last);
    if (!err && !means)
        err = is_covered(timeline, first, &stood);
    if (err)
        return err;
    if (means && last < count)
        last++;
    if (stood)
        first--;
    double least = INFINITY, most = -INFINITY;
    if (first < last)
        err = scan(timeline, first, last, &least, &most);
    if (err || most < least)
        return err ? err : ERR_NO_DATA;
    *low = least;
    *high = most;
    return ERR_OK;
}
