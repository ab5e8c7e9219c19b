/* How the queries of a run are distributed. */
#ifndef IPW_REPORT_HTML_HISTOGRAM_H
#define IPW_REPORT_HTML_HISTOGRAM_H

#include "core/err.h"

struct json;
struct run_table;

/* What the histograms are made of. */
#define HISTOGRAMS_NEED                                                                            \
    (RUN_WANT(RUN_JOULES) | RUN_WANT(RUN_OUTPUT_TOKENS) | RUN_WANT(RUN_INPUT_TOKENS) |             \
     RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_WATTS))

/* "distributions": [{"key", "label", "unit", "low", "step", "log", "counts": [...], "spread":
 * {"count", "mean", "std", "min", "p50", ... "max"}}] of completed queries.  Bin i begins at
 * low + i x step, or at low x exp(i x step) where `log`; the last one holds all that lies beyond. */
enum err histograms_put(struct json *json, const struct run_table *table, struct error *why)
    MUST_USE;

#endif
