/* Time and energy of one subgraph on a device (docs/estimate.md, "Time" and "Energy"): the roofline model with wave
 * quantization, kernel launches and links between devices; idle power is drawn for the whole time, and at the power
 * limit the device becomes slower.  Pure functions; nothing is owned. */
#ifndef IPW_ESTIMATE_ROOFLINE_H
#define IPW_ESTIMATE_ROOFLINE_H

#include "catalog/hardware.h"
#include "core/err.h"
#include "estimate/parallel.h"
#include "estimate/partition.h"
#include "estimate/runtime.h"

enum { ROOFLINE_LINK_ENDS = 2 }; /* a message is read from one memory and written to another */

/* ---- a device in one precision ---- */

/* A value and its relative standard uncertainty. */
struct rate {
    double value, relative;
};

/* Figures of the kernel classes, and the device that they were fitted on: peaks in elements of one byte. */
struct kernel_basis {
    const struct kernel_figures *classes; /* NULL: not fitted on any device */
    double units, launch_s, bytes_per_s, matrix_flops, vector_flops;
    double active_w; /* between idle and the limit */
};

/* Figures of a device as plain numbers; UNKNOWN if not stated.  Shares, launch and units then default to those of
 * docs/estimate.md for its class. */
struct rates {
    const struct hardware *hardware;
    struct precision_widths widths;
    struct number_format format;
    enum precision used;                      /* compute precision of products */
    bool is_matrix;                           /* on the matrix units */
    struct rate product_flops, other_flops;   /* peak per second */
    struct rate product_joules, other_joules; /* per operation, above idle */
    struct rate conv_flops, conv_joules;      /* for convolutions, possibly in tf32 */
    double attention_flops, dequant_flops;    /* for attention, for dequantization */
    enum runtime_id runtime;
    bool has_kernels;          /* known for that runtime; else the shares below are used */
    struct kernel_basis basis; /* of those kernels */
    struct runtime_host host;  /* set by the caller */
    const struct hardware_timings *timings;   /* timed operations on a CPU; NULL: none */
    double held;                              /* bytes of the model's weights, for these */
    struct rate bytes_per_s, joules_per_byte; /* memory that holds the model */
    double cache_bytes, cache_joules;         /* last cache before that memory; 0: none */
    struct rate compute_share, memory_share;  /* shares of the peaks attained by optimized code */
    struct rate launch_s;
    struct rate limit_w, idle_w;
    struct rate link_bytes_per_s, link_latency_s;
    struct collective_link link; /* the same, for collectives */
    double units;                /* UNKNOWN: no wave quantization */
    double capacity;             /* bytes; UNKNOWN: not stated */
};

/* ERR_BAD_VALUE names the figure that is required for an estimate.  Kernels of runtimes are those of GPUs; on CPUs a
 * runtime has its own fusion, at the shares of the device. */
enum err rates_of(const struct hardware *hardware, enum precision precision,
                  enum runtime_id runtime, struct rates *out, struct error *why) MUST_USE;

/* For models other than decoders in int8: static engines also quantize the activations between layers. */
void rates_quantize_activations(struct rates *rates);

/* A file keeps its stored precision: its floats have their width, and its products the stated precision. */
void rates_keep_stored(struct rates *rates, const struct graph_precision *file);

/* The figures with defaults by class, as stated or assumed. */
struct rates_stated {
    struct hardware_figure compute_share, memory_share, launch_s;
};
struct rates_stated rates_stated_or_assumed(const struct hardware *hardware);

/* ---- a subgraph on it ---- */

enum estimate_bound {
    BOUND_COMPUTE,
    BOUND_MEMORY,
    BOUND_LAUNCH,
    BOUND_LINK,
    BOUND_BALANCED,
    BOUND_COUNT
};
extern const char *const ESTIMATE_BOUNDS[BOUND_COUNT]; /* their names */
static inline const char *estimate_bound_name(enum estimate_bound bound)
{
    return ESTIMATE_BOUNDS[bound];
}

struct estimate_joules {
    double compute, memory, idle; /* idle is "static" in files */
    double link;                  /* between devices; 0 for a single one */
    double total;
};

/* Bytes moved in one pass. */
struct estimate_traffic {
    double weights, activations;
    double cache_read, cache_written; /* KV cache */
    double link;                      /* sent between devices; not part of `bytes` */
};

/* *sum += times x *more */
static inline void estimate_joules_add(struct estimate_joules *sum,
                                       const struct estimate_joules *more, double times)
{
    sum->compute += times * more->compute;
    sum->memory += times * more->memory;
    sum->idle += times * more->idle;
    sum->link += times * more->link;
    sum->total += times * more->total;
}
void estimate_traffic_add(struct estimate_traffic *sum, const struct estimate_traffic *more,
                          double times);

/* The work of one of the devices that share a subgraph. */
struct roofline_work {
    double macs, elementwise;
    double weights;       /* matrix weights, each once */
    double outputs, rows; /* elements to distribute over its units, as in struct subgraph */
    struct estimate_traffic traffic;
    double bytes;                     /* traffic through its own memory */
    double all_reduced, all_gathered; /* bytes of collectives among the devices */
};

struct subgraph_estimate {
    double compute_s, memory_s, launch_s, link_s;
    double stretch;   /* factor by which the power limit increased it; 1: none */
    double latency_s; /* of the subgraph, including the stretch */
    double launches;  /* host launches */
    double flops, bytes;
    double cached_bytes;           /* part of `bytes` served by caches */
    double utilization;            /* share of the peak in this precision */
    double wave_share;             /* share of busy units, averaged over waves; 1: all */
    struct estimate_joules joules; /* all devices; UNKNOWN if the device states no figure */
    enum estimate_bound bound;
};

struct roofline_work roofline_work(const struct subgraph *subgraph,
                                   const struct partition *partition, const struct rates *rates,
                                   int devices);

/* The peak of the units that execute its products: convolutions may be in tf32. */
double roofline_product_flops(const struct subgraph *subgraph, const struct rates *rates);

/* Time and energy on `devices` devices that each do `work`; figures of all devices together.  Kernels of a runtime are
 * estimated without the power limit, see roofline_limit. */
void roofline_estimate(const struct subgraph *subgraph, const struct roofline_work *work,
                       const struct rates *given, int devices, struct subgraph_estimate *out);

/* A device averages its power over many kernels, so the limit applies to a pass: the available joules above idle per
 * device, and the factor by which time is stretched or, for a bound, shortened. */
struct roofline_limit {
    double joules, time;
};
struct roofline_limit roofline_limit(const struct rates *rates, double active_j, double latency_s);
void roofline_apply_limit(const struct rates *rates, const struct roofline_limit *limit,
                          int devices, struct subgraph_estimate *row);

/* Adds time that the devices wait for the host. */
void roofline_wait(const struct rates *rates, double wait_s, int devices,
                   struct subgraph_estimate *row);

/* ---- the kernels of a runtime: kernel.c ---- */

/* Time of the kernels of a subgraph in a runtime, and the power of busy units: the share of the roofline that a kernel
 * class attains at its size (docs/estimate.md, "Kernels and runtimes"). */
struct kernel_estimate {
    enum kernel_class class;
    double launches; /* host launches: its operator, and a fraction for each additional kernel */
    double compute_s, memory_s; /* units and memory, at the shares of the class */
    double latency_s;           /* total time, including launches */
    double active_j;            /* energy of busy units, in addition to operations and bytes */
    double padding;      /* MACs computed over those required: channels of images are padded */
    double more_bytes;   /* moved by additional kernels of the runtime */
    double cached_bytes; /* bytes of the operands resident in caches of a CPU */
};

/* The device's own if it was measured, else those of another; false: none. */
bool kernel_basis_of(const struct hardware *hardware, struct kernel_basis *out);

/* Estimates one device, without the power limit. */
struct kernel_estimate kernel_estimate(const struct subgraph *subgraph,
                                       const struct roofline_work *work, const struct rates *rates);

/* ---- timed operations on a CPU: cpu_kernel.c ---- */

/* The same from rates->timings. */
struct kernel_estimate timed_kernel_estimate(const struct subgraph *subgraph,
                                             const struct roofline_work *work,
                                             const struct rates *rates);
/* The same for ONNX Runtime on a CPU: cpu_kernel.c. */
struct kernel_estimate cpu_kernel_estimate(const struct subgraph *subgraph,
                                           const struct roofline_work *work,
                                           const struct rates *rates);
double timed_pass_s(const struct hardware_timings *timings); /* fixed time of a pass */

#endif
