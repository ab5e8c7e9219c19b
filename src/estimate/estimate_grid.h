/* Estimates of one model over a grid: every workload (batch, prompt, context) with every candidate (device,
 * precision), and which of them are Pareto-optimal in energy and latency.
 *
 * Batch, device and precision are choices; prompt and context are demands.  So the Pareto frontier is taken among
 * points of the same demand: that a shorter context costs less is no reason to choose it.
 *
 * Ownership: estimate_grid_make fills a struct that estimate_grid_release frees; the hardware is borrowed. */
#ifndef IPW_ESTIMATE_ESTIMATE_GRID_H
#define IPW_ESTIMATE_ESTIMATE_GRID_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/workload_estimate.h"

/* A device and how the model is run on it. */
struct grid_candidate {
    size_t device; /* index into the hardware */
    struct estimate_config config;
};

struct grid_spec {
    const struct workload_spec *works; /* all of one model */
    size_t work_count;                 /* at least 1 */
    const struct hardware *hardware;
    const struct grid_candidate *candidates;
    size_t candidate_count;
};

struct grid_point {
    struct workload_estimate
        estimate; /* without detail; zero but for its config where `missing` is set */
    const struct workload *work;
    size_t device;
    size_t demand; /* index of its demand */
    size_t rank;   /* among the points of its demand, from 0 */
    bool
        on_frontier; /* fits, and is Pareto-optimal in joules per unit and latency for its demand */
    char missing[160]; /* why this device cannot run it; "": it can */
};

struct estimate_grid {
    struct workload *works; /* without their graphs */
    size_t work_count;
    /* By demand, shorter first; within a demand by joules per unit, unknown ones last, then what does not fit;
     * points that cannot run at the end. */
    struct grid_point *items;
    size_t count, able;  /* all, and those that can run */
    size_t demand_count; /* of those that can run */
};

/* Fails when the model cannot run a workload (an impossible batch), not when a device cannot. */
enum err estimate_grid_make(const struct grid_spec *spec, struct estimate_grid *out,
                            struct error *why) MUST_USE;
void estimate_grid_release(struct estimate_grid *grid);

#endif
