/* Figures of a run that its page shows besides the analyses: the breakdown of its energy, and the distributions of its
 * main figures.  Each function fills *out, zero at first, which the caller releases. */
#ifndef IPW_ANALYSIS_RUN_PAGE_H
#define IPW_ANALYSIS_RUN_PAGE_H

#include "core/err.h"
#include "rundir/run_table.h"

struct result;

/* "shares": [{"key", "label", "joules", "share"}], a partition of the energy; empty if the summary lacks it. */
void run_shares_result(const struct run_table *table, struct result *out);

/* The columns that run_distributions_result needs. */
#define DISTRIBUTIONS_NEED                                                                         \
    (RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_INPUT_TOKENS) |             \
     RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_WATTS))

/* "distributions": [{"key", "low", "step", "log", "whole", "counts": [...], "beyond", "spread": {"count", "mean",
 * "std", "min", "p50", ... "max"}}] of completed queries.  Bin i begins at low + i x step, or at low x exp(i x step)
 * where `log`; the last one holds all that lies beyond. */
enum err run_distributions_result(const struct run_table *table, struct result *out) MUST_USE;

#endif
