/* What a subgraph is called, and how much of it there is to deal out.  Pure. */
#ifndef IPW_ESTIMATE_PARTITION_DESCRIBE_H
#define IPW_ESTIMATE_PARTITION_DESCRIBE_H

#include "estimate/partition.h"
#include "estimate/partition/sharing.h"

/* Fills name, pattern, op, layer, component, outputs, rows, steps, is_shared, is_summed, link_summed and link_gathered of
 * a subgraph whose nodes are known. */
void describe_subgraph(const struct partition *partition, const struct sharing *sharing,
                       struct subgraph *subgraph);

#endif
