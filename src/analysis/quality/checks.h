/* One thing that was looked at: {"check", "verdict", "detail"} in a list.  Nothing is owned. */
#ifndef IPW_ANALYSIS_QUALITY_CHECKS_H
#define IPW_ANALYSIS_QUALITY_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct json;
struct run_table;

enum verdict { CHECK_GOOD, CHECK_WARNING, CHECK_UNKNOWN };

struct checks {
    struct json *json; /* an open array */
    const struct run_table *table;
    size_t counts[3]; /* by verdict */
};

void check_put(struct checks *checks, const char *check, enum verdict verdict, const char *format,
               ...) PRINTF_LIKE(4, 5);

/* Does a figure change as the run goes on?  By the Mann-Kendall test and Theil's and Sen's slope, over
 * at most 100000 queries, evenly spaced.  ERR_NO_MEMORY only. */
enum err check_trends(struct checks *checks) MUST_USE;

/* The first query, against all. */
enum err check_cold_start(struct checks *checks) MUST_USE;

/* What the devices said in samples*.csv. */
enum err check_throttling(struct checks *checks) MUST_USE;

#endif
