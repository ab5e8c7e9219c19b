/* Two runs by one figure that is made of sums over queries: (sum 0 / sum 1), or that times
 * (sum 2 / sum 3).  What each comes to, the difference with its 95 % interval (bootstrap, bias-corrected
 * and accelerated), and how often chance alone makes one as large (permutation, two-sided).
 *
 * More queries than CONTRAST_UNITS a side are put together in units of equal size first, each query with
 * every so-many-th after it: what is drawn and exchanged are units then.  The same seed draws the same.
 * Pure but for memory of its own, which it gives back. */
#ifndef IPW_STATS_CONTRAST_H
#define IPW_STATS_CONTRAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum { CONTRAST_SUMS = 4, CONTRAST_UNITS = 2048, CONTRAST_DRAWS = 2000, CONTRAST_TRIES = 9999 };

/* What each query adds to each sum: CONTRAST_SUMS numbers a query, all finite. */
struct contrast_side {
    const double *terms;
    size_t count;
};

struct contrast_question {
    struct contrast_side a, b;
    bool paired;  /* query i of both is the same one; the counts must be equal */
    bool product; /* the figure has its second factor */
    uint64_t seed;
};

struct contrast_figure {
    double value, low, high;
};

/* UNKNOWN where the sums make no figure; intervals also under two queries a side. */
struct contrast {
    double a, b;                       /* the figure of each */
    double a_error, b_error;           /* standard errors */
    struct contrast_figure difference; /* b - a */
    struct contrast_figure relative;   /* b / a - 1 */
    double p_value;
    bool exact; /* every arrangement was tried */
};

enum err contrast(const struct contrast_question *question, struct contrast *out) MUST_USE;

/* McNemar's exact test, or any of signs: of `wins` + `losses` that differ, as uneven a division by chance
 * alone.  1 when there is none. */
double sign_test(uint64_t wins, uint64_t losses);

/* Holm's step-down: p values of several questions, each replaced by what may be held against one limit
 * for all.  Those that are UNKNOWN are no questions. */
void holm_adjust(double *p_values, size_t count);

#endif
