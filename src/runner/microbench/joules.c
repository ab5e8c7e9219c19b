#include "runner/microbench/joules.h"

#include <math.h>
#include <string.h>

#include "core/units.h"

static bool is_wanted(const struct ledger_device *device, const char *wanted)
{
    if (wanted)
        return !strcmp(device->id, wanted);
    return str_starts(device->id, "cpu") || str_starts(device->id, "dram");
}

static void append(char *to, size_t size, const char *more)
{
    size_t length = strlen(to);
    (void)str_format(to + length, size - length, "%s%s", length ? " + " : "", more);
}

static enum err nothing(const struct ledger *ledger, const char *wanted, struct error *why)
{
    char there[160] = "";
    for (size_t i = 0; i < ledger->count; i++)
        if (is_known(ledger->devices[i].energy.joules))
            append(there, sizeof there, ledger->devices[i].id);
    return err_set(why, ERR_NO_DATA, "no joules of %s here (measured: %s); see `ipw doctor`",
                   wanted ? wanted : "the processor", *there ? there : "nothing");
}

enum err joules_of(const struct ledger *ledger, const char *device, struct joules *out,
                   struct error *why)
{
    *out = (struct joules){.updates = UNKNOWN};
    bool any = false;
    for (size_t i = 0; i < ledger->count; i++) {
        const struct ledger_device *d = &ledger->devices[i];
        if (!d->has_energy || !is_wanted(d, device) || !is_known(d->energy.joules))
            continue;
        any = true;
        out->value += d->energy.joules;
        out->updates = fmin(out->updates, (double)d->energy.updates);
        out->is_estimated |= !energy_is_measured(&d->energy);
        append(out->devices, sizeof out->devices, d->id);
        append(out->source, sizeof out->source, d->energy.source);
    }
    return any ? ERR_OK : nothing(ledger, device, why);
}
