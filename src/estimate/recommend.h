/* Recommendations: changes that would save energy, or meet violated limits, found by re-estimating with one option
 * changed, never by a rule of thumb.  A change is recommended if it fits in memory, violates no limit and saves
 * RECOMMEND_GAIN_MIN of the joules per unit, and more than the ± of the saving; if limits are currently violated, also
 * if it meets them all, whatever it costs.  Each has its saving, its cost and the verdict on the limits.
 *
 * Errors common to two estimates cancel in their difference: on one device those of its figures, and of kernels that
 * are the same in both.
 *
 * Ownership: the caller owns every struct; nothing is allocated. */
#ifndef IPW_ESTIMATE_RECOMMEND_H
#define IPW_ESTIMATE_RECOMMEND_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/budget.h"
#include "estimate/workload_estimate.h"

#define RECOMMEND_GAIN_MIN 0.02

enum recommend_kind {
    RECOMMEND_BATCH,
    RECOMMEND_PRECISION,
    RECOMMEND_HARDWARE,
    RECOMMEND_POINT, /* another power mode or clock of the same device */
    RECOMMEND_DEVICES,
    RECOMMEND_FUSION,
    RECOMMEND_RUNTIME,
    RECOMMEND_KINDS
};

struct recommendation {
    enum recommend_kind kind;
    char options[80]; /* for `ipw estimate`: "--batch 8" */
    char note[64];    /* "" or a side effect: "answers may change" */
    double joules_each, joules_saved_each;
    double saving; /* share of joules per unit; negative: it costs more; UNKNOWN: unknown joules */
    double saving_plus_minus;
    enum budget_verdict verdict; /* on the limits, with this change */
    double latency_s, units_per_s, memory_bytes;
};

enum { RECOMMEND_MAX = 12 };

/* Recommendations that meet the limits come first, then by saving. */
struct recommendations {
    struct recommendation items[RECOMMEND_MAX];
    size_t count;
    size_t unsure; /* changes whose saving is within its ±, not listed */
};

struct recommend_question {
    const struct workload_estimate *now;
    const struct budget *budget;
    bool is_in_catalog; /* the device is in the catalog, which has its other power modes */
};

void recommend_make(const struct recommend_question *question, struct recommendations *out);

/* Number of devices that must share the model for it to fit; 0: none up to 64, or it cannot be shared. */
int recommend_devices_to_fit(const struct workload_estimate *now);

#endif
