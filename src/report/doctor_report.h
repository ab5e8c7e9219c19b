/* The report of `ipw doctor`: the machine, every sensor with its state, and how to fix problems. */
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

/* Whether any sensor here measures (not estimates) energy, so that a run has a total. */
bool doctor_is_measured(const struct sensor_findings *findings, const struct check_row *rows);

/* A line for each missing part of the program that needs a library, with how to install it.  The measuring commands
 * need none of them. */
void parts_text(struct text *out);

#endif
