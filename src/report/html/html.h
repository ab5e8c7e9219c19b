/* The report of runs as one HTML file that needs nothing else: figures, charts and tables, with all of its
 * data inside.  The caller owns the text that comes out. */
#ifndef IPW_REPORT_HTML_H
#define IPW_REPORT_HTML_H

#include <stddef.h>

#include "core/err.h"

struct compare_groups;
struct text;

struct html_report {
    const char *const *inputs; /* run directories, and files of `ipw layers -o` */
    size_t count;
    const char *model;      /* whose records, or NULL */
    const char *page;       /* the file that it will be: links to the raw files lead from there */
    const char *comparison; /* as compare_json writes it; NULL: of the inputs */
    const struct compare_groups
        *groups; /* its sides, of which the inputs are the directories; NULL: repeats */
};

/* ERR_UNSUPPORTED, with how to install it, when a part is missing from this build. */
enum err html_available(struct error *why) MUST_USE;

/* The first input that is a directory, or NULL. */
const char *html_first_run(const struct html_report *report);

/* The page around its data: the template with style and scripts.  `data` is JSON, `title` plain text; both may hold
 * anything and come out as data. */
enum err html_page(const char *title, const struct text *data, struct text *out, struct error *why)
    MUST_USE;

enum err html_write(const struct html_report *report, struct text *out, struct error *why) MUST_USE;

#endif
