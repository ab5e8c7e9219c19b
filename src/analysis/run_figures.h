/* The figures of one run that plots and reports set against those of other runs, with their errors.
 * Plain data, nothing to own. */
#ifndef IPW_ANALYSIS_RUN_FIGURES_H
#define IPW_ANALYSIS_RUN_FIGURES_H

#include "analysis/across.h"
#include "core/err.h"
#include "rundir/run_table.h"

/* Errors are 1.96 standard uncertainties, of the questions and of the
 * sensors together; accuracy has its 95 % interval. */
struct run_figures {
    struct run_point point;
    double accuracy_low, accuracy_high;
    double joules_per_query_error, joules_per_output_token_error;
    double prompt_tokens;                              /* mean */
    double ttft_s, latency_s;                          /* medians */
    double seconds_per_query, seconds_per_query_error; /* mean latency */
    double edp, edp_error; /* J·s: joules a query times seconds a query */
};

/* The table must have RUN_FIGURES_NEEDS. */
#define RUN_FIGURES_NEEDS                                                                             \
    (RUN_ACROSS_NEEDS | RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_INDEX) |    \
     RUN_WANT(RUN_REPEAT))
enum err run_figures_of(const struct run_table *table, struct run_figures *out) MUST_USE;

#endif
