#include "runner/profile/run_energy.h"

#include <math.h>

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

static double calibration(const struct energy *energy)
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
    double systematic = calibration(sum) + calibration(part);
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
