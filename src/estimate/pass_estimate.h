/* The estimate of one pass of a model on a device: time, energy, memory, bottlenecks, and uncertainty.
 * docs/estimate.md has the formulas.  Invariants checked by tests: idle power is that of the device alone; average
 * power lies between idle power and the power limit (above it time is stretched, as by throttling); energies of
 * subgraphs add up to the total; a narrower precision never costs more joules at equal time.
 *
 * Ownership: pass_estimate_make fills a struct that pass_estimate_release frees; it points into the partition and the
 * hardware, which must outlive it. */
#ifndef IPW_ESTIMATE_PASS_ESTIMATE_H
#define IPW_ESTIMATE_PASS_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog/hardware.h"
#include "catalog/precision.h"
#include "core/err.h"
#include "estimate/parallel.h"
#include "estimate/partition.h"
#include "estimate/roofline.h"

struct pass_bound {
    double latency_s, joules;
};

/* How a model is run. */
struct estimate_config {
    enum precision precision;
    bool keeps_stored; /* weights of a quantized file keep their stored precision */
    int devices;       /* tensor-parallel devices; 0: 1 */
    int stages;        /* pipeline stages of such groups; 0: 1 */
    double sequences;  /* in flight: the stages hold their KV cache; 0: those of the pass */
    enum runtime_id runtime;
    bool has_default_runtime; /* it was not given */
    double host_launch_s;     /* 0: from the hardware file, or assumed */
    bool is_bound;            /* ideal kernels cost at most as much as those of any runtime: */
    struct pass_bound max;    /* per pass */
};

/* Total number of devices: tensor-parallel groups x stages. */
static inline int estimate_devices(const struct estimate_config *config)
{
    return config->devices * (config->stages > 1 ? config->stages : 1);
}

enum estimate_confidence { CONFIDENCE_CALIBRATED, CONFIDENCE_INTERPOLATED, CONFIDENCE_THEORETICAL };
extern const char *const ESTIMATE_CONFIDENCES[]; /* their names */
static inline const char *estimate_confidence_name(enum estimate_confidence confidence)
{
    return ESTIMATE_CONFIDENCES[confidence];
}

struct estimate_memory {
    double weights, activations_peak, workspace_peak, kv_cache;
    double total_peak;    /* bytes on one device */
    double capacity;      /* UNKNOWN: not stated */
    bool fits;            /* also true if the capacity is unknown */
    size_t peak_subgraph; /* subgraph of the peak */
    double *timeline;     /* by subgraph: bytes of live activations; NULL without detail */
    double largest_batch; /* extrapolated from one sample; UNKNOWN: no capacity stated */
};

/* Reserves memory for a KV cache that later passes extend to `kv_cache` bytes, of `batch` sequences. */
void estimate_memory_reserve(struct estimate_memory *memory, double kv_cache, double batch);

/* Figures of one pass, or of several; of all devices, including replicated work. */
struct estimate_totals {
    double macs, flops, bytes;
    double cached_bytes;             /* part of `bytes` served by caches of a CPU */
    struct estimate_traffic traffic; /* the parts of `bytes` */
    double latency_s, latency_plus_minus;
    struct estimate_joules joules;
    double joules_plus_minus;
    /* part of those ± due to an assumed host, common to all estimates; else 0 */
    double host_plus_minus, host_joules_plus_minus;
    double average_w, peak_w, power_plus_minus;
    double utilization; /* FLOPs attained over peak, weighted by energy */
    double mfu, mbu;    /* model FLOPs without replication, and memory bandwidth utilization */
    double efficiency;  /* joules above idle over the total */
    double wasted_j;    /* idle joules while units wait: idle x (1 - utilization), summed */
    double bound_counts[BOUND_COUNT]; /* subgraphs by bound; decode steps count once */
};

/* One stage of a pipeline, in one pass over a micro-batch. */
struct estimate_stage {
    int layers;
    double busy_s;
    double active_j;    /* above idle, of all devices of the stage, with its message */
    double send_s;      /* time of that message */
    double memory_peak; /* bytes on one device */
};

struct pass_estimate {
    const struct partition *partition;
    const struct hardware *hardware;
    struct estimate_config config;
    enum precision used; /* by the units: a different one if the device lacks it */
    double params;
    struct estimate_totals total;
    struct subgraph_estimate *rows; /* by subgraph; NULL without detail */
    struct estimate_memory memory;
    struct partition_concurrency concurrency;          /* zero without detail */
    struct estimate_stage stages[PIPELINE_STAGES_MAX]; /* with more than one */
    double host_s; /* scheduler, before the stages begin; in `total` for a single stage */
    enum estimate_confidence confidence;
    char confidence_reason[160]; /* limiting factor of the confidence */
};

/* *sum += times x *more, for figures that add up: work, time and energy. */
void estimate_totals_add(struct estimate_totals *sum, const struct estimate_totals *more,
                         double times);

/* Without detail only totals are made: no rows, no timeline, no concurrency.  Consecutive passes of a workload on one
 * device in one configuration share `rows`, which hold the subgraphs that a pass has in common with the preceding one.
 * *rows is NULL before the first, and the caller frees it; rows NULL: a single pass. */
struct pass_rows;
enum err pass_estimate_make(const struct partition *partition, const struct hardware *hardware,
                            const struct estimate_config *config, struct pass_rows **rows,
                            bool has_detail, struct pass_estimate *out, struct error *why) MUST_USE;
/* Lowers *cost to that of a pass, without messages between stages; unchanged if the runtime does not support the device
 * or cannot share the model.  Much faster than an estimate. */
void pass_estimate_lower(const struct partition *partition, const struct hardware *hardware,
                         const struct estimate_config *config, struct pass_rows **rows,
                         struct pass_bound *cost);
void pass_estimate_release(struct pass_estimate *estimate);

/* ---- its uncertainty: pass_uncertainty.c ---- */

/* Seconds by what they depend on, and the errors of unknown and assumed operators; all of it adds up over subgraphs. */
struct pass_uncertainty {
    double compute_s, memory_s, launch_s, link_s, limit_s;
    double unknown_s, unknown_j;
    double host_s;               /* uncertainty of the time due to an assumed host */
    double bound_s[BOUND_COUNT]; /* seconds of subgraphs by their bound */
};

struct pass_uncertainty pass_uncertainty_of(enum graph_op op, const struct subgraph_estimate *row);
/* Sets the ± of the totals, and the confidence. */
void pass_uncertainty_set(const struct pass_uncertainty *from, const struct rates *rates,
                          struct pass_estimate *estimate);

/* Relative error of the model itself, in addition to those of the device's figures: smaller if it was fitted. */
double pass_uncertainty_model_error(const struct hardware *hardware);

#endif
