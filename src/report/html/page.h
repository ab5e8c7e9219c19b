/* The page: the template with style, scripts and data put in. */
#ifndef IPW_REPORT_HTML_PAGE_H
#define IPW_REPORT_HTML_PAGE_H

#include "core/err.h"

struct text;

/* `data` is JSON, `title` plain text; both may hold anything and come out as data. */
enum err page_make(const char *title, const struct text *data, struct text *out, struct error *why)
    MUST_USE;

#endif
