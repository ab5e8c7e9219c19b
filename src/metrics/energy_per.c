#include "metrics/energy_per.h"

#include "core/units.h"

void energy_per_add(struct energy_per *sum, double joules, double amount)
{
    if (!is_known(joules) || !is_known(amount))
        return;
    sum->queries++;
    sum->joules += joules;
    sum->amount += amount;
}

double energy_per_of(const struct energy_per *sum)
{
    return ratio(sum->joules, sum->amount);
}
