/* What every analysis says of a run, as `ipw analyze` would.  results_of gives what results_release takes
 * back. */
#ifndef IPW_REPORT_HTML_RESULTS_H
#define IPW_REPORT_HTML_RESULTS_H

#include <stddef.h>

#include "rundir/run_table.h"
#include "core/err.h"

struct jv;
struct json;

enum { RESULTS_MOST = 32 };

struct results {
    const char *names[RESULTS_MOST];
    struct jv *values[RESULTS_MOST];
    size_t count;
};

/* The columns that the analyses need. */
struct run_wanted results_need(void);
enum err results_of(const struct run_table *table, struct results *out, struct error *why) MUST_USE;
void results_release(struct results *results);

/* By analysis and path: "efficiency", "summary.joules_per_output_token"; NULL when it is not there. */
const struct jv *result_at(const struct results *results, const char *analysis, const char *path);

/* "analyses": {name: result}. */
enum err results_put(struct json *json, const struct results *results) MUST_USE;

#endif
