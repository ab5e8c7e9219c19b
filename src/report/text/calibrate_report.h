/* What `ipw estimate calibrate` reports of a fit, and `ipw estimate validate` of predictions.  The caller owns
 * what goes in and the texts that come out. */
#ifndef IPW_REPORT_CALIBRATE_REPORT_H
#define IPW_REPORT_CALIBRATE_REPORT_H

#include <stdbool.h>

#include "estimate/validate.h"

struct calibration;
struct hardware;
struct hardware_timings;
struct text;

struct calibrate_report {
    const struct calibration *calibration;
    const char *hardware;        /* as in the rows or on this machine; "": unknown */
    const struct hardware *base; /* the entry whose other figures are kept; NULL: none */
    const char *data;            /* where the rows come from: "a.csv", "built-in loads, cpu0" */
    const char *given_source;    /* of coefficients that were not fitted */
    const char *file;            /* that was written; NULL: none */
    const struct hardware_timings *timings; /* NULL: none */
    const char *no_energy;                  /* why none was measured; "" */
};

void calibrate_text(const struct calibrate_report *report, bool color, struct text *out);
void calibrate_json(const struct calibrate_report *report, struct text *out);

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
