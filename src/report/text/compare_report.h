/* The views of a comparison (compare_result in analysis/compare_set.h): text and Markdown.  No state. */
#ifndef IPW_REPORT_COMPARE_REPORT_H
#define IPW_REPORT_COMPARE_REPORT_H

#include "report/print/print.h"

extern const struct print_views COMPARE_VIEWS;

/* One line about a bound, an item of "checks", and its result; the caller frees it. */
char *compare_check_line(const struct result *result, const struct result_item *check);

#endif
