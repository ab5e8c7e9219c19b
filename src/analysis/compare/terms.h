/* What a query adds to the sums that a metric is made of.  terms_of gives arrays that terms_release takes
 * back. */
#ifndef IPW_ANALYSIS_COMPARE_TERMS_H
#define IPW_ANALYSIS_COMPARE_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/compare.h"
#include "core/err.h"

struct match;

/* Of a query; each is known or not. */
enum quantity_of_query {
    QUERY_ONE,
    QUERY_JOULES,
    QUERY_ACTIVE_JOULES,
    QUERY_TOKENS,
    QUERY_LATENCY,
    QUERY_TTFT,
    QUERY_ITL,
    QUERY_RIGHT,
    QUERY_GRADED,
    QUERY_BUSY_S, /* its part of the time in which any query was under way */
    QUERY_RUN_S,  /* its part of the time from the first sending to the last end */
};

/* A run, and by what its queries' parts of its time are scaled, so that all together make the run's own
 * busy_watts and output_tokens_per_s. */
struct terms_run {
    const struct run_table *table;
    double busy_scale, run_scale;
};
struct terms_run terms_run_of(const struct run_table *table);

/* One entry a question, its repeats added up: they are not independent.  A query enters where its part is
 * known, when paired in both runs. */
struct terms {
    double *a, *b; /* CONTRAST_SUMS each */
    size_t a_count, b_count;
    size_t a_queries, b_queries;
    bool repeats; /* an entry has several queries */
};
enum err terms_of(const struct terms_run *a, const struct terms_run *b, const struct match *match,
                  enum compare_metric metric, struct terms *out) MUST_USE;
void terms_release(struct terms *terms);

bool metric_is_product(enum compare_metric metric);

#endif
