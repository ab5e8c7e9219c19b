/* The timeline of a run: power of its devices, and requests alive, over the same buckets of time. */
#ifndef IPW_REPORT_HTML_TIMELINE_H
#define IPW_REPORT_HTML_TIMELINE_H

#include "core/err.h"

struct json;
struct run_table;
struct spans;

/* "timelines": one of each start of the run that left samples or spans:
 *   {"start", "from", "step", "count", "alive": COLUMN, "missing",
 *    "power": [{"name", "device", "source", "mean": COLUMN, "least": COLUMN, "largest": COLUMN}]}
 * `missing` is why there is no power, or null. */
enum err timeline_put(struct json *json, const struct run_table *table, const struct spans *spans,
                      struct error *why) MUST_USE;

#endif
