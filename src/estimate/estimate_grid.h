/* Many estimates of one model: every device and format with every work that is asked for (batches, prompts,
 * contexts), and which of them no other beats.  The graph is built once a work.
 *
 * A batch, a device and a format are choices; a prompt and a context are what is demanded.  So the frontier
 * is drawn among points of the same demand: that a shorter context costs less is no reason to take it.
 *
 * Ownership: estimate_grid_make fills a struct that estimate_grid_release takes back; the hardware is the caller's. */
#ifndef IPW_ESTIMATE_ESTIMATE_GRID_H
#define IPW_ESTIMATE_ESTIMATE_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/workload_estimate.h"

/* A device and how it is run. */
struct grid_candidate {
    size_t device; /* index into the hardware */
    struct estimate_config choice;
};

struct grid_spec {
    const struct workload_spec *works; /* each with every candidate; all of one model */
    size_t work_count;                 /* at least 1 */
    const struct hardware *hardware;
    const struct grid_candidate *candidates;
    size_t candidate_count;
};

struct grid_point {
    struct workload_estimate
        outcome; /* without passes; points to nothing where `missing` says something */
    const struct workload *work; /* always */
    size_t device;
    size_t demand; /* which of the demands, from 0 */
    size_t place;  /* among the points of its demand, from 0 */
    bool
        on_frontier; /* fits, and none of its demand costs as few joules a unit in as short a time */
    char missing[160]; /* why this device cannot do it; "": it can */
};

struct estimate_grid {
    struct workload *works; /* as they were asked for, without their graphs */
    size_t work_count;
    /* By demand, the shorter first; in each, fewest joules a unit first and unknown ones last, then
     * what does not fit; what is missing at the end of all. */
    struct grid_point *items;
    size_t count, able;  /* all, and those that are not missing */
    size_t demand_count; /* of those that are able */
};

/* Fails for the model's sake (a batch that it cannot take) and not for a device's. */
enum err estimate_grid_make(const struct grid_spec *question, struct estimate_grid *out,
                            struct error *why) MUST_USE;
void estimate_grid_release(struct estimate_grid *points);

#endif
