/* What electricity and device time cost, and what electricity emits, according to the user: ipw has no figure of its
 * own for either.
 *
 * Electricity is the energy that the sensors measured, at the devices: cooling and losses before them (PUE) are not in
 * it.  Emissions are grams of CO2 equivalent of that electricity alone (location-based, scope 2), without those of
 * making the devices. */
#ifndef IPW_CORE_TARIFF_H
#define IPW_CORE_TARIFF_H

#include <stdbool.h>

#include "core/units.h"

struct tariff { /* UNKNOWN: not given */
    double price_per_kwh;
    double gco2_per_kwh;
    double device_price_per_hour; /* of one device, busy or not */
};
#define TARIFF_NONE {UNKNOWN, UNKNOWN, UNKNOWN}

bool tariff_given(const struct tariff *tariff); /* any of them */

/* Those that `by` has replace the others. */
void tariff_override(struct tariff *tariff, const struct tariff *by);

/* UNKNOWN without the price, or the amount. */
double tariff_electricity(const struct tariff *tariff, double joules);
double tariff_devices(const struct tariff *tariff, double device_s);
double tariff_emissions(const struct tariff *tariff, double joules); /* g */

/* What an amount of energy and device time costs and emits; ± is that of the energy. */
struct charge {
    double cost, cost_plus_minus; /* of what has a price: electricity, devices or both */
    double gco2e, gco2e_plus_minus;
};
#define CHARGE_UNKNOWN {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN}

/* A part with a price whose amount is unknown makes the cost unknown. */
struct charge tariff_charge(const struct tariff *tariff, double joules, double plus_minus,
                            double device_s);

#endif
