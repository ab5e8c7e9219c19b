/* Many estimates of one model: every device and format with every work that is asked for (batches, prompts,
 * contexts), and which of them no other beats.  The graph is built once a work.
 *
 * A batch, a device and a format are choices; a prompt and a context are what is demanded.  So the frontier
 * is drawn among points of the same demand: that a shorter context costs less is no reason to take it.
 *
 * Ownership: points_make fills a struct that points_release takes back; the hardware is the caller's. */
#ifndef IPW_ESTIMATE_POINTS_H
#define IPW_ESTIMATE_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/outcome.h"

/* A device and how it is run. */
struct points_candidate {
    size_t device; /* index into the hardware */
    struct outcome_choice choice;
};

struct points_question {
    const struct workload_question *works; /* each with every candidate; all of one model */
    size_t work_count;                     /* at least 1 */
    const struct hardware *hardware;
    const struct points_candidate *candidates;
    size_t candidate_count;
};

struct point {
    struct outcome outcome; /* without passes; points to nothing where `missing` says something */
    const struct workload *work; /* always */
    size_t device;
    size_t demand; /* which of the demands, from 0 */
    size_t place;  /* among the points of its demand, from 0 */
    bool
        on_frontier; /* fits, and none of its demand costs as few joules a unit in as short a time */
    char missing[160]; /* why this device cannot do it; "": it can */
};

struct points {
    struct workload *works; /* as they were asked for, without their graphs */
    size_t work_count;
    /* By demand, the shorter first; in each, fewest joules a unit first and unknown ones last, then
     * what does not fit; what is missing at the end of all. */
    struct point *items;
    size_t count, able;  /* all, and those that are not missing */
    size_t demand_count; /* of those that are able */
};

/* Fails for the model's sake (a batch that it cannot take) and not for a device's. */
enum err points_make(const struct points_question *question, struct points *out, struct error *why)
    MUST_USE;
void points_release(struct points *points);

#endif
