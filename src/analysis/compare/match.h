/* Which queries of two runs are the same.  match_runs gives arrays that match_release takes back. */
#ifndef IPW_ANALYSIS_COMPARE_MATCH_H
#define IPW_ANALYSIS_COMPARE_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct run_table;

/* Rows of completed queries.  Paired: a[i] and b[i] are the same query, completed by both.  Else all of
 * each.  By their place in the dataset, so that repeats of one question stand together. */
struct match {
    bool paired;
    uint32_t *a, *b;
    size_t a_count, b_count;
    size_t same, a_only, b_only, changed; /* of all queries: see struct comparison */
};

/* Paired when at least half of the shorter run is in the other. */
enum err match_runs(const struct run_table *a, const struct run_table *b, struct match *out)
    MUST_USE;
void match_release(struct match *match);

#endif
