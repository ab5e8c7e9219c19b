/* What the page of `ipw report` is made of, embedded at build: our own files of web/report, and ECharts
 * where set-up installed it.  Constants of the program; never freed. */
#ifndef IPW_REPORT_HTML_ASSETS_H
#define IPW_REPORT_HTML_ASSETS_H

#include <stddef.h>

#include "core/err.h"

struct asset {
    const char *bytes;
    size_t length;
};

/* By the name that the template has for it: "style", "charts.js" ...; {NULL, 0} when there is none. */
struct asset asset_find(const char *name, size_t length);
struct asset asset_template(void);

/* ERR_UNSUPPORTED, with how to install it, when this build has no ECharts. */
enum err assets_available(struct error *why) MUST_USE;

#endif
