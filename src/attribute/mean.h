/* The mean of several ledgers of the same work, with the uncertainty that repeating leaves. */
#ifndef IPW_ATTRIBUTE_MEAN_H
#define IPW_ATTRIBUTE_MEAN_H

#include <stddef.h>

#include "attribute/ledger.h"
#include "core/err.h"

/* All ledgers come from one sampler, so their devices are the same in the same order.  Figures that
 * some runs lack are means over those that have them, and say so; a total is taken from the runs that
 * add up the same devices.  Release *out as a ledger. */
enum err ledger_mean(const struct ledger *const *ledgers, size_t count, struct ledger *out)
    MUST_USE;

#endif
