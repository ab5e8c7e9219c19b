/* Queries about windows of time: the integral of a channel, its running sum, its values.
 *
 * Pure over timelines; the caller owns every struct. */
#ifndef IPW_SAMPLER_WINDOW_H
#define IPW_SAMPLER_WINDOW_H

#include <stdbool.h>

#include "core/err.h"
#include "core/units.h"
#include "sampler/timeline.h"

/* ---- integrals ---- */

struct window {
    double sum;              /* integral over the covered part; UNKNOWN when nothing is covered */
    double variance;         /* of sum: sampling inside, interpolation and timing at both edges */
    double edge_variance[2]; /* the part of it that each edge adds */
    double coverage;         /* 0..1 */
    double covered_s;
    unsigned long updates; /* points after the window's start, up to its end */
};

/* Integral over [from, to], edges interpolated.  ERR_NO_DATA when no reading covers any of it. */
enum err window_read(const struct timeline *timeline, nanos from, nanos to, struct window *out)
    MUST_USE;

/* Standard uncertainty of the time of readings that are `spacing` apart, s; 0 for means. */
double window_lag(const struct timeline *timeline, nanos spacing);

/* ---- running sums ---- */

/* State of window_running between calls: zero it before the first. */
struct running_cursor {
    struct timeline_point before, after;
    bool between; /* the two are adjacent points */
};

/* The running sum and the covered time at one instant: a window's sum is the difference of two of these.  Constant
 * before the first and after the last point.  Fast when the instant is between the same two points as the previous
 * one. */
enum err window_running(const struct timeline *timeline, struct running_cursor *cursor, nanos t,
                        double *sum, nanos *covered) MUST_USE;

/* ---- values ---- */

/* Smallest and largest value in the covered part of the window: of the means of every interval that overlaps it; of
 * the readings inside and the one that was current at its start. */
enum err window_extremes(const struct timeline *timeline, nanos from, nanos to, double *low,
                         double *high) MUST_USE;

/* UNKNOWN without a reading. */
struct value_stats {
    double avg; /* over the covered time, or of the values where no time is covered */
    double max, median, min;
};

/* Values are the readings inside the window or, without any, the one that was current at its start and is not older
 * than `stale`; for means (counters), every interval that overlaps it.  The median of many values is that of a few
 * hundred of them, evenly chosen; extremes are always of all.  ERR_NO_DATA when there is no value. */
enum err window_values(const struct timeline *timeline, nanos from, nanos to, nanos stale,
                       struct value_stats *out) MUST_USE;

#endif
