/* What would cost fewer joules, or keep limits that are broken: found by estimating again with one thing
 * changed, never by a rule.  A change is proposed where it fits in memory, breaks none of the user's limits
 * and saves RECOMMEND_LEAST of the joules a unit; of limits that are broken now, also where it keeps them
 * all, whatever it costs.  Each has its saving, its price and the verdict on the limits.
 *
 * The caller owns every struct; proposals own nothing. */
#ifndef IPW_ESTIMATE_RECOMMEND_H
#define IPW_ESTIMATE_RECOMMEND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/budget.h"
#include "estimate/workload_estimate.h"

#define RECOMMEND_LEAST 0.02

enum recommend_kind {
    RECOMMEND_BATCH,
    RECOMMEND_PRECISION,
    RECOMMEND_HARDWARE,
    RECOMMEND_POINT, /* another power mode or clock of the same device */
    RECOMMEND_DEVICES,
    RECOMMEND_FUSION,
    RECOMMEND_KINDS
};
const char *recommend_kind_name(enum recommend_kind kind); /* "batch" */

struct recommendation {
    enum recommend_kind kind;
    char options[80]; /* with which `ipw estimate` shows it: "--batch 8" */
    char note[64];    /* "" or what it costs beside: "answers may change" */
    double joules_each, joules_saved_each;
    double
        saving; /* of the joules a unit, up to 1; below 0: it costs more; UNKNOWN: joules are not known */
    enum budget_verdict verdict; /* on the limits, with this change */
    double latency_s, units_per_s, memory_bytes;
    double joules_total;
};

enum { RECOMMEND_MOST = 12 };

struct recommend_question {
    const struct workload_estimate *now;
    const struct budget *budget;
    bool is_catalogued; /* the device is one of the catalogue, so that its other points are there */
};

/* Those that keep the limits first, and of them the best saving. */
enum err recommend_make(const struct recommend_question *question,
                        struct recommendation out[RECOMMEND_MOST], size_t *count, struct error *why)
    MUST_USE;

/* How many devices must share the model for it to fit on each; 0: no number up to 64 does, or they cannot
 * share it. */
enum err recommend_devices_to_fit(const struct workload_estimate *now, int *devices,
                                  struct error *why) MUST_USE;

#endif
