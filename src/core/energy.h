/* An amount of energy with its evidence: how it was measured, how certain it is, and why it is unknown; and what energy
 * costs and emits.  Plain data owned by the caller. */
#ifndef IPW_CORE_ENERGY_H
#define IPW_CORE_ENERGY_H

#include <stdbool.h>

#include "core/units.h"

struct json;

enum method {
    METHOD_NONE,      /* nothing measured: joules is UNKNOWN and note says why */
    METHOD_COUNTER,   /* difference of a hardware energy counter */
    METHOD_INTEGRAL,  /* integral of sampled power */
    METHOD_ESTIMATED, /* a model's figure, not a measurement */
};

struct energy {
    double joules;        /* UNKNOWN when not measured, never 0 */
    double plus_minus;    /* standard uncertainty of joules, from all causes */
    double statistical;   /* the part of it that repeated runs reduce: edges, sampling, spread */
    double coverage;      /* share of the window that samples cover, 0..1 */
    double idle_joules;   /* baseline power x time; UNKNOWN without a baseline */
    double active_joules; /* joules - idle_joules */
    enum method method;
    unsigned long updates; /* sensor updates inside the window */
    bool low_confidence;   /* fewer than ten updates: the window is short for this sensor */
    char source[320];      /* which sensor and channel; parts of a sum joined by " + " */
    char note[160];        /* why it is unknown, or a limitation of the figure */
};

/* "counter", "integral", "estimated"; NULL for METHOD_NONE (prints as null). */
const char *method_name(enum method method);

/* Measured by a sensor: neither unknown nor estimated. */
bool energy_is_measured(const struct energy *energy);

/* Unknown energy, with the reason. */
struct energy energy_unknown(const char *note);

/* An object with all fields, the same shape wherever an energy is written. */
void energy_to_json(struct json *json, const char *key, const struct energy *energy);

/* Consecutive windows of the same sensors: calibration errors add up, the others are independent.  An unknown sum
 * becomes its first known part. */
void energy_add(struct energy *sum, const struct energy *part);

/* ---- price and emissions ---- */

/* Prices of electricity and device time and the carbon intensity of electricity, given by the user: ipw has no
 * defaults for these.
 *
 * Electricity is the energy measured by the sensors, at the devices: cooling and distribution losses (PUE) are not
 * included.  Emissions are grams of CO2 equivalent of that electricity alone (location-based, scope 2), without
 * embodied emissions of the devices. */
struct tariff { /* UNKNOWN: not given */
    double price_per_kwh;
    double gco2_per_kwh;
    double device_price_per_hour; /* per device, busy or not */
};
#define TARIFF_NONE {UNKNOWN, UNKNOWN, UNKNOWN}

bool tariff_given(const struct tariff *tariff); /* true if any field is set */

/* Fields set in `by` replace those of `tariff`. */
void tariff_override(struct tariff *tariff, const struct tariff *by);

/* UNKNOWN without the price or the amount. */
double tariff_electricity(const struct tariff *tariff, double joules);
double tariff_devices(const struct tariff *tariff, double device_s);
double tariff_emissions(const struct tariff *tariff, double joules); /* g */

/* Cost and emissions of an amount of energy and device time; the ± is that of the energy. */
struct charge {
    double cost, cost_plus_minus; /* cost of the parts with a price: electricity, devices or both */
    double gco2e, gco2e_plus_minus;
};
#define CHARGE_UNKNOWN {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN}

/* A part with a price whose amount is unknown makes the cost unknown. */
struct charge tariff_charge(const struct tariff *tariff, double joules, double plus_minus,
                            double device_s);

#endif
