/* Limits set by the user, and whether an estimate meets them.  Pure functions; the caller owns every struct. */
#ifndef IPW_ESTIMATE_BUDGET_H
#define IPW_ESTIMATE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

#include "estimate/estimate_grid.h"

enum budget_kind {
    BUDGET_LATENCY, /* seconds per pass, or per request */
    BUDGET_ENERGY,  /* joules per sample or token; per request, when requests run */
    BUDGET_MEMORY,  /* peak bytes on one device */
    BUDGET_POWER,   /* average watts of all devices */
    BUDGET_FIT, /* peak bytes against the capacity: implied by any limit, reported if violated */
    BUDGET_KINDS
};
const char *budget_name(enum budget_kind kind); /* "latency" */
const char *budget_unit(enum budget_kind kind); /* "s" */

struct budget {
    double max[BUDGET_KINDS]; /* UNKNOWN: no limit */
};

enum budget_verdict { BUDGET_PASS, BUDGET_FAIL, BUDGET_UNKNOWN };
const char *budget_verdict_name(enum budget_verdict verdict); /* "PASS" */

struct budget_check {
    enum budget_kind kind;
    double value, plus_minus, max; /* ±: its larger side */
    double left;                   /* max - value: negative if violated */
    double margin;                 /* left / max */
    bool is_sure;                  /* the limit is outside the interval of the value */
    enum budget_verdict verdict;
};

struct budget budget_none(void);
bool budget_has_any(const struct budget *budget);

/* One check per limit, in the order of the kinds; returns their number.  A model that does not fit cannot run and meets
 * no limit: an additional check. */
size_t budget_evaluate(const struct budget *budget, const struct workload_estimate *estimate,
                       struct budget_check checks[BUDGET_KINDS]);
/* Combined verdict: FAIL if one limit is violated, else UNKNOWN if one cannot be evaluated. */
enum budget_verdict budget_verdict(const struct budget *budget,
                                   const struct workload_estimate *estimate);
/* Whether all limits are met.  One that cannot be evaluated is not. */
bool budget_holds(const struct budget *budget, const struct workload_estimate *estimate);

/* Whether `then` meets every limit, or comes closer to those that `now` violates. */
bool budget_is_no_worse(const struct budget *budget, const struct workload_estimate *now,
                        const struct workload_estimate *then);

/* Sorts a grid so that the points of a demand that are within all limits come first. */
void budget_sort(const struct budget *budget, struct estimate_grid *grid);

/* How many points are within all limits, and for how many demands there is one. */
struct budget_count {
    size_t points, demands;
};
struct budget_count budget_count_within(const struct budget *budget,
                                        const struct estimate_grid *grid);
/* Whether there is a point within all limits for every demand of the grid.  True without limits. */
bool budget_holds_for_all(const struct budget *budget, const struct estimate_grid *grid);

/* The unit of the energy limit: "request", "sample", "output token". */
const char *budget_energy_unit(const struct workload_estimate *estimate);

#endif
