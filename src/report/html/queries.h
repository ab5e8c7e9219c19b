/* Every query of a run as columns, for the table of queries and the requests of the timeline. */
#ifndef IPW_REPORT_HTML_QUERIES_H
#define IPW_REPORT_HTML_QUERIES_H

#include <stddef.h>

#include "core/err.h"

struct json;
struct run_table;
struct spans;

/* What the columns are made of. */
#define QUERIES_NEED                                                                               \
    (RUN_WANT(RUN_INDEX) | RUN_WANT(RUN_REPEAT) | RUN_WANT(RUN_START) | RUN_WANT(RUN_JOULES) |     \
     RUN_WANT(RUN_PLUS_MINUS) | RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_TTFT) |                       \
     RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS))

/* "queries": {"rows", "listed", "subjects": [...], and the COLUMNs "index", "repeat", "start",
 * "joules", "plus_minus", "latency_s", "ttft_s", "input_tokens", "output_tokens", "subject", "flags",
 * "from_s", "lane"}; and "others": attempts that failed and judgements, "kinds", "row", "from_s",
 * "length_s", "lane", "start".  Of more than `most` queries evenly picked ones are listed.
 * Bits of `flags`: 1 right, 2 wrong, 4 failed, 8 low confidence. */
enum err queries_put(struct json *json, const struct run_table *table, const struct spans *spans,
                     size_t most, struct error *why) MUST_USE;

/* Of every how many queries one is listed. */
size_t queries_stride(const struct run_table *table, size_t most);

#endif
