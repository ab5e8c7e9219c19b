#include "runner/profile/run_energy.h"

struct run_energy run_energy_unknown(const char *note)
{
    return (struct run_energy){
        .energy = energy_unknown(note),
        .accounted_joules = UNKNOWN,
        .idle_joules = UNKNOWN,
        .unattributed_joules = UNKNOWN,
        .requests_joules = UNKNOWN,
        .busy.joules = UNKNOWN,
    };
}

void add_known(double *sum, double part)
{
    if (is_known(part))
        *sum = (is_known(*sum) ? *sum : 0) + part;
}
