/* Views of the results of `ipw power` and `ipw optimize`, as text and as Markdown, and what they share.  The caller owns
 * the results and the output. */
#ifndef IPW_REPORT_POWER_REPORT_H
#define IPW_REPORT_POWER_REPORT_H

#include "core/text.h"
#include "report/print/print.h"

struct result_item;
struct table;

extern const struct print_views POWER_FIT_VIEWS, POWER_PREDICT_VIEWS, POWER_VALIDATE_VIEWS,
    OPTIMIZE_VIEWS;

void power_view_title(struct print_page *page); /* of Markdown */
/* Ends a line: a paragraph of Markdown, in which line breaks are spaces; or an item, which is indented in text. */
void power_view_line(struct print_page *page);
void power_view_item(struct print_page *page);
void power_view_gap(struct print_page *page); /* an empty line of text */
void power_view_heading(struct print_page *page, const char *title);
/* Releases the table. */
void power_view_table(struct print_page *page, struct table *table);
/* The findings of the data checks, most severe first. */
void power_view_findings(struct print_page *page);

#endif
