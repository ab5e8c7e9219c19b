/* The energy-delay product and its kin: what a choice of clock, batch or power limit minimizes. */
#ifndef IPW_METRICS_EDP_H
#define IPW_METRICS_EDP_H

#include <math.h>

#include "core/units.h"

/* E T^n: n = 0 is energy, 1 EDP, 2 ED2P.  UNKNOWN unless both are above 0. */
static inline double energy_delay_product(double joules, double delay_s, double exponent)
{
    return joules > 0 && delay_s > 0 && is_known(joules) && is_known(delay_s)
               ? joules * pow(delay_s, exponent)
               : UNKNOWN;
}

#endif
