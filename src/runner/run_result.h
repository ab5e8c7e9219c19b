/* The result of `ipw run`: the energy and time of a command, as a struct result (core/result.h).  Borrows everything;
 * the caller owns the result. */
#ifndef IPW_RUNNER_RUN_RESULT_H
#define IPW_RUNNER_RUN_RESULT_H

#include "port/proc.h"

struct exec_result;
struct host_report;
struct result;
struct tariff;

struct run_report {
    char *const *argv;
    const struct exec_result *result;
    const struct host_report *host;
    struct own_cost own;
    unsigned long reads;
    const struct tariff *tariff; /* for cost and emissions; NULL: none */
};

/* The members of the open group; secrets in the command are hidden. */
void run_result_put(const struct run_report *report, struct result *out);

#endif
