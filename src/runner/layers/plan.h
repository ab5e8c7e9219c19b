/* Where a graph may be stopped to tell its layers and components apart.
 *
 * The order of a graph's nodes is learned by watching one go by; after that, a plan says behind which
 * node one segment (a run of nodes of one layer and component) ends and the next begins.
 *
 * A struct plan owns its arrays: plan_make, plan_release. */
#ifndef IPW_RUNNER_LAYERS_PLAN_H
#define IPW_RUNNER_LAYERS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "graph/decoder.h"
#include "runner/layers.h"

/* A slot is a component of a layer, or of what is outside of the layers: times are kept by slots. */
size_t plan_slot(int layer, unsigned component);
size_t plan_slots(int layers);

struct plan_segment {
    size_t last; /* the position of its last node */
    size_t slot;
    int group; /* 0 before the layers, 1.. the layers, then what comes behind them */
};

struct plan {
    uint64_t *names; /* fingerprints of the nodes, in order */
    size_t nodes;
    struct plan_segment *segments;
    size_t count;
    int groups;
};

uint64_t plan_fingerprint(const char *node);

/* Takes the nodes of one graph, in order.  ERR_NO_DATA for an empty one. */
enum err plan_make(const char *const *nodes, size_t count, int layers,
                   enum layers_granularity granularity, struct plan *out) MUST_USE;
void plan_release(struct plan *plan);

#endif
