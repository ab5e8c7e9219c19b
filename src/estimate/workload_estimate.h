/* What a work costs on a device: the estimates of its passes, each times what it counts, added up.
 *
 * Ownership: workload_estimate_make fills a struct that workload_estimate_release takes back; it points into the work and the
 * hardware, which must last as long.  Without `keep` only the sums are left, and nothing is owned. */
#ifndef IPW_ESTIMATE_WORKLOAD_ESTIMATE_H
#define IPW_ESTIMATE_WORKLOAD_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/pass_estimate.h"
#include "estimate/workload.h"

/* How it is run. */
struct estimate_config {
    enum precision precision;
    bool keeps_stored; /* weights keep the format of their file */
    int devices;       /* at least 1 */
};

/* Figures of some passes together. */
struct estimate_totals {
    double macs, flops, bytes;
    struct estimate_traffic traffic; /* what the bytes consist of */
    double latency_s, latency_plus_minus;
    struct estimate_joules joules;
    double joules_plus_minus;
    double average_w, peak_w, power_plus_minus;
    double utilisation, mfu, mbu, efficiency, wasted_j;
    double bound_counts[BOUND_COUNT]; /* of subgraphs, each once for a kind of pass */
};

struct workload_estimate {
    const struct workload *work;
    const struct hardware *hardware;
    struct estimate_config choice;
    enum precision used;
    double params;
    double
        divided; /* of the model's MACs, what devices divide: the rest each does; UNKNOWN of one */
    struct estimate_totals all;
    struct estimate_memory memory; /* of the pass that needs most; its timeline is that pass's */
    double limit_w;                /* of all devices; UNKNOWN: not given */
    enum estimate_confidence confidence;
    char confidence_reason[160];
    struct pass_estimate *passes; /* as in the work; NULL: not kept */
};

enum err workload_estimate_make(const struct workload *work, const struct hardware *hardware,
                                const struct estimate_config *choice, bool keep,
                                struct workload_estimate *out, struct error *why) MUST_USE;
void workload_estimate_release(struct workload_estimate *outcome);

/* Has the device units that multiply in this format? */
bool estimate_is_native(const struct hardware *hardware, enum precision precision);
/* Is it a format to choose there?  One that it has units for; and int4, which any device can read and
 * multiply in a wider one. */
bool estimate_offers(const struct hardware *hardware, enum precision precision);

/* The format in which one would run a model there: of fp16 and bf16 the one that it has units for; of both
 * fp16, unless bf16 costs less by more than its figures are off; without either fp32, else what it has. */
enum precision estimate_default_precision(const struct hardware *hardware);

/* Is it known to fit?  A processor's memory is what one puts beside it; of another device it is a part, and
 * one of unknown size cannot be said to hold the model. */
bool workload_estimate_fits(const struct workload_estimate *outcome);

/* The partition whose subgraphs the memory's timeline goes over; NULL where passes were not kept. */
const struct partition *
workload_estimate_timeline_partition(const struct workload_estimate *outcome);

/* Joules and seconds for each unit of the work: a sample, a token. */
double workload_estimate_joules_per_unit(const struct workload_estimate *outcome);
double workload_estimate_units_per_s(const struct workload_estimate *outcome);

/* Passes first..end-1 alone: the prefill of a request, its decoding.  Needs kept passes. */
void workload_estimate_total(const struct workload_estimate *outcome, size_t first, size_t end,
                             struct estimate_totals *out);

/* One subgraph over all passes that have it: prefill and decoding are two. */
struct subgraph_total {
    const struct subgraph *subgraph;
    enum graph_phase phase;
    double flops, bytes, latency_s;
    double utilisation; /* weighted by time */
    struct estimate_joules joules;
    enum estimate_bound bound; /* of the longest */
};

/* Their joules add up to the outcome's.  *rows is the caller's to free.  Needs kept passes. */
enum err workload_estimate_subgraphs(const struct workload_estimate *outcome,
                                     struct subgraph_total **rows, size_t *count, struct error *why)
    MUST_USE;

#endif
