/* A timeline: one channel's history as running sums, so that any window is the difference of two interpolated points,
 * found by binary search.
 *
 * Memory is bounded: beyond two blocks the oldest block is spilled to a scratch file shared by all timelines of a
 * sampler, and only its first time and extremes stay in memory.  When there is no space for the scratch file, the
 * points in memory are thinned to every second one instead: running sums lose resolution, never energy, and `thinned`
 * counts it.  A spill with keeps_nothing drops the oldest points instead: later windows are exact, and neither memory
 * nor disk use grows.
 *
 * The caller owns struct timeline and struct spill; a timeline is used under one lock. */
#ifndef IPW_SAMPLER_TIMELINE_H
#define IPW_SAMPLER_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct timeline_point {
    nanos t;
    nanos covered;   /* time before t that readings cover; constant over a gap */
    double sum;      /* integral so far: J for energy and power, unit x s otherwise */
    double variance; /* of sum, from sampling inside intervals */
    double value;    /* the reading at t; for counters the mean over the interval that ends at t,
                        UNKNOWN right after a gap */
    double t_sigma;  /* s: standard uncertainty of t */
};

enum { TIMELINE_BLOCK = 2048, TIMELINE_RECENT = 512 };

/* Blocks of all the timelines of one sampler, in one unnamed file. */
struct spill {
    int fd; /* -1 until first needed */
    long long blocks;
    bool keeps_nothing; /* for a program that runs for weeks and queries the last seconds */
    bool failed;
    struct error why;
};

void spill_init(struct spill *spill);
void spill_release(struct spill *spill);

/* Interpolation between two points. */
enum timeline_shape {
    SHAPE_MEANS,  /* constant: value is the mean over the interval that ends there */
    SHAPE_POINTS, /* straight line from reading to reading */
};

struct timeline_block {
    nanos first;
    double low, high; /* extremes of value in the block */
    long long number; /* in the spill file */
};

struct timeline {
    struct spill *spill; /* shared, not owned */
    enum timeline_shape shape;
    double resolution; /* J per count of a counter; 0 for readings */
    double
        lag_sigma; /* s: standard uncertainty of how much later readings are than the power; 0 unknown */
    struct timeline_point *tail;
    size_t tail_count;
    size_t tail_capacity;
    struct timeline_block *blocks;
    size_t block_count;
    size_t block_capacity;
    unsigned thinned; /* how often the tail was halved for lack of space */
};

void timeline_init(struct timeline *timeline, struct spill *spill, enum timeline_shape shape);
void timeline_release(struct timeline *timeline);

/* Appends a point; its t must be later than the last one's (an equal or earlier one is
 * ERR_BAD_VALUE and changes nothing). */
enum err timeline_append(struct timeline *timeline, const struct timeline_point *point) MUST_USE;

/* The newest point, or NULL.  Valid until the next append. */
const struct timeline_point *timeline_last(const struct timeline *timeline);
size_t timeline_count(const struct timeline *timeline);

/* Index of the first point later than `wanted`; the count when there is none. */
enum err timeline_after(const struct timeline *timeline, nanos wanted, size_t *out) MUST_USE;

/* Reads points [first, first + count) of the whole history, oldest = 0. */
enum err timeline_read(const struct timeline *timeline, size_t first, size_t count,
                       struct timeline_point *out) MUST_USE;

/* Smallest and largest value of the points [first, last); +infinity and -infinity for none. */
enum err timeline_range(const struct timeline *timeline, size_t first, size_t last, double *low,
                        double *high) MUST_USE;

#endif
