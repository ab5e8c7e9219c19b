/* What `ipw doctor` says: the machine, every sensor with its state, and what to do. */
#ifndef IPW_REPORT_DOCTOR_REPORT_H
#define IPW_REPORT_DOCTOR_REPORT_H

#include <stdbool.h>

struct check_row;
struct host_report;
struct sensor_findings;
struct text;

void doctor_text(const struct host_report *host, const struct sensor_findings *findings,
                 const struct check_row *rows, bool color, struct text *out);
void doctor_json(const struct host_report *host, const struct sensor_findings *findings,
                 const struct check_row *rows, struct text *out);

/* Does any sensor here measure (not estimate) energy, so that a run gets a total? */
bool doctor_is_measured(const struct sensor_findings *findings, const struct check_row *rows);

/* The parts of the program that need a library: a line for each that is missing, with how to install it.  The
 * measuring commands need none of them. */
void parts_text(struct text *out);

#endif
