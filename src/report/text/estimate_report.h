/* Text and Markdown of `ipw estimate`, from results (estimate/estimate_result.h): one estimate in full, or many as a
 * table.  Every energy is marked as an estimate.  The legacy model has a struct of its own.  The caller owns `out`. */
#ifndef IPW_REPORT_ESTIMATE_REPORT_H
#define IPW_REPORT_ESTIMATE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "report/print/print.h"

struct legacy_estimate;
struct text;

/* One estimate: estimate_report.c. */
print_view estimate_text, estimate_markdown;

/* Several: estimate_points.c. */
print_view points_text, points_markdown;

/* The legacy model (`--model-compat`), with the digits of its own reports. */
void compat_text(const struct legacy_estimate *estimate, struct text *out);
void compat_json(const struct legacy_estimate *estimate, struct text *out);

#endif
