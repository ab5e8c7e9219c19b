/* The report of runs as one HTML file that needs nothing else: figures, charts and tables, with all of its
 * data inside.  The caller owns the text that comes out. */
#ifndef IPW_REPORT_HTML_H
#define IPW_REPORT_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct compare_groups;
struct tariff;
struct text;

struct html_report {
    const char *const *inputs; /* run directories, and files of `ipw layers -o` */
    size_t count;
    const char *model;      /* whose records, or NULL */
    const char *page;       /* the file that it will be: links to the raw files lead from there */
    const char *comparison; /* as compare_json writes it; NULL: of the inputs */
    const struct compare_groups
        *groups; /* its sides, of which the inputs are the directories; NULL: repeats */
    const struct tariff *tariff; /* overrides those of the runs; NULL: none */
    /* Of several runs, those that cannot be read are left out, and the page says so.  Set for each input that was, with
     * why; NULL: one that cannot be read fails the report. */
    struct error *left_out;
};

/* ERR_UNSUPPORTED, with how to install it, when a part is missing from this build. */
enum err html_available(struct error *why) MUST_USE;

/* The first input that is a directory and was not left out, or NULL. */
const char *html_first_run(const struct html_report *report);

/* The page around its data: the template with style and scripts.  `data` is JSON, `title` plain text; both may hold
 * anything and come out as data. */
enum err html_page(const char *title, const struct text *data, struct text *out, struct error *why)
    MUST_USE;

/* A file that the page is made of, for pages that show the same: "charts.js", "report.css", "echarts.min.js".  False for
 * another name, and in a build without them. */
bool html_file(const char *name, const char **bytes, size_t *length);

/* What the page shows, as one JSON object; the title of the page too. */
enum { HTML_TITLE_MAX = 400 };
enum err html_data(const struct html_report *report, char *title, size_t size, struct text *out,
                   struct error *why) MUST_USE;

enum err html_write(const struct html_report *report, struct text *out, struct error *why) MUST_USE;

#endif
