/* Which nodes run as one kernel: the rules of fusion (docs/estimate.md, "Partition").  Linear in nodes:
 * every look ahead is bounded. */
#ifndef IPW_ESTIMATE_PARTITION_FUSE_H
#define IPW_ESTIMATE_PARTITION_FUSE_H

#include "estimate/partition/pieces.h"

/* Every node that is no view into one piece; is_fused false: each into one of its own.  The caller
 * releases *out. */
enum err fuse_nodes(const struct flow *flow, bool is_fused, struct pieces *out) MUST_USE;

#endif
