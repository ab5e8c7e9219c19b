#include "sampler/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/grow.h"
#include "core/memory.h"
#include "port/file.h"

#define BLOCK_BYTES ((long long)(TIMELINE_BLOCK * sizeof(struct timeline_point)))

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

static enum err spill_block(struct spill *spill, const struct timeline_point *points,
                            long long *number)
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
    *number = spill->blocks++;
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

const struct timeline_point *timeline_last(const struct timeline *timeline)
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
    err = spill_block(timeline->spill, timeline->tail, &entry->number);
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

/* Keeps every second point of the tail, including the newest and the oldest.  Running sums make this lossless for
 * energy; a counter's value becomes the mean over the merged interval. */
static void downsample_tail(struct timeline *timeline)
{
    struct timeline_point *tail = timeline->tail;
    size_t kept = 1;
    for (size_t i = 1 + timeline->tail_count % 2; i < timeline->tail_count; i += 2) {
        struct timeline_point merged = tail[i];
        nanos covered = merged.covered - tail[kept - 1].covered;
        if (timeline->shape == SHAPE_MEANS && covered > 0)
            merged.value = (merged.sum - tail[kept - 1].sum) / seconds(covered);
        tail[kept++] = merged;
    }
    timeline->tail_count = kept;
    timeline->thinned++;
}

static void drop_oldest(struct timeline *timeline)
{
    timeline->tail_count -= TIMELINE_RECENT;
    memmove(timeline->tail, timeline->tail + TIMELINE_RECENT,
            timeline->tail_count * sizeof *timeline->tail);
}

/* Ensures capacity for one more point in the tail. */
static enum err reserve_point(struct timeline *timeline)
{
    size_t max = timeline->spill->keeps_nothing ? 2 * TIMELINE_RECENT : 2 * TIMELINE_BLOCK;
    if (timeline->tail && timeline->tail_count < timeline->tail_capacity)
        return ERR_OK;
    if (!timeline->tail || timeline->tail_capacity < max) {
        /* Start small: most channels of most runs never fill a block. */
        size_t capacity = timeline->tail_capacity ? timeline->tail_capacity * 4 : 64;
        struct timeline_point *tail = memory_resize(timeline->tail, capacity * sizeof *tail);
        if (!tail)
            return ERR_NO_MEMORY;
        timeline->tail = tail;
        timeline->tail_capacity = capacity;
        return ERR_OK;
    }
    if (timeline->spill->keeps_nothing)
        drop_oldest(timeline);
    else if (spill_oldest(timeline) != ERR_OK)
        downsample_tail(timeline);
    return ERR_OK;
}

enum err timeline_append(struct timeline *timeline, const struct timeline_point *point)
{
    const struct timeline_point *last = timeline_last(timeline);
    if (last && point->t <= last->t)
        return ERR_BAD_VALUE;
    enum err err = reserve_point(timeline);
    if (!err)
        timeline->tail[timeline->tail_count++] = *point;
    return err;
}

/* ---- finding ---- */

enum err timeline_read(const struct timeline *timeline, size_t first, size_t count,
                       struct timeline_point *out)
{
    if (first + count > timeline_count(timeline))
        return ERR_NO_DATA;
    while (count > 0) {
        size_t block = first / TIMELINE_BLOCK, offset = first % TIMELINE_BLOCK, n;
        if (block < timeline->block_count) {
            n = TIMELINE_BLOCK - offset < count ? TIMELINE_BLOCK - offset : count;
            long long start = timeline->blocks[block].number * BLOCK_BYTES;
            enum err err = file_read_at(timeline->spill->fd, out, n * sizeof *out,
                                        start + (long long)(offset * sizeof *out));
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
static size_t after_in(const struct timeline_point *points, size_t low, size_t high, nanos wanted)
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

/* The same in a spilled block.  Samples are nearly evenly spaced, so the position is interpolated from the time, and
 * one short read around it usually contains it; otherwise the half that must contain it is searched. */
static enum err after_in_block(const struct timeline *timeline, size_t block, nanos wanted,
                               nanos block_end, size_t *out)
{
    enum { NEAR = 32 };
    struct timeline_point near[NEAR];
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

enum err timeline_range(const struct timeline *timeline, size_t first, size_t last, double *low,
                        double *high)
{
    enum { CHUNK = 128 };
    struct timeline_point chunk[CHUNK];
    *low = INFINITY;
    *high = -INFINITY;
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
