/* One figure of a sweep (power, time) against the clock, without a formula for it: a smooth, monotone curve of
 * ln(figure) against ln(clock), which may have a kink (a voltage floor, a power cap, the end of memory-bound times) or
 * a step.  How smooth it is and whether it bends or jumps is decided by the error on left-out samples; candidates that
 * the samples cannot tell apart are averaged, and their differences are part of the uncertainty.
 *
 * Ownership: smooth_fit fills a struct smooth_curve, which smooth_curve_release frees. */
#ifndef IPW_POWER_SMOOTH_FIT_H
#define IPW_POWER_SMOOTH_FIT_H

#include <stdbool.h>
#include <stddef.h>

/* Fewer samples determine no curve. */
enum { SMOOTH_MIN = 8 };

struct smooth_question {
    const double *mhz, *figure; /* samples: all above 0, clocks ascending and different */
    size_t count;               /* at least SMOOTH_MIN */
    const double
        *at_mhz; /* wanted clocks, ascending; the last is the one that others are compared with */
    size_t at_count;
    bool is_falling; /* with the clock, as times are; else rising, as powers are */
    bool has_steps;  /* may jump between two samples */
};

/* All in ln of the figure: relative for small ones. */
struct smooth_curve {
    double *value;    /* at each wanted clock */
    double *change;   /* standard deviation of value[i] - value[last] */
    double *moved;    /* how far monotony moved that difference */
    double *residual; /* of each sample */
    double noise;     /* standard deviation of one sample about the curve, without outliers */
    double freedom;   /* samples less parameters */
};

void smooth_fit(const struct smooth_question *question, struct smooth_curve *out);
void smooth_curve_release(struct smooth_curve *curve);

#endif
