/* Functions that a file spells out in small steps: x * sigmoid(x), GELU by way of an error function or
 * tanh, a norm from means, differences and roots.  Seen as a region: steps number by number (and means)
 * that read one tensor and each other only, and of which one alone is read from outside.  Pure. */
#ifndef IPW_ESTIMATE_PARTITION_REGION_H
#define IPW_ESTIMATE_PARTITION_REGION_H

#include "estimate/partition/pieces.h"

struct region {
    node_id nodes[PIECE_MOST_NODES]; /* in order; the last is the one that is read */
    uint32_t count;                  /* at least 2 */
    bool has_means;
    bool has_parts; /* that are put together */
    bool takes_all; /* nobody else reads what it starts from */
};

/* The largest that starts from this tensor and holds `first`, its first reader that has no piece. */
bool region_find(const struct pieces *pieces, tensor_id start, node_id first, struct region *out);

#endif
