/* Comparison of the metrics of all answers (ipw.quality) of two sides.  Plain data, owned by the caller. */
#ifndef IPW_ANALYSIS_COMPARE_QUALITY_H
#define IPW_ANALYSIS_COMPARE_QUALITY_H

#include <stddef.h>
#include <stdint.h>

#include "rundir/quality.h"
#include "stats/contrast.h"

struct compare_side;

struct compared_quality {
    char name[24];
    enum better better;
    double a, b;                       /* means over the runs; UNKNOWN if one has none */
    double a_plus_minus, b_plus_minus; /* over the items, which repeats of a run share */
    size_t a_count, b_count;           /* items */
    size_t pairs;                      /* questions drawn together; 0: the normal approximation */
    struct contrast_figure difference, relative;
    double p_value, p_holm; /* UNKNOWN without a test */
    const char *test;       /* NULL without one */
};

/* Fills out[SUMMARY_QUALITIES_MAX] with the metrics that all runs of a side have, in the order of the baseline; returns
 * their number.  Where the answers are in the records and give the same figures again, questions that both sides
 * answered are drawn in pairs: a bootstrap for the interval, a permutation test for p.  Otherwise both follow from the
 * uncertainties of the sides. */
size_t compare_qualities(const struct compare_side *a, const struct compare_side *b, uint64_t seed,
                         struct compared_quality *out);

#endif
