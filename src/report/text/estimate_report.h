/* Text and Markdown of `ipw estimate`, from results (estimate/estimate_result.h): one estimate in full, or many as a
 * table.  Every energy is marked as an estimate. */
#ifndef IPW_REPORT_ESTIMATE_REPORT_H
#define IPW_REPORT_ESTIMATE_REPORT_H

#include "report/print/print.h"

extern const struct print_views ESTIMATE_VIEWS, POINTS_VIEWS; /* of one, of several */
extern const struct print_views MODELS_VIEWS;                 /* of several models */

/* The head of the page of one: estimate_summary.c. */
bool page_is_request(const struct print_page *page);
void estimate_summary(const struct print_page *page);

#endif
