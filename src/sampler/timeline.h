/* A timeline: one channel's history as running sums, so that any window is the difference of two
 * interpolated points, found by binary search.
 *
 * Memory is bounded: beyond two blocks the oldest block goes to a scratch file shared by all the
 * timelines of a sampler, and only its first time and extremes stay in memory.  When the scratch
 * file cannot be had (disk full), the points in memory are thinned to every second one instead:
 * running sums lose resolution by that, never energy, and `thinned` says so.
 *
 * The caller owns struct timeline and struct spill; a timeline is used under one lock. */
#ifndef IPW_SAMPLER_TIMELINE_H
#define IPW_SAMPLER_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct point {
    nanos t;
    nanos covered;   /* time before t that readings cover; stands still over a gap */
    double sum;      /* integral so far: J for energy and power, unit x s otherwise */
    double variance; /* of sum, from sampling inside intervals */
    double value;    /* the reading at t; for counters the mean over the interval that ends at t,
                        UNKNOWN right after a gap */
    double t_sigma;  /* s: standard uncertainty of t */
};

enum { TIMELINE_BLOCK = 2048 };

/* Blocks of all the timelines of one sampler, in one nameless file. */
struct spill {
    int fd; /* -1 until first needed */
    long long blocks;
    bool failed;
    struct error why;
};

void spill_init(struct spill *spill);
void spill_release(struct spill *spill);

/* How the value runs between two points. */
enum timeline_shape {
    SHAPE_MEANS,  /* constant: value is the mean over the interval that ends there */
    SHAPE_POINTS, /* straight line from reading to reading */
};

struct timeline_block {
    nanos first;
    double low, high; /* extremes of value in the block */
    long long place;  /* block number in the spill file */
};

struct timeline {
    struct spill *spill; /* shared, not owned */
    enum timeline_shape shape;
    double resolution; /* J: what a counter's last digit is worth; 0 for readings */
    struct point *tail;
    size_t tail_count;
    size_t tail_capacity;
    struct timeline_block *blocks;
    size_t block_count;
    size_t block_capacity;
    unsigned thinned; /* how often the tail was halved for want of space */
};

struct window {
    double sum;              /* integral over the covered part; UNKNOWN when nothing is covered */
    double variance;         /* of sum: sampling inside, interpolation and timing at both edges */
    double edge_variance[2]; /* the part of it that each edge brings */
    double coverage;         /* 0..1 */
    double covered_s;
    unsigned long updates; /* points after the window's start, up to its end */
};

void timeline_init(struct timeline *timeline, struct spill *spill, enum timeline_shape shape);
void timeline_release(struct timeline *timeline);

/* Appends a point; its t must be later than the last one's (an equal or earlier one is
 * ERR_BAD_VALUE and changes nothing). */
enum err timeline_append(struct timeline *timeline, const struct point *point) MUST_USE;

/* The newest point, or NULL.  Valid until the next append. */
const struct point *timeline_last(const struct timeline *timeline);
size_t timeline_count(const struct timeline *timeline);

/* Integral over [from, to], edges interpolated.  ERR_NO_DATA when no reading covers any of it. */
enum err timeline_window(const struct timeline *timeline, nanos from, nanos to, struct window *out)
    MUST_USE;

/* The place of the last answer of timeline_running: zero it before the first. */
struct timeline_cursor {
    struct point before, after;
    bool between; /* the two hold points with nothing between them */
};

/* The running sum and the covered time at one instant: a window's sum is the difference of two of
 * these.  Before the first and after the last point they stand still.  Quick where the instant is
 * between the same two points as the last one asked for. */
enum err timeline_running(const struct timeline *timeline, struct timeline_cursor *cursor, nanos t,
                          double *sum, nanos *covered) MUST_USE;

/* Smallest and largest value in the covered part of the window: of the means of every interval that
 * reaches into it; of the readings inside and the one that stood when it began. */
enum err timeline_extremes(const struct timeline *timeline, nanos from, nanos to, double *low,
                           double *high) MUST_USE;

/* Index of the first point later than `wanted`; the count when there is none. */
enum err timeline_after(const struct timeline *timeline, nanos wanted, size_t *out) MUST_USE;

/* Reads points [first, first + count) of the whole history, oldest = 0, for export. */
enum err timeline_read(const struct timeline *timeline, size_t first, size_t count,
                       struct point *out) MUST_USE;

#endif
