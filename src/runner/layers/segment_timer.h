/* Times the components of a compute graph by stopping it between them, as a watch of engine/engine.h.
 *
 * To reduce overhead, with a stride of n each graph is stopped only in every n-th layer, in rotation, until all layers
 * have been timed.
 *
 * A struct segment_timer owns its plans: segment_timer_init, segment_timer_release; times go into slots
 * that the caller owns.  One thread. */
#ifndef IPW_RUNNER_LAYERS_SEGMENT_TIMER_H
#define IPW_RUNNER_LAYERS_SEGMENT_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"
#include "engine/engine.h"
#include "runner/layers/layers.h"

/* ---- plans ---- */

/* A slot is a component of a layer, or of the part outside the layers; times are summed per slot. */
static inline size_t layer_slot(int layer, unsigned component)
{
    return (size_t)(layer + 1) * LAYERS_COMPONENTS + component;
}

struct plan_segment {
    size_t last; /* the index of its last node */
    size_t slot;
    int group; /* 0 before the layers, 1.. the layers, then the nodes after them */
};

struct segment_plan {
    uint64_t *names; /* fingerprints of the nodes, in order */
    size_t nodes;
    struct plan_segment *segments;
    size_t count;
    int groups;
};

/* ---- the timer ---- */

enum { SEGMENT_PLANS_MAX = 8, SLOT_SAMPLES = 48 };

/* Seconds of a slot per graph: a uniform sample of all graphs. */
struct slot_times {
    unsigned long graphs; /* graphs in which it was timed */
    unsigned long stops;  /* stops that ended one of its segments */
    double pending;       /* in the current graph */
    float samples[SLOT_SAMPLES];
};

struct segment_timer {
    struct engine_watch watch; /* passed to a context */
    int layers;
    enum layers_granularity granularity;

    /* recording */
    bool recording;
    char **nodes;
    size_t node_count, node_capacity;

    struct segment_plan plans[SEGMENT_PLANS_MAX];
    size_t plan_count;

    /* the current graph */
    const struct segment_plan *plan; /* NULL: a graph that was not recorded */
    size_t position, segment;
    nanos began, since; /* start of the graph and of the segment; since 0: unknown */
    unsigned stride;
    unsigned long turn;

    struct slot_times *slots; /* times are added here; not owned; may be NULL */
    size_t slot_count;
    /* since segment_timer_reset */
    unsigned long graphs, unknown_graphs, stops;
    double graph_s;
};

void segment_timer_init(struct segment_timer *timer, int layers,
                        enum layers_granularity granularity);
void segment_timer_release(struct segment_timer *timer);

/* Encloses a computation whose graphs are to be recorded; clear the plans before recording again with another
 * granularity. */
void segment_timer_record(struct segment_timer *timer);
void segment_timer_record_end(struct segment_timer *timer);
void segment_timer_clear_plans(struct segment_timer *timer, enum layers_granularity granularity);

/* Call before each computation. */
void segment_timer_begin(struct segment_timer *timer, unsigned stride);

/* Resets the counts; times are added to these slots from now on. */
void segment_timer_reset(struct segment_timer *timer, struct slot_times *slots);

/* Seconds per graph of a slot, and their uncertainty: mean and spread of the middle half of the samples, so that
 * occasional interruptions have no effect. */
double slot_times_seconds(const struct slot_times *slot, double *sigma);

#endif
