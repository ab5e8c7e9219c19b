/* What lies in the memory of a device while a model runs: its parameters, keys and values, and what was
 * computed and is still needed.  A pure function over the partition; docs/estimate.md, "Memory". */
#ifndef IPW_ESTIMATE_MEMORY_H
#define IPW_ESTIMATE_MEMORY_H

#include "estimate/pass_estimate.h"
#include "estimate/rates.h"

/* Fills all of *out but the timeline, and allocates nothing. */
void memory_sums(const struct partition *partition, const struct rates *rates, int devices,
                 double batch, struct estimate_memory *out);
/* The same, and the timeline, which the caller frees. */
enum err memory_of(const struct partition *partition, const struct rates *rates, int devices,
                   double batch, struct estimate_memory *out) MUST_USE;

#endif
