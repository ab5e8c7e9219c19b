/* What of a model could run at the same time: levels of subgraphs that do not need each other, and the
 * chain that takes the most operations; and samples of a batch.  A pure function over the partition. */
#ifndef IPW_ESTIMATE_CONCURRENCY_H
#define IPW_ESTIMATE_CONCURRENCY_H

#include "estimate/pass_estimate.h"

enum err concurrency_of(const struct partition *partition, double batch,
                        struct estimate_concurrency *out) MUST_USE;

#endif
