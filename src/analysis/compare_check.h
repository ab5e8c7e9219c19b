/* Bounds on what a run may differ by from its baseline: "energy_per_output_token > +5%".
 * A struct compare_check is plain data of the caller's. */
#ifndef IPW_ANALYSIS_COMPARE_CHECK_H
#define IPW_ANALYSIS_COMPARE_CHECK_H

#include <stdbool.h>

#include "analysis/compare.h"
#include "core/err.h"

struct compare_check {
    char text[128]; /* as it was given */
    enum compare_metric metric;
    bool above;    /* fails above the bound; else below it */
    bool or_equal; /* at it as well */
    bool relative; /* the bound is a share of the baseline; else in the metric's unit */
    double bound;
};

/* METRIC OP BOUND: > >= < <= and a signed number, with % of the baseline.  ERR_USAGE says what is wrong, and
 * names the nearest metric. */
enum err compare_check_parse(const char *text, struct compare_check *out, struct error *why)
    MUST_USE;

enum compare_outcome { CHECK_HOLDS, CHECK_FAILS, CHECK_UNKNOWN };

/* By the difference itself; when `confident`, it fails only where the whole interval does.  CHECK_UNKNOWN: a
 * run lacks the figure. */
enum compare_outcome compare_check_judge(const struct compare_check *check,
                                         const struct comparison *comparison, bool confident);

#endif
