/* An amount of energy with its evidence: how it was measured, how certain it is, and why it is unknown.
 * Plain data owned by the caller. */
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
    double joules;        /* UNKNOWN when not measured, never 0 for that */
    double plus_minus;    /* standard uncertainty of joules, from all causes */
    double statistical;   /* the part of it that repeated runs reduce: edges, sampling, spread */
    double coverage;      /* share of the window that samples cover, 0..1 */
    double idle_joules;   /* baseline power x time; UNKNOWN without a baseline */
    double active_joules; /* joules - idle_joules */
    enum method method;
    unsigned long updates; /* sensor updates inside the window */
    bool low_confidence;   /* fewer than ten updates: the window is short for this sensor */
    char source[320];      /* which sensor and channel; parts of a sum joined by " + " */
    char note[160];        /* why it is unknown, or what a reader must know */
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

#endif
