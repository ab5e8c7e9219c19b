/* What a model costs on a device: time, joules, memory and what limits it, before anything is bought.
 * docs/estimate.md has the formulas.  Rules that tests hold: idle power is the device's alone; average
 * power lies between idle and the limit (beyond it time is stretched, as throttling does); energies of
 * subgraphs add up to the total; a narrower precision never costs more joules at equal time.
 *
 * pass_estimate_make fills a struct that pass_estimate_release takes back; it points into partition and hardware. */
#ifndef IPW_ESTIMATE_PASS_ESTIMATE_H
#define IPW_ESTIMATE_PASS_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "catalog/hardware.h"
#include "estimate/partition.h"
#include "catalog/precision.h"

enum estimate_bound {
    BOUND_COMPUTE,
    BOUND_MEMORY,
    BOUND_LAUNCH,
    BOUND_LINK,
    BOUND_BALANCED,
    BOUND_COUNT
};
const char *estimate_bound_name(enum estimate_bound bound);

enum estimate_confidence { CONFIDENCE_CALIBRATED, CONFIDENCE_INTERPOLATED, CONFIDENCE_THEORETICAL };
const char *estimate_confidence_name(enum estimate_confidence confidence);

struct estimate_joules {
    double compute, memory, idle; /* "static" in files */
    double link;                  /* between devices; 0 of one */
    double total;
};

/* Bytes that move in one pass, of all devices together. */
struct estimate_traffic {
    double weights, activations;
    double cache_read, cache_written; /* keys and values */
    double link;                      /* that devices send to each other; not in `bytes` */
};

struct subgraph_estimate { /* of one subgraph, in the order of the partition */
    double compute_s, memory_s, launch_s, link_s;
    double stretch; /* by which the power limit lengthened it; 1: not at all */
    double latency_s;
    double flops, bytes;
    double utilisation; /* of the peak in this precision */
    double wave_share;  /* of the units, those that the last wave leaves busy; 1: all */
    struct estimate_joules joules;
    enum estimate_bound bound;
};

struct estimate_memory {
    double weights, activations_peak, workspace_peak, kv_cache,
        total_peak;       /* bytes on one device */
    double capacity;      /* UNKNOWN: not given */
    bool fits;            /* true also where the capacity is not known */
    size_t peak_subgraph; /* where the peak is */
    double *timeline;     /* bytes of activations alive while each subgraph runs */
    double largest_batch; /* that fits, by the slope of one more sample; UNKNOWN: not given */
};

struct estimate_concurrency {
    size_t levels, max_width;
    double critical_path_flops;
    double parallelism;       /* all FLOPs over those of the critical path */
    size_t wide_levels;       /* with more than one subgraph */
    double stage_parallelism; /* all FLOPs over those of each level's largest subgraph */
    double batch_parallelism; /* all FLOPs over those of one sample's critical path */
};

struct pass_options {
    enum precision precision;
    int devices;          /* that share the model by tensor parallelism; 0: 1 */
    bool keeps_stored;    /* weights of a quantised file keep their own format */
    double batch, tokens; /* for figures a sample and a token; as in the graph */
    bool sums_only;       /* no rows, no timeline, no concurrency: nobody looks at those of many */
};

struct pass_estimate {
    const struct partition *partition;
    const struct hardware *hardware;
    struct pass_options setting;
    enum precision used; /* by the units: another one where the device lacks it */
    double params;
    double macs, flops, bytes;       /* of all devices together, what each of them repeats too */
    struct estimate_traffic traffic; /* what `bytes` consists of */
    double latency_s, latency_plus_minus;
    struct estimate_joules joules; /* of all devices together */
    double joules_plus_minus;
    double average_w, peak_w; /* of all devices together */
    double power_plus_minus;
    double utilisation; /* weighted by energy: FLOPs attained over peak */
    double mfu, mbu;    /* share of peak arithmetic, by the model's MACs once, and of bandwidth */
    double efficiency;  /* joules of compute and memory over the total */
    double wasted_j;    /* idle joules while units wait: idle x (1 - utilisation), summed */
    size_t bound_counts[BOUND_COUNT];
    struct subgraph_estimate *rows;
    struct estimate_memory memory;
    struct estimate_concurrency concurrency;
    enum estimate_confidence confidence;
    char confidence_reason[160]; /* what makes it no better */
};

enum err pass_estimate_make(const struct partition *partition, const struct hardware *hardware,
                            const struct pass_options *setting, struct pass_estimate *out,
                            struct error *why) MUST_USE;
void pass_estimate_release(struct pass_estimate *estimate);

#endif
