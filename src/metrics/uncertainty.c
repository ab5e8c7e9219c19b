#include "metrics/uncertainty.h"

#include <math.h>
#include <string.h>

#include "core/hash.h"
#include "core/units.h"
#include "rundir/run_table.h"

/* Identifies machines and their sensors. */
static uint64_t sensors_of(const struct run_table *table)
{
    const struct summary *summary = &table->summary;
    if (table->ours && !is_known(summary->energy.joules) && !run_energy_source(table)[0])
        return 0;
    const char *const WORDS[] = {
        text_or_empty(summary->hardware_label), text_or_empty(summary->host_name),
        text_or_empty(summary->gpu_name), run_energy_source(table), run_energy_method(table)};
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < COUNT_OF(WORDS); i++)
        hash = hash_bytes(hash, WORDS[i], strlen(WORDS[i]) + 1); /* including the NUL */
    return hash;
}

struct uncertainty uncertainty_of(const struct run_table *table)
{
    const struct record_energy *energy = &table->summary.energy;
    struct uncertainty out = {UNKNOWN, UNKNOWN, sensors_of(table)};
    double statistical = known_or(energy->statistical, 0);
    double square = energy->plus_minus * energy->plus_minus - statistical * statistical;
    if (!(energy->joules > 0))
        return out;
    out.common = is_known(square) ? sqrt(fmax(square, 0)) / energy->joules : UNKNOWN;
    out.independent = energy->statistical / energy->joules;
    return out;
}

void uncertainty_join(struct uncertainty *all, const struct uncertainty *run)
{
    if (!run->sensors)
        return;
    if (!all->sensors)
        *all = *run;
    else if (all->sensors != run->sensors)
        *all = (struct uncertainty){UNKNOWN, UNKNOWN, UNCERTAINTY_MIXED};
    else
        all->common = fmax(all->common, run->common); /* fmax ignores an unknown one */
}

double uncertainty_among(double value, double independent, const struct uncertainty *run,
                         const struct uncertainty *all)
{
    bool differs = all->sensors == UNCERTAINTY_MIXED && is_known(run->common);
    return differs ? hypot(known_or(independent, 0), run->common * value) : independent;
}
