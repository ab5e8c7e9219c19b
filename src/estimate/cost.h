/* Cost and emissions of an estimate at the user's prices: all devices for the whole latency, and their electricity.
 * Pure functions; the caller owns every struct. */
#ifndef IPW_ESTIMATE_COST_H
#define IPW_ESTIMATE_COST_H

#include "core/energy.h"
#include "estimate/workload_estimate.h"

struct result;

/* UNKNOWN without prices. */
struct estimate_cost {
    struct charge per_query;          /* a request or a sample */
    struct charge per_million_input;  /* of a request: its prefill over the prompt's tokens */
    struct charge per_million_output; /* the total over the output tokens */
};
void estimate_cost_of(const struct workload_estimate *estimate, const struct tariff *tariff,
                      struct estimate_cost *out);

/* For a part, per unit of which there are `parts`; ± of energy and time, which are correlated. */
struct charge estimate_charge(const struct workload_estimate *estimate,
                              const struct estimate_totals *sums, const struct tariff *tariff,
                              double parts);

/* The four figures of one charge: "cost_per_EACH", its "_plus_minus", "gco2e_per_EACH" and its. */
void charge_to_result(struct result *result, const char *each, const struct charge *charge);

/* The prices: "price_per_kwh", "gco2_per_kwh", "device_price_per_hour". */
void tariff_to_result(struct result *result, const struct tariff *tariff);

/* The group "operating": prices, devices and charges; null without prices. */
void estimate_cost_to_result(struct result *result, const struct workload_estimate *estimate,
                             const struct tariff *tariff);

#endif
