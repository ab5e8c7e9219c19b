/* The page of one estimate, as text or Markdown: figures of the result by path, and the lines, headings and tables that
 * it consists of.  A page borrows everything. */
#ifndef IPW_REPORT_ESTIMATE_PAGE_H
#define IPW_REPORT_ESTIMATE_PAGE_H

#include <stdbool.h>

#include "core/err.h"

struct result;
struct table;
struct text;

struct estimate_page {
    const struct result *result;
    struct text *out;
    bool color, is_markdown;
};

double page_number(const struct estimate_page *page, const char *path);
const char *page_word(const struct estimate_page *page, const char *path); /* "" if unknown */
bool page_flag(const struct estimate_page *page, const char *path);
bool page_is_request(const struct estimate_page *page);

enum page_style { PAGE_PLAIN, PAGE_BOLD, PAGE_RED, PAGE_GREEN };
const char *page_style(const struct estimate_page *page,
                       enum page_style style); /* "" without color */

/* A line of the summary: "   energy       ~22.1 mJ", in Markdown a row of a table. */
void page_line(const struct estimate_page *page, const char *name, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* A line below a heading or a table. */
void page_item(const struct estimate_page *page, const char *format, ...) PRINTF_LIKE(2, 3);
void page_heading(const struct estimate_page *page, const char *words);
void page_table(const struct estimate_page *page, struct table *table); /* and releases it */

/* The head of the page: estimate_summary.c. */
void estimate_summary(const struct estimate_page *page);

#endif
