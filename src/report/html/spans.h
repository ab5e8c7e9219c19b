/* When each request of a run was alive, out of spans.jsonl, and on which of as many lines as there were
 * requests at once it is drawn.  spans_read gives what spans_release takes back. */
#ifndef IPW_REPORT_HTML_SPANS_H
#define IPW_REPORT_HTML_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct run_table;

enum span_kind { SPAN_REQUEST, SPAN_FAILED_ATTEMPT, SPAN_JUDGE, SPAN_KINDS };
extern const char *const SPAN_KIND_NAMES[SPAN_KINDS]; /* as spans.jsonl has them */

#define NO_ROW UINT32_MAX

struct span {
    double from, to; /* seconds from the start of the queries */
    uint32_t row;    /* of the table, or NO_ROW */
    uint16_t start;
    uint16_t lane;
    uint8_t kind;
};

struct spans {
    struct span *items; /* by start, then by `from` */
    size_t count, capacity;
    unsigned starts;  /* the largest number of a start */
    uint64_t damaged; /* lines that are no JSON */
};

/* The table must have RUN_INDEX, RUN_REPEAT and RUN_START.  ERR_NOT_FOUND without the file. */
enum err spans_read(const char *path, const struct run_table *table, struct spans *out,
                    struct error *why) MUST_USE;
void spans_release(struct spans *spans);

#endif
