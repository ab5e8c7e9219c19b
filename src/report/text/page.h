/* Parts of a page that is text or Markdown (struct print_page): figures of the result by path, lines, headings and
 * tables.  A page borrows everything. */
#ifndef IPW_REPORT_PAGE_H
#define IPW_REPORT_PAGE_H

#include "core/err.h"
#include "report/print/print.h"

double page_number(const struct print_page *page, const char *path);
const char *page_word(const struct print_page *page, const char *path); /* "" if unknown */
bool page_flag(const struct print_page *page, const char *path);

enum page_style { PAGE_PLAIN, PAGE_BOLD, PAGE_RED, PAGE_GREEN };
const char *page_style(const struct print_page *page, enum page_style style); /* "" without color */

/* A line of the summary: "   energy       ~22.1 mJ", in Markdown a row of a table. */
void page_line(const struct print_page *page, const char *name, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* A line below a heading or a table. */
void page_item(const struct print_page *page, const char *format, ...) PRINTF_LIKE(2, 3);
void page_heading(const struct print_page *page, const char *words);
/* Releases the table; `indent`: of text. */
void page_table(const struct print_page *page, struct table *table, const char *indent);

#endif
