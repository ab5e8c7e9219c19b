/* Cost and emissions of an estimate at the user's prices: all devices for the whole latency, and their electricity.
 * Pure functions; the caller owns every struct. */
#ifndef IPW_ESTIMATE_COST_H
#define IPW_ESTIMATE_COST_H

#include "core/energy.h"
#include "estimate/workload_estimate.h"

struct result;

/* For a part, per unit of which there are `parts`; ± of energy and time, which are correlated. */
struct charge estimate_charge(const struct workload_estimate *estimate,
                              const struct estimate_totals *sums, const struct tariff *tariff,
                              double parts);

/* The four figures of one charge: "cost_per_EACH", its "_plus_minus", "gco2e_per_EACH" and its. */
void charge_to_result(struct result *result, const char *each, const struct charge *charge);

/* The group "operating": prices, devices and charges; null without prices. */
void estimate_cost_to_result(struct result *result, const struct workload_estimate *estimate,
                             const struct tariff *tariff);

#endif
