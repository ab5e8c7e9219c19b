/* What the Python IPW's accuracy makes of energy and power, under its keys: of the queries with a
 * verdict alone; a query's power is its energy over its time, else the measured one; an energy that
 * was given as zero or less is replaced by power times time, and one that was not given is not.
 *
 * Ownership: graded_energy_of gives arrays that graded_energy_release takes back. */
#ifndef IPW_ANALYSIS_GRADED_ENERGY_H
#define IPW_ANALYSIS_GRADED_ENERGY_H

#include <stddef.h>

#include "rundir/run_table.h"

struct json;

struct graded_energy {
    double *joules, *watts;
    size_t joules_count, watts_count;
    size_t zero_joules, zero_watts; /* given, and zero or less */
    size_t imputed, derived, measured;
    double imputed_sum;
    size_t energy_right, energy_graded; /* of the queries whose energy is above zero */
    size_t power_right, power_graded;
    double mean_joules, mean_watts; /* UNKNOWN of none */
};

enum err graded_energy_of(const struct run_table *table, struct graded_energy *out);
void graded_energy_release(struct graded_energy *graded);

/* The objects "energy" and "power"; sorts what it is given. */
void graded_energy_put(struct json *json, struct graded_energy *graded);

#endif
