/* The fit of a device's energy to measured windows:
 *
 *     joules = sum over classes of operations (joules per operation x operations)
 *            + joules per byte x bytes + constant power x seconds
 *
 * by least squares on mean power, without a non-negativity constraint: rows that would need one are rejected, as are
 * rows that cannot separate the unknowns, or one of them from 0.  Figures that they cannot determine may be given.
 * Errors are in watts if powers are similar, and relative if they span more than a factor of two, like the errors of
 * meters and of this model.  Intervals come from the bootstrap.  docs/estimate.md, "Calibration", has the rules.
 *
 * Ownership: calibrate_fit fills a struct that calibration_release frees; its points point into the rows. */
#ifndef IPW_ESTIMATE_CALIBRATE_H
#define IPW_ESTIMATE_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/hardware.h"
#include "catalog/precision.h"
#include "core/err.h"
#include "estimate/calibrate_rows.h"

struct result;
struct text;

enum {
    CALIBRATE_CLASSES_MAX = 12,
    CALIBRATE_CACHES_MAX = 3,
    CALIBRATE_ROWS_PER_UNKNOWN = 3,
    CALIBRATE_UPDATES_MIN = 10, /* sensor updates in a window */
};
#define CALIBRATE_WINDOW_MIN    1e-3 /* s, when the number of sensor updates is unknown */
#define CALIBRATE_CONDITION_MAX 30.0 /* condition number of the columns, each scaled to length 1 */
#define CALIBRATE_SPREAD_MIN    0.02 /* spread of power over the rows, relative to its mean */
#define CALIBRATE_SPAN_ALIKE    2.0  /* ratio of powers above which errors are relative */
#define CALIBRATE_LAUNCH_SHARE  0.2  /* share of a latency explained by arithmetic and memory */
#define CALIBRATE_SINGULAR_MAX  0.05 /* share of the draws without a solution */

struct calibrate_figure {
    double value;     /* joules or watts */
    double error;     /* standard error */
    double low, high; /* 95 % */
    bool is_weak;     /* the interval includes 0 */
    bool is_given;    /* by the user, not fitted: no error and no interval */
};

/* Operations in one precision on one kind of unit. */
struct calibrate_class {
    enum precision precision;
    enum calibrate_unit unit;
    char name[24]; /* "fp16 matrix", "fp32" */
    size_t rows;
    struct calibrate_figure joules_per_flop;
    double flops_per_s; /* the highest of any row */
};

struct calibrate_point {
    const struct calibrate_row *row;
    double measured_w, fitted_w;
    double held_out_w; /* by a fit without this row (leave-one-out) */
};

struct calibration {
    struct calibrate_class classes[CALIBRATE_CLASSES_MAX];
    size_t class_count;
    struct calibrate_figure joules_per_byte;
    struct calibrate_figure constant_w; /* power under load, independent of the load */
    double bytes_per_s;                 /* the highest of any row */
    struct calibrate_cache {
        double held, bytes_per_s;   /* largest measured working set, and its rate */
    } caches[CALIBRATE_CACHES_MAX]; /* the nearest first */
    size_t cache_count;
    bool has_no_energy; /* rates only: all joules and watts are UNKNOWN */
    double idle_w;      /* mean of the idle rows; UNKNOWN if there are none */
    double launch_s;    /* time of a kernel in addition to its work; UNKNOWN if no row shows it */
    double dispatch_s;  /* between empty kernels launched one by one; UNKNOWN */
    double graph_launch_s; /* the same, launched as a graph; UNKNOWN */
    double host_launch_s;  /* host time of a small operator in eager mode; UNKNOWN */
    size_t launch_rows;    /* rows that launch_s is based on */

    struct calibrate_point *points; /* the used rows */
    size_t point_count;
    size_t short_rows; /* excluded: too short for the sensor */
    size_t empty_rows; /* excluded: energy missing or 0 */
    size_t idle_rows;
    double r2, mape, mape_held_out; /* fit quality of power, and so of energy */
    double condition;
    bool is_relative;  /* errors are relative to the power, not in watts */
    bool is_estimated; /* some joules are estimated by a model */
};

struct calibrate_options {
    bool allow_estimated;
    double joules_per_byte, constant_w; /* given by the user and fixed; 0: fitted */
    unsigned draws;                     /* bootstrap draws; 0: depends on the number of rows */
    uint64_t seed;
};

/* Sets a figure that the rows cannot determine: "pj-per-byte" or "constant-w".  ERR_USAGE for anything else. */
enum err calibrate_give(struct calibrate_options *options, const char *key, const char *value,
                        struct error *why) MUST_USE;

/* The catalog entry for the figures that are not fitted: the one with this id, or without an id the one that matches
 * the device name; *is_found is false if there is none.  The caller releases *out. */
enum err calibrate_find_base(const char *id, const char *device, struct hardware *out,
                             bool *is_found, struct error *why) MUST_USE;

/* ERR_BAD_VALUE: rejected, with the reason. */
enum err calibrate_fit(const struct calibrate_rows *rows, const struct calibrate_options *options,
                       struct calibration *out, struct error *why) MUST_USE;
void calibration_release(struct calibration *calibration);

/* For machines without a meter: only the attained rates and overheads.  ERR_BAD_VALUE if the rows have none. */
enum err calibrate_rates(const struct calibrate_rows *rows, struct calibration *out,
                         struct error *why) MUST_USE;

/* ---- the hardware file ---- */

/* The origin of a calibration, for the names and sources in the file. */
struct calibrate_origin {
    const char *hardware;        /* as the rows or this machine name it; "": unknown */
    const struct hardware *base; /* the entry whose other figures are kept; NULL: none */
    const char *data;            /* source of the rows: "a.csv", "built-in loads, cpu0" */
    const char *given_source;    /* source of coefficients that were not fitted */
    const struct hardware_timings *timings;
    size_t timing_count; /* at most TIMINGS_RUNTIMES */
};

/* JSON for --hardware-file: the base with its figures replaced by the fitted and attained ones, or an entry of those
 * alone.  ERR_BAD_VALUE if the result contradicts itself: see hardware_check. */
enum err calibrate_hardware(const struct calibration *calibration,
                            const struct calibrate_origin *origin, struct text *out,
                            struct error *why) MUST_USE;

/* ---- the result: calibrate_result.c ---- */

struct calibrate_outcome {
    const struct calibration *calibration;
    struct calibrate_origin origin;
    const char *file;      /* the hardware file; NULL: none was written */
    const char *no_energy; /* why no energy was measured; or "" */
};
void calibration_to_result(const struct calibrate_outcome *outcome, struct result *result);

#endif
