#include "core/tariff.h"

#define JOULES_PER_KWH   3.6e6
#define SECONDS_PER_HOUR 3600.0

bool tariff_given(const struct tariff *tariff)
{
    return is_known(tariff->price_per_kwh) || is_known(tariff->gco2_per_kwh) ||
           is_known(tariff->device_price_per_hour);
}

void tariff_override(struct tariff *tariff, const struct tariff *by)
{
    if (is_known(by->price_per_kwh))
        tariff->price_per_kwh = by->price_per_kwh;
    if (is_known(by->gco2_per_kwh))
        tariff->gco2_per_kwh = by->gco2_per_kwh;
    if (is_known(by->device_price_per_hour))
        tariff->device_price_per_hour = by->device_price_per_hour;
}

static double times(double amount, double per, double rate)
{
    return is_known(amount) && is_known(rate) ? amount / per * rate : UNKNOWN;
}

double tariff_electricity(const struct tariff *tariff, double joules)
{
    return times(joules, JOULES_PER_KWH, tariff->price_per_kwh);
}

double tariff_devices(const struct tariff *tariff, double device_s)
{
    return times(device_s, SECONDS_PER_HOUR, tariff->device_price_per_hour);
}

double tariff_emissions(const struct tariff *tariff, double joules)
{
    return times(joules, JOULES_PER_KWH, tariff->gco2_per_kwh);
}

/* Device time is exact beside an energy: with no electricity in the cost it has no ±. */
static void add_cost(const struct tariff *tariff, double joules, double plus_minus, double device_s,
                     struct charge *out)
{
    bool by_energy = is_known(tariff->price_per_kwh);
    if (!by_energy && !is_known(tariff->device_price_per_hour))
        return;
    out->cost = 0;
    if (by_energy)
        out->cost += tariff_electricity(tariff, joules);
    if (is_known(tariff->device_price_per_hour))
        out->cost += tariff_devices(tariff, device_s);
    if (by_energy && is_known(out->cost))
        out->cost_plus_minus = tariff_electricity(tariff, plus_minus);
}

struct charge tariff_charge(const struct tariff *tariff, double joules, double plus_minus,
                            double device_s)
{
    struct charge charge = CHARGE_UNKNOWN;
    add_cost(tariff, joules, plus_minus, device_s, &charge);
    charge.gco2e = tariff_emissions(tariff, joules);
    charge.gco2e_plus_minus = tariff_emissions(tariff, plus_minus);
    return charge;
}
