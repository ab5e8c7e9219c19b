/* What a work costs on a device: the estimates of its passes, each times what it counts, added up.
 *
 * Ownership: outcome_make fills a struct that outcome_release takes back; it points into the work and the
 * hardware, which must last as long.  Without `keep` only the sums are left, and nothing is owned. */
#ifndef IPW_ESTIMATE_OUTCOME_H
#define IPW_ESTIMATE_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/estimate.h"
#include "estimate/workload.h"

/* How it is run. */
struct outcome_choice {
    enum precision precision;
    bool keeps_stored; /* weights keep the format of their file */
    int devices;       /* at least 1 */
};

/* Figures of some passes together. */
struct outcome_sums {
    double macs, flops, bytes;
    struct estimate_traffic traffic; /* what the bytes consist of */
    double latency_s, latency_plus_minus;
    struct estimate_joules joules;
    double joules_plus_minus;
    double average_w, peak_w, power_plus_minus;
    double utilisation, mfu, mbu, efficiency, wasted_j;
    double bound_counts[BOUND_COUNT]; /* of subgraphs, each once for a kind of pass */
};

struct outcome {
    const struct workload *work;
    const struct hardware *hardware;
    struct outcome_choice choice;
    enum precision used;
    double params;
    double
        divided; /* of the model's MACs, what devices divide: the rest each does; UNKNOWN of one */
    struct outcome_sums all;
    struct estimate_memory memory; /* of the pass that needs most; its timeline is that pass's */
    double limit_w;                /* of all devices; UNKNOWN: not given */
    enum estimate_confidence confidence;
    char confidence_reason[160];
    struct estimate *passes; /* as in the work; NULL: not kept */
};

enum err outcome_make(const struct workload *work, const struct hardware *hardware,
                      const struct outcome_choice *choice, bool keep, struct outcome *out,
                      struct error *why) MUST_USE;
void outcome_release(struct outcome *outcome);

/* Has the device units that multiply in this format? */
bool outcome_is_native(const struct hardware *hardware, enum precision precision);
/* Is it a format to choose there?  One that it has units for; and int4, which any device can read and
 * multiply in a wider one. */
bool outcome_is_choice(const struct hardware *hardware, enum precision precision);

/* The format in which one would run a model there: of fp16 and bf16 the one that it has units for; of both
 * fp16, unless bf16 costs less by more than its figures are off; without either fp32, else what it has. */
enum precision outcome_usual_precision(const struct hardware *hardware);

/* Is it known to fit?  A processor's memory is what one puts beside it; of another device it is a part, and
 * one of unknown size cannot be said to hold the model. */
bool outcome_fits(const struct outcome *outcome);

/* The partition whose subgraphs the memory's timeline goes over; NULL where passes were not kept. */
const struct partition *outcome_timeline_partition(const struct outcome *outcome);

/* Joules and seconds for each unit of the work: a sample, a token. */
double outcome_joules_each(const struct outcome *outcome);
double outcome_units_per_s(const struct outcome *outcome);

/* Passes first..end-1 alone: the prefill of a request, its decoding.  Needs kept passes. */
void outcome_sum(const struct outcome *outcome, size_t first, size_t end, struct outcome_sums *out);

/* One subgraph over all passes that have it: prefill and decoding are two. */
struct outcome_row {
    const struct subgraph *subgraph;
    enum graph_phase phase;
    double flops, bytes, latency_s;
    double utilisation; /* weighted by time */
    struct estimate_joules joules;
    enum estimate_bound bound; /* of the longest */
};

/* Their joules add up to the outcome's.  *rows is the caller's to free.  Needs kept passes. */
enum err outcome_rows(const struct outcome *outcome, struct outcome_row **rows, size_t *count,
                      struct error *why) MUST_USE;

#endif
