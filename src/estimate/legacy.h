/* The model of an older estimator, kept only for comparison with its reports (`--model-compat`).  Its errors are listed
 * in docs/estimate.md, "Legacy": idle power grows with the peak of the precision, narrow precisions move wide bytes,
 * nothing is fused, averages are not weighted.
 *
 * Ownership: legacy_estimate_make fills a struct that legacy_estimate_release frees; it points into the graph. */
#ifndef IPW_ESTIMATE_LEGACY_H
#define IPW_ESTIMATE_LEGACY_H

#include "core/err.h"
#include "estimate/roofline.h"

struct text;

/* A device of the legacy model, from the object "legacy" of a hardware file:
 *
 *     {"id": "a100-like", "name": "...", "legacy": {"flops": {"fp32": 19.5e12, "fp16": 312e12},
 *      "joules_per_flop": {"fp32": 20e-12, "fp16": 10e-12}, "bytes_per_s": 1555e9,
 *      "joules_per_byte": 10e-12, "threads": 221184, "launch_s": 5e-6}} */
struct legacy_hardware {
    char id[48], name[96];
    double flops[PRECISION_COUNT], joules_per_flop[PRECISION_COUNT]; /* UNKNOWN: none */
    double bytes_per_s, joules_per_byte, threads, launch_s;
};

/* ERR_BAD_VALUE names the key that is missing or wrong. */
enum err legacy_hardware_read(const char *path, struct legacy_hardware *out, struct error *why)
    MUST_USE;

struct legacy_row {
    const char *name, *op; /* name and operator of the node */
    double flops, bytes, latency_s;
    struct estimate_joules joules;
    enum estimate_bound bound;
};

struct legacy_estimate {
    const struct graph *graph;
    struct legacy_hardware hardware;
    enum precision precision;
    struct legacy_row *rows; /* counted nodes */
    size_t count;
    double params, macs, flops, bytes, latency_s;
    struct estimate_joules joules;
    double average_w, peak_w, wasted_j;
    double utilization, efficiency; /* unweighted means over rows */
    size_t bound_counts[BOUND_COUNT];
};

/* ERR_BAD_VALUE when the device has no such precision. */
enum err legacy_estimate_make(const struct graph *graph, const struct legacy_hardware *hardware,
                              enum precision precision, struct legacy_estimate *out,
                              struct error *why) MUST_USE;
void legacy_estimate_release(struct legacy_estimate *compat);

/* As text and JSON with the keys and digits of its own reports, a foreign format: legacy_report.c. */
void legacy_estimate_text(const struct legacy_estimate *estimate, struct text *out);
void legacy_estimate_json(const struct legacy_estimate *estimate, struct text *out);

#endif
