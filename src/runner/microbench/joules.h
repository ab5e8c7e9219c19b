/* The joules of the devices that a load runs on, out of a ledger. */
#ifndef IPW_RUNNER_MICROBENCH_JOULES_H
#define IPW_RUNNER_MICROBENCH_JOULES_H

#include "attribute/ledger.h"
#include "core/err.h"
#include "core/text.h"

struct joules {
    double value;
    double updates; /* of the sensor that has fewest */
    bool is_estimated;
    char devices[96], source[192];
};

/* Of one device, or with NULL of all processors and their memory.  ERR_NO_DATA when none of them has any. */
enum err joules_of(const struct ledger *ledger, const char *device, struct joules *out,
                   struct error *why) MUST_USE;

#endif
