#include "core/energy.h"

#include <math.h>
#include <stddef.h>

#include "core/json.h"
#include "core/text.h"

const char *method_name(enum method method)
{
    switch (method) {
    case METHOD_COUNTER:
        return "counter";
    case METHOD_INTEGRAL:
        return "integral";
    case METHOD_ESTIMATED:
        return "estimated";
    case METHOD_NONE:
        break;
    }
    return NULL;
}

bool energy_is_measured(const struct energy *energy)
{
    return energy->method == METHOD_COUNTER || energy->method == METHOD_INTEGRAL;
}

struct energy energy_unknown(const char *note)
{
    struct energy energy = {
        .joules = UNKNOWN,
        .plus_minus = UNKNOWN,
        .statistical = UNKNOWN,
        .coverage = UNKNOWN,
        .idle_joules = UNKNOWN,
        .active_joules = UNKNOWN,
    };
    chars_copy(energy.note, note);
    return energy;
}

void energy_to_json(struct json *json, const char *key, const struct energy *energy)
{
    json_object(json, key);
    json_number(json, "joules", energy->joules);
    json_number(json, "plus_minus", energy->plus_minus);
    json_number(json, "plus_minus_statistical", energy->statistical);
    json_string(json, "method", method_name(energy->method));
    json_string(json, "source", energy->source[0] ? energy->source : NULL);
    json_number(json, "coverage", energy->coverage);
    json_number(json, "idle_joules", energy->idle_joules);
    json_number(json, "active_joules", energy->active_joules);
    if (energy->method == METHOD_NONE)
        json_null(json, "updates");
    else
        json_integer(json, "updates", (int64_t)energy->updates);
    json_bool(json, "low_confidence", energy->low_confidence);
    json_string(json, "note", energy->note[0] ? energy->note : NULL);
    json_object_end(json);
}

static double calibration_part(const struct energy *energy)
{
    return sqrt(fmax(0, energy->plus_minus * energy->plus_minus -
                            energy->statistical * energy->statistical));
}

void energy_add(struct energy *sum, const struct energy *part)
{
    if (part->method == METHOD_NONE)
        return;
    if (sum->method == METHOD_NONE) {
        *sum = *part;
        return;
    }
    double systematic = calibration_part(sum) + calibration_part(part);
    double share = part->joules / (sum->joules + part->joules);
    sum->coverage += (part->coverage - sum->coverage) * (is_known(share) ? share : 0.5);
    sum->joules += part->joules;
    sum->statistical = hypot(sum->statistical, part->statistical);
    sum->plus_minus = hypot(sum->statistical, systematic);
    sum->idle_joules += part->idle_joules;
    sum->active_joules += part->active_joules;
    sum->updates += part->updates;
    sum->low_confidence = sum->low_confidence && part->low_confidence;
    if (part->method > sum->method)
        sum->method = part->method;
}

/* ---- price and emissions ---- */

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

static double multiply_by_rate(double amount, double per, double rate)
{
    return is_known(amount) && is_known(rate) ? amount / per * rate : UNKNOWN;
}

double tariff_electricity(const struct tariff *tariff, double joules)
{
    return multiply_by_rate(joules, JOULES_PER_KWH, tariff->price_per_kwh);
}

double tariff_devices(const struct tariff *tariff, double device_s)
{
    return multiply_by_rate(device_s, SECONDS_PER_HOUR, tariff->device_price_per_hour);
}

double tariff_emissions(const struct tariff *tariff, double joules)
{
    return multiply_by_rate(joules, JOULES_PER_KWH, tariff->gco2_per_kwh);
}

/* The uncertainty of device time is negligible: a cost without electricity has no ±. */
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
