/* Text and Markdown of `ipw estimate`, from results (estimate/estimate_result.h): one estimate in full, or many as a
 * table.  Every energy is marked as an estimate.  The caller owns the output. */
#ifndef IPW_REPORT_ESTIMATE_REPORT_H
#define IPW_REPORT_ESTIMATE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "report/print/print.h"

/* One estimate: estimate_report.c. */
print_view estimate_text, estimate_markdown;

/* Several: estimate_points.c. */
print_view points_text, points_markdown;

#endif
