/* Runs given by the user as sides of comparisons with a baseline: detects repeats of one setting, and compares every
 * side with the first; and bounds on the differences.
 *
 * compare_groups_release and compare_set_release free what compare_groups_find and compare_set_load allocate. */
#ifndef IPW_ANALYSIS_COMPARE_SET_H
#define IPW_ANALYSIS_COMPARE_SET_H

#include "analysis/compare.h"

struct result;

/* The runs of each side, the baseline first. */
struct compare_groups {
    const char **directories; /* all sides in order; strings of the caller */
    size_t *runs;             /* number of runs of each side */
    size_t count;             /* number of sides */
    bool one_setting;         /* every run is a side, because all are repeats of one setting */
};

/* Runs of one repeat group (--repeat-runs) form one side, as do runs of equal settings whose paths differ only in _rN
 * or a trailing time.  "--" between runs separates sides explicitly.  If all runs are repeats of one setting, every run
 * is a side. */
void compare_groups_find(const char *const *words, size_t count, struct compare_groups *out);
void compare_groups_release(struct compare_groups *groups);

struct compare_set {
    struct compared_side baseline;
    struct comparison *comparisons;
    size_t count;
};

/* All verdicts are set.  Only the baseline and one side are in memory at a time. */
enum err compare_set_load(const struct compare_groups *groups,
                          const struct compare_options *options, struct compare_set *out,
                          struct error *why) MUST_USE;
void compare_set_release(struct compare_set *set);

/* ---- bounds on differences, for scripts: --fail-if ---- */

struct compare_check {
    char text[128]; /* as given */
    enum compare_metric metric;
    bool above;    /* fails above the bound; else below it */
    bool or_equal; /* also fails at the bound */
    bool relative; /* the bound is relative to the baseline; otherwise in the metric's unit */
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
    CHECK_UNREPEATED, /* confident, but a side has only one run */
    CHECK_OUTCOMES
};

/* Judges by the difference itself; if `confident`, fails only if the whole interval does.  CHECK_UNKNOWN: a run lacks
 * the figure. */
enum compare_outcome compare_check_evaluate(const struct compare_check *check,
                                            const struct comparison *comparison, bool confident);

/* ---- the result: compare_result.c ---- */

struct compare_report {
    const struct compare_groups *groups;
    const struct compare_set *set;
    const struct compare_check *checks;
    size_t check_count;
    bool confident;
    bool is_temporary; /* the runs were compared without being saved: they have no directory */
    uint64_t seed;
};

/* Fills *out, zero at first, which the caller releases.  Its table is the metrics of every comparison.  Aside, for
 * views: "record" and "records" (what a record is called), "is_command", "tests", and the "comparison" and "is_relative"
 * of a check. */
void compare_result(const struct compare_report *report, struct result *out);

#endif
