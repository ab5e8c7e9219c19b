/* What the page of a run shows besides the analyses: facts about it, the breakdown of its energy, and the distributions
 * of its main figures.  Each function adds to the open group of a result of the caller. */
#ifndef IPW_ANALYSIS_RUN_PAGE_H
#define IPW_ANALYSIS_RUN_PAGE_H

#include <stdint.h>

#include "core/err.h"
#include "rundir/run_table.h"

struct result;

/* "directory", "model", "hardware", "dataset", "rows", "failed", "canceled", "ours", "notes": [...]. */
void run_facts_fill(const struct run_table *table, uint64_t damaged_spans, struct result *out);

/* "shares": [{"key", "label", "joules", "share"}], a partition of the energy; empty if the summary lacks it. */
void run_shares_fill(const struct run_table *table, struct result *out);

/* The columns that run_distributions_fill needs. */
#define DISTRIBUTIONS_NEED                                                                         \
    (RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_INPUT_TOKENS) |             \
     RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_WATTS))

/* "distributions": [{"key", "low", "step", "log", "whole", "counts": [...], "beyond", "spread": {"count", "mean",
 * "std", "min", "p50", ... "max"}}] of completed queries.  Bin i begins at low + i x step, or at low x exp(i x step)
 * where `log`; the last one holds all that lies beyond. */
enum err run_distributions_fill(const struct run_table *table, struct result *out) MUST_USE;

#endif
