/* The check behind `ipw doctor`: every sensor that opens is watched under a short load, so that one
 * which opens and never moves is called dead and the others tell their period and cost.
 * check_run fills a session's findings in place; the rows belong to the caller. */
#ifndef IPW_RUNNER_CHECK_H
#define IPW_RUNNER_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

struct session;

/* What was learned of one finding; figures are UNKNOWN where they were not. */
struct check_row {
    double period_ms; /* between updates of its first energy or power channel */
    double read_us;   /* the quickest read */
    double watts;     /* mean over the check */
    bool counts;      /* its joules are measured and can enter the machine's total */
};

/* rows has one element for each finding of the session.  Takes about a second and a half. */
void check_run(struct session *session, struct check_row *rows);

#endif
