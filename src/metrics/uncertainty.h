/* The two parts of a run's uncertainty of energy.  The gain error of a sensor, or the error of a power model, is the
 * same in every run that the same sensors measured: it is stated once for all of them, and cancels when they are
 * compared.  The remainder differs between runs; error bars show it. */
#ifndef IPW_METRICS_UNCERTAINTY_H
#define IPW_METRICS_UNCERTAINTY_H

#include <stdint.h>

struct run_table;

/* Standard uncertainties, relative to the energy. */
struct uncertainty {
    double common;      /* UNKNOWN without a ±; all of the ± where its parts are unknown */
    double independent; /* without the spread of queries; UNKNOWN where it is not recorded */
    uint64_t
        sensors; /* equal for runs that the same sensors of the same machine measured; 0: no energy */
};

#define UNCERTAINTY_MIXED UINT64_MAX /* sensors differ between runs */

/* The table should have RUN_SOURCE and RUN_METHOD, which an unfinished run records per query only. */
struct uncertainty uncertainty_of(const struct run_table *table);

/* Adds a run to several, initially {UNKNOWN, UNKNOWN, 0}: the largest common part; UNKNOWN with UNCERTAINTY_MIXED
 * sensors. */
void uncertainty_join(struct uncertainty *all, const struct uncertainty *run);

/* The standard uncertainty of a run's figure when compared with those of `all`: without the common part, which cannot
 * change their order. */
double uncertainty_among(double value, double independent, const struct uncertainty *run,
                         const struct uncertainty *all);

#endif
