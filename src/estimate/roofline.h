/* Time and energy of one subgraph on a device (docs/estimate.md, "Time" and "Energy"): the roofline model with
 * wave quantization, kernel launches and links between devices; idle power runs for as long as it takes, and
 * beyond the power limit the device is slower, not hungrier.  Pure functions; nothing is owned. */
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

/* What classes of kernels attain, and the device that they were fitted on: peaks of elements of one byte. */
struct kernel_basis {
    const struct kernel_figures *classes; /* NULL: of no device */
    double units, launch_s, bytes_per_s, matrix_flops, vector_flops;
    double active_w; /* between idle and the limit */
};

/* What a device states, as plain numbers; UNKNOWN where it does not.  Shares, launch and units then default to
 * what docs/estimate.md assumes for its class. */
struct rates {
    const struct hardware *hardware;
    struct precision_widths widths;
    struct number_format format;
    enum precision used;                      /* in which products are computed */
    bool is_matrix;                           /* on the matrix units */
    struct rate product_flops, other_flops;   /* peak per second */
    struct rate product_joules, other_joules; /* per operation, above idle */
    struct rate conv_flops, conv_joules;      /* of convolutions, which may be in tf32 */
    double attention_flops, dequant_flops;    /* of attention; of weights that are converted */
    enum runtime_id runtime;
    bool has_kernels;                         /* of that runtime; else at the shares below */
    struct kernel_basis basis;                /* of those */
    struct runtime_host host;                 /* that launches kernels; set by the caller */
    const struct hardware_timings *timings;   /* of its operations on a CPU; NULL: none */
    double held;                              /* bytes of the model's weights, for these */
    struct rate bytes_per_s, joules_per_byte; /* of the memory that holds the model */
    double cache_bytes, cache_joules;         /* of the last cache before that memory; 0: none */
    struct rate compute_share, memory_share;  /* of the peaks that good code attains */
    struct rate launch_s;
    struct rate limit_w, idle_w;
    struct rate link_bytes_per_s, link_latency_s;
    struct collective_link link; /* the same, as collectives use it */
    double units;                /* UNKNOWN: no wave quantization */
    double capacity;             /* bytes; UNKNOWN: not stated */
};

/* ERR_BAD_VALUE names the figure without which nothing can be estimated.  Kernels of
 * runtimes are those of GPUs; on CPUs a runtime fuses what it fuses, at the shares of the device. */
enum err rates_of(const struct hardware *hardware, enum precision precision,
                  enum runtime_id runtime, struct rates *out, struct error *why) MUST_USE;

/* A file keeps its stored precision: its floats have their width, and its products the precision it states. */
void rates_keep_stored(struct rates *rates, const struct graph_precision *file);

/* The figures that default by class, as stated or assumed. */
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
    double link;                  /* between devices; 0 for one */
    double total;
};

/* Bytes moved in one pass. */
struct estimate_traffic {
    double weights, activations;
    double cache_read, cache_written; /* KV cache */
    double link;                      /* sent between devices; not part of `bytes` */
};

/* *sum += times x *more */
void estimate_joules_add(struct estimate_joules *sum, const struct estimate_joules *more,
                         double times);
void estimate_traffic_add(struct estimate_traffic *sum, const struct estimate_traffic *more,
                          double times);

/* The work of one of the devices that share a subgraph. */
struct roofline_work {
    double macs, elementwise;
    double weights;       /* of matrices, each once */
    double outputs, rows; /* elements to distribute over its units, as in struct subgraph */
    struct estimate_traffic traffic;
    double bytes;                     /* of the traffic, those of its own memory */
    double all_reduced, all_gathered; /* bytes of collectives among the devices */
};

struct subgraph_estimate {
    double compute_s, memory_s, launch_s, link_s;
    double stretch;   /* factor by which the power limit lengthened it; 1: not at all */
    double latency_s; /* of the subgraph, stretched */
    double launches;  /* of the host */
    double flops, bytes;
    double utilization;            /* of the peak in this precision */
    double wave_share;             /* share of the units busy, averaged over waves; 1: all */
    struct estimate_joules joules; /* of all devices; UNKNOWN where the device states no figure */
    enum estimate_bound bound;
};

struct roofline_work roofline_work(const struct subgraph *subgraph,
                                   const struct partition *partition, const struct rates *rates,
                                   int devices);

/* Time and energy on `devices` devices that each do `work`; figures of all devices together.  Kernels of a runtime are
 * as if power had no limit, see roofline_limit. */
void roofline_estimate(const struct subgraph *subgraph, const struct roofline_work *work,
                       const struct rates *given, int devices, struct subgraph_estimate *out);

/* A device averages its power over many kernels, so that the limit is one of a pass: what it leaves of the joules above
 * idle of a device, and by what it stretches time. */
struct roofline_limit {
    double joules, time;
};
struct roofline_limit roofline_limit(const struct rates *rates, double active_j, double latency_s);
void roofline_apply_limit(const struct rates *rates, const struct roofline_limit *limit,
                          int devices, struct subgraph_estimate *row);

/* Adds the time that the devices wait for the host. */
void roofline_wait(const struct rates *rates, double wait_s, int devices,
                   struct subgraph_estimate *row);

/* ---- the kernels of a runtime: kernel.c ---- */

/* How long the kernels of a subgraph take as a runtime calls them, and what busy units draw: the share of the roof that
 * a class of kernel attains at its size (docs/estimate.md, "Kernels and runtimes"). */
struct kernel_estimate {
    enum kernel_class class;
    double launches; /* of the host: its operator, and a part of one for each kernel beside it */
    double compute_s, memory_s; /* of the units and of the memory, at what the class attains */
    double latency_s;           /* of all of them, with what a launch takes */
    double active_j;            /* of busy units, beside those of operations and bytes */
    double padding;             /* MACs done over those needed: channels of images are padded */
    double more_bytes;          /* moved by kernels that the runtime adds */
};

/* The device's own where it was measured, else those of one that was; false: of none. */
bool kernel_basis_of(const struct hardware *hardware, struct kernel_basis *out);

/* On one device; the time that a power limit adds is not in it. */
struct kernel_estimate kernel_estimate(const struct subgraph *subgraph,
                                       const struct roofline_work *work, const struct rates *rates);

/* ---- operations that were timed on a CPU: cpu_kernel.c ---- */

/* The same from rates->timings. */
struct kernel_estimate timed_kernel_estimate(const struct subgraph *subgraph,
                                             const struct roofline_work *work,
                                             const struct rates *rates);
/* The same of ONNX Runtime on a CPU: cpu_kernel.c. */
struct kernel_estimate cpu_kernel_estimate(const struct subgraph *subgraph,
                                           const struct roofline_work *work,
                                           const struct rates *rates);
double timed_pass_s(const struct hardware_timings *timings); /* of a pass, beside its operations */

#endif
