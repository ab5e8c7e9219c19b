/* Limits that a user sets, and whether an estimate keeps them.  Pure; the caller owns every struct. */
#ifndef IPW_ESTIMATE_BUDGET_H
#define IPW_ESTIMATE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "estimate/workload_estimate.h"

enum budget_kind {
    BUDGET_LATENCY, /* seconds of a pass, or of a request */
    BUDGET_ENERGY,  /* joules of one sample or token; of one request, where that is what runs */
    BUDGET_MEMORY,  /* bytes on one device, at their peak */
    BUDGET_POWER,   /* watts of all devices, on average */
    BUDGET_FIT, /* bytes on one device against those that it has: nobody sets it, and it is judged
                       only beside other limits and where it is broken */
    BUDGET_KINDS
};
const char *budget_name(enum budget_kind kind); /* "latency" */
const char *budget_unit(enum budget_kind kind); /* "s" */

struct budget {
    double most[BUDGET_KINDS]; /* UNKNOWN: no limit */
};

enum budget_verdict { BUDGET_PASS, BUDGET_FAIL, BUDGET_UNKNOWN };
const char *budget_verdict_name(enum budget_verdict verdict); /* "PASS" */

struct budget_check {
    enum budget_kind kind;
    double value, plus_minus, most;
    double left;   /* most - value, in the unit: below 0 where it fails */
    double margin; /* left / most */
    bool is_sure;  /* the limit lies outside value ± plus_minus */
    enum budget_verdict verdict;
};

struct budget budget_none(void);
bool budget_has_any(const struct budget *budget);

/* One check a limit, in the order of the kinds; gives how many.  What does not fit cannot run, and keeps no
 * limit: that is a check of its own. */
size_t budget_judge(const struct budget *budget, const struct workload_estimate *outcome,
                    struct budget_check checks[BUDGET_KINDS]);
/* All limits together: FAIL where one is broken, else UNKNOWN where one cannot be judged. */
enum budget_verdict budget_verdict(const struct budget *budget,
                                   const struct workload_estimate *outcome);
/* Are all limits kept?  One that cannot be judged is not. */
bool budget_holds(const struct budget *budget, const struct workload_estimate *outcome);

/* Does `then` keep every limit, or come nearer to those that `now` breaks? */
bool budget_is_no_worse(const struct budget *budget, const struct workload_estimate *now,
                        const struct workload_estimate *then);

/* What a limit on energy speaks of: "request", "sample", "output token". */
const char *budget_energy_unit(const struct workload_estimate *outcome);

#endif
