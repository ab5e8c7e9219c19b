/* One run of a report, as JSON: everything that the page shows of it. */
#ifndef IPW_REPORT_HTML_RUN_H
#define IPW_REPORT_HTML_RUN_H

#include <stddef.h>

#include "core/err.h"

struct json;
struct run_point;

/* An object of the array that is open; *point is what the run comes to.  `page` is the file that the report
 * will be, `most_listed` how many queries it may list. */
enum err run_put(struct json *json, const char *directory, const char *model, const char *page,
                 size_t most_listed, struct run_point *point, struct error *why) MUST_USE;

#endif
