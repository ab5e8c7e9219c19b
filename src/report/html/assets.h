/* The files of the page of `ipw report`, embedded at build time: our own from web/report, and ECharts if it was
 * installed.  Constants of the program; never freed. */
#ifndef IPW_REPORT_HTML_ASSETS_H
#define IPW_REPORT_HTML_ASSETS_H

#include <stddef.h>

#include "core/err.h"

struct asset {
    const char *bytes;
    size_t length;
};

/* By its name in the template: "style", "charts.js" ...; {NULL, 0} if there is none. */
struct asset asset_find(const char *name, size_t length);
struct asset asset_template(void);

/* ERR_UNSUPPORTED, with how to install it, when this build has no ECharts. */
enum err assets_available(struct error *why) MUST_USE;

#endif
