/* The check behind `ipw doctor`: every sensor that opens is read under a short load, so that one whose
 * counter never changes is reported dead and the others get their update period and read time.
 * check_run updates a session's findings in place; the caller owns the rows. */
#ifndef IPW_RUNNER_CHECK_H
#define IPW_RUNNER_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"

struct load;
struct sensor_findings;
struct session;

/* A steady CPU load: threads that compute until they are stopped.  For checking that sensors respond,
 * and for demonstrations.  load_start allocates a load that load_stop ends and frees. */

/* threads 0 means one per CPU. */
struct load *load_start(unsigned threads);

/* Ends it; returns the number of billions of multiply-adds done. */
double load_stop(struct load *load);

/* Measurements of one finding; UNKNOWN if not measured. */
struct check_row {
    double period_ms; /* between updates of its first energy or power channel */
    double read_us;   /* the fastest read */
    double watts;     /* mean over the check */
    bool counts;      /* its energy is measured and can be part of the machine's total */
};

/* rows has one element for each finding of the session.  Takes about 1.5 s if a sensor measures energy; otherwise
 * returns immediately. */
void check_run(struct session *session, struct check_row *rows);
/* The rows of these findings without a check under load. */
void check_untested(const struct sensor_findings *findings, struct check_row *rows);

/* Whether any sensor here measures (not estimates) energy, so that a run has a total. */
bool check_is_measured(const struct sensor_findings *findings, const struct check_row *rows);

#endif
