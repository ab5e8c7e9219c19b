/* The estimate of a workload on a device: the sum of the estimates of its passes, each times its count.
 *
 * Ownership: workload_estimate_make fills a struct that workload_estimate_release frees; it points into the workload
 * and the hardware, which must outlive it.  Without detail only the totals remain, and nothing is owned. */
#ifndef IPW_ESTIMATE_WORKLOAD_ESTIMATE_H
#define IPW_ESTIMATE_WORKLOAD_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/pass_estimate.h"
#include "estimate/workload.h"

/* Deviation of measured models from an estimate, which is a bound for ideal kernels (docs/estimate.md, "Measured
 * models"). */
struct estimate_shipped {
    double above; /* relative standard deviation beyond the ±; 0: it covers it */
    double min,
        max; /* measured over estimated: means of the sets of measurements that came closest and were
                          * furthest off; UNKNOWN where the ± covers them */
};

/* The interval of one standard deviation below and above a figure. */
struct estimate_interval {
    double low, high;
    double plus_minus; /* the larger side: one ± that covers both */
};

/* Pipeline stages of a workload. */
struct workload_pipeline {
    double micro_batches; /* micro-batches of a decode step or, for a single prompt, its chunks */
    double bubble;        /* share of the time that a stage waits, mean over stages */
    struct {
        int layers;
        double busy_s, joules; /* in total; joules of the stages add up to the total */
        double memory_peak;    /* bytes on one device */
    } stages[PIPELINE_STAGES_MAX];
};

struct workload_estimate {
    const struct estimate_workload *work;
    const struct hardware *hardware;
    struct estimate_config config;
    enum precision used;
    double params;
    double divided; /* share of the MACs divided, not replicated; UNKNOWN for one device */
    struct estimate_totals total;           /* the ± is that of the bound, without `shipped` */
    struct estimate_totals prefill, decode; /* parts; decode: 0 with one output token */
    struct estimate_shipped shipped;
    struct estimate_memory memory;     /* pass with the highest peak, KV cache at its largest */
    int64_t cache_tokens;              /* per sequence in memory.kv_cache; 0: not applicable */
    double limit_w;                    /* power limit of all devices; UNKNOWN: not stated */
    struct workload_pipeline pipeline; /* if there are several stages */
    enum estimate_confidence confidence;
    char confidence_reason[160];
    struct pass_estimate *passes; /* as in the workload; NULL without detail */
    size_t pass_count;            /* made so far */
};

enum err workload_estimate_make(const struct estimate_workload *work,
                                const struct hardware *hardware,
                                const struct estimate_config *config, bool has_detail,
                                struct workload_estimate *out, struct error *why) MUST_USE;
/* The same for several precisions of one workload and device, which share the costs of runtimes in *bounds: zeroed
 * before the first. */
struct workload_bounds {
    struct pass_bound passes[PRECISION_COUNT][WORKLOAD_PASSES_MAX];
};
enum err workload_estimate_next(const struct estimate_workload *work,
                                const struct hardware *hardware,
                                const struct estimate_config *config,
                                struct workload_bounds *bounds, bool has_detail,
                                struct workload_estimate *out, struct error *why) MUST_USE;
void workload_estimate_release(struct workload_estimate *estimate);

/* Whether a precision is a candidate on a device: a native one, or int4 weights, which any device can read and multiply
 * in a wider precision. */
bool estimate_offers(const struct hardware *hardware, enum precision precision);

/* The default precision of a workload on this device: that of its file, if the file states one and the device supports
 * it, except more than 16 bits for a decoder; else fp16 if native, unless bf16 is native too and clearly cheaper; else
 * bf16, fp32, or any native one. */
enum precision workload_default_precision(const struct estimate_workload *work,
                                          const struct hardware *hardware);

/* Whether it is known to fit.  The memory of a CPU is a matter of configuration; for another device an unknown capacity
 * means unknown. */
bool workload_estimate_fits(const struct workload_estimate *estimate);

/* The partition of the memory timeline; NULL without detail. */
const struct partition *
workload_estimate_timeline_partition(const struct workload_estimate *estimate);

/* The interval of a time or an energy of measured models, given the ± of the bound. */
struct estimate_interval workload_estimate_interval(const struct workload_estimate *estimate,
                                                    double value, double plus_minus);

/* Per unit of the workload: a sample, a token. */
double workload_estimate_joules_per_unit(const struct workload_estimate *estimate);
double workload_estimate_units_per_s(const struct workload_estimate *estimate);

/* Latencies of a single request: time to first token, and time per output token after it.  UNKNOWN without a request,
 * and with a single output token. */
double workload_estimate_ttft_s(const struct workload_estimate *estimate);
double workload_estimate_tpot_s(const struct workload_estimate *estimate);

/* One subgraph over all passes that have it: prefill and decode are separate. */
struct subgraph_total {
    const struct subgraph *subgraph;
    enum graph_phase phase;
    double flops, bytes, latency_s;
    double utilization; /* weighted by time */
    struct estimate_joules joules;
    enum estimate_bound bound; /* bound in the decode step with the longest context */
};

/* Their joules add up to those of the workload.  The caller frees *rows.  Needs detail. */
void workload_estimate_subgraphs(const struct workload_estimate *estimate,
                                 struct subgraph_total **rows, size_t *count);

#endif
