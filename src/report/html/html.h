/* The report of runs as one self-contained HTML file: figures, charts and tables, with all data embedded.  The caller
 * owns the output. */
#ifndef IPW_REPORT_HTML_H
#define IPW_REPORT_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct compare_groups;
struct result;
struct tariff;
struct text;

struct html_report {
    const char *const *inputs; /* run directories, and files of `ipw layers -o` */
    size_t count;
    const char *model; /* model of the records; or NULL */
    const char *page;  /* path of the output: links to the raw files are relative to it */
    const struct result *comparison;     /* compare_result; NULL: of the inputs */
    const struct compare_groups *groups; /* sides, whose directories are inputs; NULL: repeats */
    const struct tariff *tariff;         /* overrides that of the runs; NULL: none */
    /* Of several runs, unreadable ones are skipped, and the page says so.  Set for each skipped input, with the reason;
     * NULL: an unreadable one fails the report. */
    struct error *left_out;
};

/* The first input that is a directory and was not skipped, or NULL. */
const char *html_first_run(const struct html_report *report);

/* The page for given data: the template with style and scripts.  `data` is JSON, `title` plain text; both are
 * escaped. */
void html_page(const char *title, const struct text *data, struct text *out);

/* A file of the page, for other pages that show the same: "charts.js", "report.css", "echarts.min.js".  False for an
 * unknown name. */
bool html_file(const char *name, const char **bytes, size_t *length);

/* The data of the page as one JSON object, and its title. */
enum { HTML_TITLE_MAX = 400 };
enum err html_data(const struct html_report *report, char *title, size_t size, struct text *out,
                   struct error *why) MUST_USE;

enum err html_write(const struct html_report *report, struct text *out, struct error *why) MUST_USE;

#endif
