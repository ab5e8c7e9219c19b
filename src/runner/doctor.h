/* The result of `ipw doctor`: the machine, its sensors, and the parts of the program that need a library.  Borrows
 * everything; the caller owns the result. */
#ifndef IPW_RUNNER_DOCTOR_H
#define IPW_RUNNER_DOCTOR_H

#include "core/err.h"

struct check_row;
struct host_report;
struct result;
struct sensor_findings;

/* Whether gnuplot is there, which layers above this one use. */
typedef enum err doctor_plots_available(struct error *why);

/* `rows` are those of check_run (runner/check.h). */
void doctor_fill(const struct host_report *host, const struct sensor_findings *findings,
                 const struct check_row *rows, doctor_plots_available *plots, struct result *out);

/* A note for each missing library, with how to install it, and for an untested version of one.  The measuring commands
 * need none of them. */
void doctor_note_parts(doctor_plots_available *plots, struct result *out);

#endif
