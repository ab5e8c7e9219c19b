/* Bounds on differences, for scripts: --fail-if.  Plain data. */
#ifndef IPW_ANALYSIS_COMPARE_BOUNDS_H
#define IPW_ANALYSIS_COMPARE_BOUNDS_H

#include "analysis/compare.h"

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

enum compare_outcome {
    CHECK_HOLDS,
    CHECK_FAILS,
    CHECK_UNKNOWN,
    CHECK_NOT_COMPARABLE,
    CHECK_UNREPEATED, /* confident, and a side has one run */
    CHECK_OUTCOMES
};

/* By the difference itself; when `confident`, it fails only where the whole interval does.  CHECK_UNKNOWN: a
 * run lacks the figure. */
enum compare_outcome compare_check_judge(const struct compare_check *check,
                                         const struct comparison *comparison, bool confident);

#endif
