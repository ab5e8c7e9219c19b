/* Estimates of one model over a grid: every workload (batch, prompt, context) with every candidate (device, precision),
 * and which of them are Pareto-optimal in energy and latency.
 *
 * Batch, device and precision are choices; prompt and context are demands.  So the Pareto frontier is computed among
 * points of the same demand: a shorter context costs less, but is not an alternative.
 *
 * Ownership: a zeroed struct candidates is empty, and candidates_release frees it; estimate_grid_make fills a struct
 * that estimate_grid_release frees and that borrows the hardware. */
#ifndef IPW_ESTIMATE_ESTIMATE_GRID_H
#define IPW_ESTIMATE_ESTIMATE_GRID_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog/hardware.h"
#include "core/err.h"
#include "estimate/workload_estimate.h"

/* A device and how the model is run on it. */
struct grid_candidate {
    size_t device; /* index into the hardware */
    struct estimate_config config;
};

/* ---- candidates ---- */

/* Command-line options; NULL and 0: not given. */
struct candidate_options {
    const char *const *hardware; /* comma-separated ids, or "all" */
    size_t hardware_count;
    const char *const *files; /* hardware files */
    size_t file_count;
    const char *precision; /* comma-separated names; "stored": that of the file */
    unsigned devices;      /* devices that share the model */
    double host_launch_us; /* launch time of the host */
    bool compare;          /* without a device: the complete catalog */
    bool sweep;            /* without a precision: all that the device supports */
};

struct candidates {
    struct hardware *hardware;
    bool *is_in_catalog; /* by device: of the catalog, not of a file */
    size_t hardware_count;
    struct {
        enum precision precision;
        bool is_stored;
    } precisions[PRECISION_COUNT + 1]; /* as given */
    size_t precision_count;            /* 0: the default of each device */
    struct grid_candidate *items;      /* by candidates_make */
    size_t count;
};

/* Finds devices and precisions.  Without a given device, hardware_count is 0 and the caller adds one.  ERR_USAGE and
 * ERR_NOT_FOUND are user errors. */
enum err candidates_find(const struct candidate_options *options, struct candidates *out,
                         struct error *why) MUST_USE;

/* Takes ownership of a device of the catalog. */
void candidates_add(struct candidates *candidates, const struct hardware *hardware);

/* Combines devices and precisions into items, once the stored precisions of the model are known. */
enum err candidates_make(const struct candidate_options *options,
                         const struct estimate_workload *work, struct candidates *candidates,
                         struct error *why) MUST_USE;
void candidates_release(struct candidates *candidates);

/* ---- the grid ---- */

struct grid_point {
    struct workload_estimate
        estimate; /* without detail; only hardware and config if it is missing */
    const struct estimate_workload *work;
    size_t device;
    size_t demand;     /* index of its demand */
    size_t rank;       /* among the points of its demand, from 0 */
    bool on_frontier;  /* fits, and is Pareto-optimal in energy per unit and latency */
    int limit_order;   /* by budget_sort: 0 within all limits, then unknown, then violated */
    char missing[160]; /* why this device cannot run it; "": it can */
};

struct estimate_grid {
    struct estimate_workload *works; /* without their graphs */
    size_t work_count;
    /* By demand, shorter first; within a demand those within limits first (budget_sort), then by joules per unit,
     * unknown ones last, then points that do not fit; points that cannot run at the end. */
    struct grid_point *items;
    size_t count, able;  /* all, and those that can run */
    size_t demand_count; /* demands of points that can run */
};

/* Fails if the model cannot run a workload (an impossible batch), not if a device cannot. */
enum err estimate_grid_make(const struct workload_list *list, const struct candidates *candidates,
                            struct estimate_grid *out, struct error *why) MUST_USE;
/* In that order, after limit_order was set. */
void estimate_grid_sort(struct estimate_grid *grid);
void estimate_grid_release(struct estimate_grid *grid);

/* Dimensions in which the workloads of a grid differ. */
struct grid_differences {
    bool batches, units, prompts, outputs;
    bool
        contexts; /* other than through their prompts, which determine them if all outputs have the same length */
};
struct grid_differences estimate_grid_differences(const struct estimate_grid *grid);

#endif
