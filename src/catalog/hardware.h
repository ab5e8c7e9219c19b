/* A device that models run on: its peak rates, its power, and the evidence for each figure.  The catalog is
 * data/hardware/ID.json, one file per device, which are part of the program (catalog/catalog_file.h); the build fails
 * when an entry is wrong or contradicts itself.  docs/formats.md has the format.
 *
 * An entry of the catalog and a copy of one own nothing; a struct hardware that was parsed (catalog/hardware_json.h)
 * owns its strings, and hardware_release frees them.  A figure that is not published is UNKNOWN, never 0. */
#ifndef IPW_CATALOG_HARDWARE_H
#define IPW_CATALOG_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>

#include "catalog/precision.h"
#include "core/err.h"
#include "core/units.h"

/* Evidence for a figure, from the best to the worst. */
enum evidence {
    EVIDENCE_MEASURED,  /* by us or a cited measurement, on the device */
    EVIDENCE_FITTED,    /* coefficients of a fit to measurements */
    EVIDENCE_PUBLISHED, /* by the vendor */
    EVIDENCE_DERIVED,   /* computed from the figures above: clocks x units, (limit - idle) / peak */
    EVIDENCE_ASSUMED,   /* typical of the class of device, in the absence of data */
    EVIDENCE_COUNT
};
const char *evidence_name(enum evidence evidence);
const char *evidence_at(int value); /* the same, for BIND_ENUM */

struct hardware_figure {
    double value; /* in SI units; UNKNOWN where it is not published */
    enum evidence evidence;
    double plus_minus;  /* standard uncertainty in the unit of the value; UNKNOWN where not given */
    const char *source; /* one line; never NULL where the value is known */
    const char *unit;   /* as in its file ("tflops"); NULL: dimensionless or SI */
};

enum hardware_class {
    HARDWARE_GPU,
    HARDWARE_CPU,
    HARDWARE_TPU,
    HARDWARE_NPU,
    HARDWARE_CLASS_COUNT
};
const char *hardware_class_name(enum hardware_class class);

/* A level of the memory hierarchy, the closest to the compute units first; the last one holds the model. */
struct hardware_memory {
    const char *name;                       /* "L2", "HBM3e" */
    struct hardware_figure bytes_per_s;     /* peak bandwidth */
    struct hardware_figure capacity_bytes;  /* on the whole device */
    struct hardware_figure joules_per_byte; /* above idle, to the compute units */
};
enum { HARDWARE_MEMORIES_MAX = 8 };

/* An operating point that the vendor or the user may select: a power mode, a clock. */
struct hardware_point {
    const char *name;                 /* "15W", "MAXN" */
    double limit_w;                   /* UNKNOWN: as the device */
    double clock_ratio, memory_ratio; /* relative peaks and bandwidth; 1: as the device */
    double energy_ratio;              /* relative joules per operation; 1: as the device */
    double idle_w;                    /* UNKNOWN: as the device */
    const char *source;
};

/* Names of a device, given in its file. */
struct hardware_names {
    char **items;
    size_t count;
};
/* The item that equals a name; NULL: none. */
const char *hardware_listed(const struct hardware_names *names, const char *name);

/* Identification of a processor by the kernel, for the power model of a host without a meter. */
struct hardware_processor {
    struct hardware_names brands; /* words of its brand string; none: not given */
    unsigned threads;
    const char *source; /* source of the power limit, in a word: "AMD TDP" */
};

/* Classes of kernels and what each attains on a device (kernels.def). */
enum kernel_class {
#define KERNEL(constant, name) KERNEL_##constant,
#include "catalog/kernels.def"
#undef KERNEL
    KERNEL_COUNT
};
const char *kernel_class_name(enum kernel_class class);

/* A kernel takes `fixed` in addition to its work; matrix products attain `compute_share` of the peak in full tiles
 * and wait `depth` per element of the inner dimension; rows are distributed to the units at `row` each; `active` is
 * the power of busy units in addition to the energy of operations and bytes. */
struct kernel_figures {
    double fixed_s, compute_share, memory_share, depth_s, row_s, active_w;
};

/* Single operations of a runtime, timed on a CPU by `ipw estimate calibrate`: the estimate of a model on that CPU is
 * composed of these (docs/formats.md, "timings"). */
enum timing_op {
    TIMING_PASS, /* overhead of a graph: fork and join of the threads */
    TIMING_STEP, /* an operation without work: a barrier */
    TIMING_PRODUCT,
    TIMING_CONV,       /* with at least 16 channels */
    TIMING_POINT_CONV, /* with a window of 1 x 1 */
    TIMING_IMAGE_CONV, /* with fewer channels */
    TIMING_LINE_CONV,  /* over one dimension */
    TIMING_DEPTHWISE_CONV,
    TIMING_LSTM,
    TIMING_ATTENTION,
    TIMING_NORM,
    TIMING_ADD,   /* ONNX Runtime: `rows` elements */
    TIMING_SCALE, /* by a constant */
    TIMING_SIGMOID,
    TIMING_LRN,
    TIMING_REORDER, /* `rows` elements from or to the blocked layout of convolutions */
    TIMING_ROTATION,
    TIMING_GATE, /* silu(a) x b */
    TIMING_OP_COUNT
};
const char *timing_op_name(enum timing_op op);

struct hardware_timing {
    enum timing_op op;
    const char *format;          /* format of a product's weights, "Q4_K"; NULL */
    double rows, depth, columns; /* attention: queries, of a head, heads; convolutions: positions */
    double context;              /* attention: context; convolutions: elements of the window */
    double held;                 /* working set: bytes of all weights used in rotation */
    double seconds;              /* per operation */
};
enum { TIMINGS_RUNTIMES = 2 };
struct hardware_timings {
    const char *runtime, *source;
    unsigned threads;
    const struct hardware_timing *items;
    size_t count;
};

struct hardware {
    char id[48];   /* "h100-sxm": lowercase letters, digits, dashes; what --hardware takes */
    char name[96]; /* "NVIDIA H100 SXM5 80GB" */
    char vendor[48];
    enum hardware_class class;
    int year;         /* 0: not given */
    const char *note; /* NULL: none */

    /* Dense operations per second (a multiplication and an addition are two), of the matrix and of the
     * vector units.  UNKNOWN for a precision that the units do not have. */
    struct hardware_figure matrix_flops[PRECISION_COUNT], vector_flops[PRECISION_COUNT];
    /* Joules per operation above idle, on those units. */
    struct hardware_figure matrix_joules[PRECISION_COUNT], vector_joules[PRECISION_COUNT];

    struct hardware_memory memories[HARDWARE_MEMORIES_MAX]; /* closest to the compute units first */
    size_t memory_count;

    struct hardware_figure limit_w;  /* power limit, for the same domain as idle_w and joules */
    struct hardware_figure idle_w;   /* powered up and ready, without work */
    struct hardware_figure launch_s; /* between one kernel and the next */
    struct hardware_figure units;    /* units that work is distributed over: SMs, cores */
    /* Share of peak and of bandwidth that optimized code attains with enough work. */
    struct hardware_figure compute_share, memory_share;
    struct hardware_figure kernels; /* operators on it that kernel classes were fitted to */
    const struct kernel_figures *kernel_classes; /* by class; NULL: use those of another device */
    struct hardware_figure host_launch_s;        /* host time to launch a small operator */
    struct hardware_figure link_bytes_per_s, link_latency_s; /* to a neighbor, one direction */
    struct hardware_figure link_peers; /* devices connected directly; UNKNOWN: two neighbors */
    struct hardware_figure
        link_count; /* number of links in a mesh, each to another device; UNKNOWN: a switch or a bus */

    const struct hardware_point *points; /* the first is the default; none: the device as it is */
    size_t point_count;
    struct hardware_names aliases; /* other ids, and names as drivers report them */
    struct hardware_names matches; /* names for device_peak_find */
    struct hardware_processor processor;
    struct hardware_timings timings[TIMINGS_RUNTIMES];
    size_t timing_count; /* of timings */
    bool is_calibrated;  /* by `ipw estimate calibrate` */
    char doubt[160];     /* contradiction found in a user's file; "": none */
    void *storage;       /* memory that the pointers above point into; NULL: the catalog's */
};

void hardware_release(struct hardware *hardware);

/* The memory that holds the model. */
const struct hardware_memory *hardware_main_memory(const struct hardware *hardware);

/* The units that execute an operation, and its compute precision. */
struct hardware_path {
    const struct hardware_figure *flops, *joules; /* per second, and of one operation; NULL: none */
    enum precision used;
    bool is_matrix; /* on the matrix units */
};

/* Where matrix products of a precision run: on units of that precision, matrix units first.  A device without such
 * units uses the cheapest of its precisions that can hold the numbers (of equals: the fastest, then the nearest). */
struct hardware_path hardware_matmul_path(const struct hardware *hardware,
                                          enum precision precision);
/* The same for all other operations, which run on the vector units; for int4 and fp4 in 16 bits. */
struct hardware_path hardware_elementwise_path(const struct hardware *hardware,
                                               enum precision precision);

/* Operations per second of matrix products, and the precision used; UNKNOWN where there is none. */
double hardware_matmul_flops(const struct hardware *hardware, enum precision precision,
                             enum precision *used);

/* The weakest evidence among the figures that an estimate depends on: peak and joules of matrix products, bandwidth
 * and joules of the main memory, limit and idle.  A missing one counts as assumed, except a limit: without one
 * nothing is throttled. */
struct hardware_weakest {
    enum evidence evidence;
    const char *figure; /* "the energy per byte" */
    bool is_stated;
};
struct hardware_weakest hardware_weakest(const struct hardware *hardware, enum precision precision);
enum evidence hardware_evidence(const struct hardware *hardware, enum precision precision);

/* Selects one of its operating points, whose name is appended to its id ("jetson-orin-agx-64gb@30W"); the result has
 * no operating points.  ERR_NOT_FOUND lists the available ones. */
enum err hardware_at_point(struct hardware *hardware, const char *point, struct error *why)
    MUST_USE;

/* ---- the catalog ---- */

/* Sorted by id.  A device is parsed when it is first used, an id is known without. */
size_t hardware_count(void);
const char *hardware_id(size_t index);
/* NULL: out of memory, which the program does not survive. */
const struct hardware *hardware_at(size_t index);
struct catalog_file;
const struct hardware *hardware_of(struct catalog_file *file); /* the same of its file */
/* Finds a device by id or alias, followed by "@POINT" for an operating point; for an unknown one the error suggests
 * names of the same generation (catalog/near_names.h). */
enum err hardware_find(const char *id, struct hardware *out, struct error *why) MUST_USE;
/* The same by id or alias alone; NULL: none. */
const struct hardware *hardware_named(const char *name);
/* Timed operations of a runtime on this device; NULL: none. */
const struct hardware_timings *hardware_timings(const struct hardware *hardware,
                                                const char *runtime);

#endif
