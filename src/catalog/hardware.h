/* A device that models may run on: what it can do at most, what it draws, and on what evidence we
 * believe each figure.  The catalogue is data/hardware/NAME.json, one a device, put into the program by
 * the build, which fails when an entry is wrong or contradicts itself; docs/formats.md has the format.
 *
 * A struct hardware owns its text; hardware_release takes it back.  A figure that nobody gives is
 * UNKNOWN, never 0. */
#ifndef IPW_CATALOG_HARDWARE_H
#define IPW_CATALOG_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"
#include "catalog/precision.h"

/* How a figure is known, from the best to the worst. */
enum evidence {
    EVIDENCE_MEASURED,  /* by us or a cited measurement, on the device */
    EVIDENCE_FITTED,    /* coefficients of a fit to measurements */
    EVIDENCE_PUBLISHED, /* by the maker */
    EVIDENCE_DERIVED,   /* computed from the figures above: clocks x units, (limit - idle) / peak */
    EVIDENCE_ASSUMED,   /* of the class of device, for want of better */
    EVIDENCE_COUNT
};
const char *evidence_name(enum evidence evidence);

struct hardware_figure {
    double value; /* UNKNOWN where nobody gives it */
    enum evidence evidence;
    double plus_minus;  /* standard uncertainty in the unit of the value; UNKNOWN where not given */
    const char *source; /* one line; never NULL where the value is known */
};

enum hardware_class {
    HARDWARE_GPU,
    HARDWARE_CPU,
    HARDWARE_TPU,
    HARDWARE_NPU,
    HARDWARE_CLASS_COUNT
};
const char *hardware_class_name(enum hardware_class class);

/* A place where numbers lie, the nearest to the units first; the last one holds the model. */
struct hardware_memory {
    const char *name;                       /* "L2", "HBM3e" */
    struct hardware_figure bytes_per_s;     /* at most */
    struct hardware_figure capacity_bytes;  /* on the whole device */
    struct hardware_figure joules_per_byte; /* beyond idle, on the way to the units */
};

/* A setting at which the maker or the user may run it: a power mode, a clock. */
struct hardware_point {
    const char *name;                 /* "15W", "MAXN" */
    double limit_w;                   /* UNKNOWN: as the device */
    double clock_ratio, memory_ratio; /* of the peaks and of the bandwidth; 1: as the device */
    double energy_ratio;              /* of the joules of an operation; 1: as the device */
    double idle_w;                    /* UNKNOWN: as the device */
    const char *source;
};

struct hardware {
    char id[48];   /* "h100-sxm": small letters, digits, dashes; what --hardware takes */
    char name[96]; /* "NVIDIA H100 SXM5 80GB" */
    char vendor[48];
    enum hardware_class class;
    int year;

    /* Dense operations a second at most (a multiplication and an addition are two), of the units for
     * matrices and of those for vectors.  A format that a unit does not have is UNKNOWN. */
    struct hardware_figure matrix_flops[PRECISION_COUNT], vector_flops[PRECISION_COUNT];
    /* Joules of one operation beyond idle, on those units. */
    struct hardware_figure matrix_joules[PRECISION_COUNT], vector_joules[PRECISION_COUNT];

    struct hardware_memory *memories; /* the nearest first */
    size_t memory_count;

    struct hardware_figure limit_w;  /* power limit of what idle_w and the joules are of */
    struct hardware_figure idle_w;   /* awake and ready, doing nothing */
    struct hardware_figure launch_s; /* between one kernel and the next */
    struct hardware_figure units;    /* that work is dealt out to: SMs, cores */
    /* The share of peak and of bandwidth that good code reaches with enough work. */
    struct hardware_figure compute_share, memory_share;
    struct hardware_figure link_bytes_per_s, link_latency_s; /* to a neighbour, one direction */

    struct hardware_point *points; /* the first is the default; none: the device as it is */
    size_t point_count;
    const char **aliases; /* other ids and names as drivers report them; ends in NULL */
    bool is_calibrated;   /* by `ipw estimate calibrate` */
    char doubt[160];      /* what contradicts itself in a file of the user's; "": nothing */
    void *text;           /* what the strings above point into */
};

/* The memory that holds the model. */
const struct hardware_memory *hardware_main_memory(const struct hardware *hardware);

/* Units that compute in a format. */
struct hardware_way {
    const struct hardware_figure *flops, *joules; /* a second, and of one; NULL: there are none */
    enum precision used;                          /* what is computed in */
    bool is_matrix;                               /* on the units for matrices */
};

/* Where products of a format run: on units of the format, those for matrices first.  A device that has none
 * computes them in whichever format of its own that holds the numbers costs least (of equals: the fastest,
 * then the nearest). */
struct hardware_way hardware_product_way(const struct hardware *hardware, enum precision precision);
/* The same of everything else, which runs on the vector units; of int4 and fp4 it is done in 16 bits. */
struct hardware_way hardware_other_way(const struct hardware *hardware, enum precision precision);

/* Of products, operations a second and the format that was taken; UNKNOWN where there is none. */
double hardware_product_flops(const struct hardware *hardware, enum precision precision,
                              enum precision *used);

/* The weakest among the figures that an estimate rests on: peak and joules of products, bandwidth and joules
 * of the main memory, limit and idle.  One that is not stated counts as assumed, but a limit: without one
 * nothing is slowed down by it, and no figure rests on it. */
struct hardware_weakest {
    enum evidence evidence;
    const char *figure; /* "the joules of a byte" */
    bool is_stated;
};
struct hardware_weakest hardware_weakest(const struct hardware *hardware, enum precision precision);
enum evidence hardware_evidence(const struct hardware *hardware, enum precision precision);

/* From JSON text; `name` is for messages.  ERR_BAD_VALUE names the key and the rule that it breaks.
 * What is read need not make sense as a whole: see hardware_check. */
enum err hardware_parse(const char *name, const char *bytes, size_t length, struct hardware *out,
                        struct error *why) MUST_USE;
/* A file of the user's: what contradicts itself is theirs, so it is warned of, kept as its doubt, and used. */
enum err hardware_read(const char *path, struct hardware *out, struct error *why) MUST_USE;
void hardware_release(struct hardware *hardware);

/* What contradicts itself or physics: joules x peak + idle above the limit by more than the stated
 * margin, a narrow format slower than a wide one, idle above the limit, and so on. */
enum err hardware_check(const struct hardware *hardware, struct error *why) MUST_USE;

/* Runs it at one of its points, whose name then stands behind its id ("jetson-orin-agx-64gb@30W"); it has no points
 * any more.  ERR_NOT_FOUND names those that it has. */
enum err hardware_at_point(struct hardware *hardware, const char *point, struct error *why)
    MUST_USE;

/* ---- the catalogue ---- */

size_t hardware_catalogue_count(void);
const char *hardware_catalogue_id(size_t index); /* sorted */
/* The entry as its file has it: JSON, in the format that hardware_parse reads. */
const char *hardware_catalogue_text(size_t index);
/* By id or alias, with "@POINT" behind it for a point; an unknown one gets the nearest suggested. */
enum err hardware_find(const char *id, struct hardware *out, struct error *why) MUST_USE;
/* By the name that a driver reports ("NVIDIA H200"); false when none fits. */
bool hardware_of_device(const char *driver_name, struct hardware *out);

#endif
