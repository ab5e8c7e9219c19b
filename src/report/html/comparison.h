/* Several runs against the first of them, for the page: what `ipw compare` says. */
#ifndef IPW_REPORT_HTML_COMPARISON_H
#define IPW_REPORT_HTML_COMPARISON_H

#include <stddef.h>

#include "core/err.h"

struct json;

/* "comparison": as `ipw compare --json` has it, or {"missing": why}. */
enum err comparison_put(struct json *json, const char *const *directories, size_t count,
                        const char *model) MUST_USE;

#endif
