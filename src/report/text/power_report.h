/* Views of the results of `ipw power` and `ipw optimize`, as text and as Markdown, and what they share.  The caller owns
 * the results and the output. */
#ifndef IPW_REPORT_POWER_REPORT_H
#define IPW_REPORT_POWER_REPORT_H

#include <stdbool.h>

#include "core/text.h"
#include "report/print/print.h"

struct result_item;
struct table;

extern const struct print_views POWER_FIT_VIEWS, POWER_PREDICT_VIEWS, POWER_VALIDATE_VIEWS,
    OPTIMIZE_VIEWS;

/* A view that is written once for both formats: lines are put together in `words`. */
struct power_view {
    const struct result *result;
    struct text *out;
    bool is_markdown, color;
    bool is_in_list; /* the last block of Markdown is an item */
    struct text words;
};

void power_view_print(void (*show)(struct power_view *view), const struct result *result,
                      bool is_markdown, bool color, struct text *out);
/* Ends a line: a paragraph of Markdown, in which line breaks are spaces; or an item, which is indented in text. */
void power_view_line(struct power_view *view);
void power_view_item(struct power_view *view);
void power_view_gap(struct power_view *view); /* an empty line of text */
void power_view_heading(struct power_view *view, const char *title);
/* Releases the table. */
void power_view_table(struct power_view *view, struct table *table);
/* The findings of the data checks, most severe first. */
void power_view_findings(struct power_view *view);

#endif
