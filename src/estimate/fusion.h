/* Kernel fusion: which nodes of a graph run as one kernel (docs/estimate.md, "Partition").
 *
 * Ownership: fusion_make fills a struct that fusion_release frees. */
#ifndef IPW_ESTIMATE_FUSION_H
#define IPW_ESTIMATE_FUSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/dataflow.h"

struct fusion {
    int32_t *kernel_of; /* by node: the number of its kernel; GRAPH_NONE for views */
    size_t count;       /* kernels, numbered so that each comes after those it depends on */
};

/* is_fused false: every node that is not a view is a kernel of its own. */
enum err fusion_make(const struct dataflow *flow, bool is_fused, struct fusion *out) MUST_USE;
void fusion_release(struct fusion *fusion);

#endif
