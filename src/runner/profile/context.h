/* What every part of one profile needs to know: the options and what was found out at its start.
 * Owned by profile.c; all else only reads it. */
#ifndef IPW_RUNNER_PROFILE_CONTEXT_H
#define IPW_RUNNER_PROFILE_CONTEXT_H

#include "core/units.h"
#include "metrics/efficiency.h"
#include "runner/host_report.h"
#include "runner/profile.h"

struct prices;

struct profile_context {
    const struct profile_options *options;
    const struct host_report *host;
    unsigned start; /* 1 for the first start in this directory, 2 for the first that resumes ... */
    nanos zero;     /* monotonic: times in spans and samples count from here */
    nanos zero_wall;
    struct efficiency_inputs
        facts;                   /* of the model and the GPUs; what a query adds is unknown here */
    const struct prices *prices; /* NULL without a price file */
};

#endif
