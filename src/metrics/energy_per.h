/* Energy per query, per token and per second: the sum of the energies of the queries for which both are known, over the
 * sum of what they were spent on.  Summaries and analyses compute these figures here; metrics/intelligence.h has the mean
 * per query once more, updated with its error.  Zero-initialize; pure functions. */
#ifndef IPW_METRICS_ENERGY_PER_H
#define IPW_METRICS_ENERGY_PER_H

#include <stddef.h>

struct energy_per {
    size_t queries;
    double joules, amount;
};

/* amount: 1 for energy per query, its tokens, or its seconds. */
void energy_per_add(struct energy_per *sum, double joules, double amount);
double energy_per_of(const struct energy_per *sum); /* UNKNOWN without any */

#endif
