/* What `ipw estimate validate` says: rows, and how far off each regime is.  The caller owns everything. */
#ifndef IPW_REPORT_VALIDATE_REPORT_H
#define IPW_REPORT_VALIDATE_REPORT_H

#include <stdbool.h>

#include "estimate/validate.h"

struct hardware;
struct text;

struct validate_report {
    const struct validation *validation;
    const struct hardware *hardware;
    const char *data;              /* what was measured: the file or run */
    double most;                   /* of --max-mape, a share; UNKNOWN without */
    enum validate_verdict verdict; /* with `most` */
};

void validate_text(const struct validate_report *report, bool color, struct text *out);
void validate_json(const struct validate_report *report, struct text *out);

#endif
