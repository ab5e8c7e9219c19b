/* The estimate of a workload on a device: the estimates of its passes, each times its count, added up.
 *
 * Ownership: workload_estimate_make fills a struct that workload_estimate_release frees; it points into the
 * workload and the hardware, which must outlive it.  Without detail only the totals are left, and nothing is
 * owned. */
#ifndef IPW_ESTIMATE_WORKLOAD_ESTIMATE_H
#define IPW_ESTIMATE_WORKLOAD_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/pass_estimate.h"
#include "estimate/workload.h"

/* How models as they ship compare with an estimate, which is a bound if kernels are ideal (docs/estimate.md,
 * "Models as shipped"). */
struct estimate_shipped {
    double below, above; /* relative standard deviations beside the ±; 0: the ± covers them */
    double least,
        most; /* measured over estimated: means of the sets of measurements that came closest and were
                          * furthest off; UNKNOWN where the ± covers them */
};

/* From one standard deviation below a figure to one above it. */
struct estimate_interval {
    double low, high;
    double plus_minus; /* the larger side: one ± that covers both */
};

/* How stages share a workload. */
struct workload_pipeline {
    double micro_batches; /* of a decode step or, of a prompt alone, its chunks */
    double bubble;        /* share of the time that a stage waits, mean over stages */
    struct {
        int layers;
        double busy_s, joules; /* in total; joules of the stages add up to the total */
        double memory_peak;    /* bytes on one device */
    } stages[PIPELINE_STAGES_MOST];
};

struct workload_estimate {
    const struct workload *work;
    const struct hardware *hardware;
    struct estimate_config config;
    enum precision used;
    double params;
    double divided; /* share of the MACs that devices divide, not replicate; UNKNOWN for one */
    struct estimate_totals total; /* ± are those of the bound, without `shipped` */
    struct estimate_shipped shipped;
    struct estimate_memory memory;     /* of the pass with the highest peak */
    double limit_w;                    /* of all devices; UNKNOWN: not stated */
    struct workload_pipeline pipeline; /* of several stages */
    enum estimate_confidence confidence;
    char confidence_reason[160];
    struct pass_estimate *passes; /* as in the workload; NULL without detail */
};

enum err workload_estimate_make(const struct workload *work, const struct hardware *hardware,
                                const struct estimate_config *config, bool has_detail,
                                struct workload_estimate *out, struct error *why) MUST_USE;
void workload_estimate_release(struct workload_estimate *estimate);

/* Is it a precision to choose there?  A native one, or int4 weights, which any device can read and multiply in
 * a wider precision. */
bool estimate_offers(const struct hardware *hardware, enum precision precision);

/* The default precision for a workload on this device: that of its file, where the file states one and the device can
 * compute in it, except more than 16 bits of a decoder; else fp16 if native, unless bf16 is native too and clearly cheaper; else bf16, fp32, or whatever is
 * native. */
enum precision workload_default_precision(const struct workload *work,
                                          const struct hardware *hardware);

/* Is it known to fit?  The memory of a CPU is a matter of configuration; for another device an unknown
 * capacity means unknown. */
bool workload_estimate_fits(const struct workload_estimate *estimate);

/* The partition that the memory timeline belongs to; NULL without detail. */
const struct partition *
workload_estimate_timeline_partition(const struct workload_estimate *estimate);

/* What a time or an energy may be for a model as it ships, given the ± of the bound. */
struct estimate_interval workload_estimate_interval(const struct workload_estimate *estimate,
                                                    double value, double plus_minus);

/* Per unit of the workload: a sample, a token. */
double workload_estimate_joules_per_unit(const struct workload_estimate *estimate);
double workload_estimate_units_per_s(const struct workload_estimate *estimate);

/* Totals of the passes first..end-1: the prefill of a request, its decoding.  Needs detail. */
void workload_estimate_total(const struct workload_estimate *estimate, size_t first, size_t end,
                             struct estimate_totals *out);

/* One subgraph over all passes that have it: prefill and decode are separate. */
struct subgraph_total {
    const struct subgraph *subgraph;
    enum graph_phase phase;
    double flops, bytes, latency_s;
    double utilization; /* weighted by time */
    struct estimate_joules joules;
    enum estimate_bound bound; /* of the decode step with the longest context */
};

/* Their joules add up to those of the workload.  The caller frees *rows.  Needs detail. */
enum err workload_estimate_subgraphs(const struct workload_estimate *estimate,
                                     struct subgraph_total **rows, size_t *count, struct error *why)
    MUST_USE;

#endif
