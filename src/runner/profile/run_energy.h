/* Energies of the starts of a run, added up.  Plain data, nothing to own. */
#ifndef IPW_RUNNER_PROFILE_RUN_ENERGY_H
#define IPW_RUNNER_PROFILE_RUN_ENERGY_H

#include "core/energy.h"
#include "metrics/intelligence.h"

/* Of one start, or of all; UNKNOWN where nothing was measured. */
struct run_energy {
    struct energy energy;       /* of the machine while the queries ran, by the ledger */
    double accounted_joules;    /* the same by attribution: requests, idle and unattributed */
    double idle_joules;         /* while no request was in flight */
    double unattributed_joules; /* above idle then */
    double requests_joules;     /* of every attempt, also of queries asked again since */
    struct busy_energy busy;    /* while at least one request was in flight, over covered time */
    double busy_s;              /* with at least one request in flight */
};

struct run_energy run_energy_unknown(const char *note);

/* An unknown sum becomes its first known part. */
void add_known(double *sum, double part);

#endif
