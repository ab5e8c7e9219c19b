/* When a query was sent, had its first token and ended, on the wall clock.  Plain data. */
#ifndef IPW_REPORT_EXPORTS_MOMENT_H
#define IPW_REPORT_EXPORTS_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct export_run;
struct jv;

struct moments {
    int64_t from_ns, to_ns; /* since 1970 */
    int64_t first_ns;       /* the first token; between the two, or 0 where there was none */
};

/* False where the record does not have them. */
bool moments_of(const struct export_run *run, const struct jv *record, struct moments *out);

#endif
