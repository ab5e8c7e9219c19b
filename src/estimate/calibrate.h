/* The fit of a device's energy to measured windows:
 *
 *     joules = sum over kinds of operation (joules an operation x operations)
 *            + joules a byte x bytes + constant power x seconds
 *
 * by least squares of mean powers, never held at 0: rows that would need that are refused, as are those that
 * cannot tell the unknowns apart, or one of them from 0.  What they cannot tell may be given.  Watts count alike where powers are alike; where they span more than a
 * factor of two, shares of the power do, as the errors of meters and of this model go.  Intervals come from
 * the bootstrap.
 * docs/estimate.md, "Calibration", has the rules.
 *
 * calibrate_fit fills a struct that calibration_release takes back; its points point into the rows. */
#ifndef IPW_ESTIMATE_CALIBRATE_H
#define IPW_ESTIMATE_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/calibrate_rows.h"
#include "catalog/precision.h"

enum {
    CALIBRATE_CLASSES_MOST = 12,
    CALIBRATE_ROWS_PER_UNKNOWN = 3,
    CALIBRATE_UPDATES_LEAST = 10, /* of the sensor in a window */
};
#define CALIBRATE_WINDOW_LEAST   1e-3 /* s, where nobody says how many updates there were */
#define CALIBRATE_CONDITION_MOST 30.0 /* of the columns, each scaled to length 1 */
#define CALIBRATE_SPREAD_LEAST   0.02 /* of power over the rows, against its mean */
#define CALIBRATE_SPAN_ALIKE     2.0  /* of power: beyond it errors are taken as shares of it */
#define CALIBRATE_LAUNCH_SHARE   0.2  /* of a latency that arithmetic and memory may explain */
#define CALIBRATE_SINGULAR_MOST  0.05 /* of the draws */

struct calibrate_figure {
    double value;     /* joules or watts */
    double error;     /* standard error */
    double low, high; /* 95 % */
    bool is_weak;     /* the interval reaches 0: these rows hardly tell it */
    bool is_given;    /* not fitted: by who calibrates, and without an error or an interval */
};

/* Operations of one format on one kind of unit. */
struct calibrate_class {
    enum precision precision;
    enum calibrate_unit unit;
    char name[24]; /* "fp16 matrix", "fp32" */
    size_t rows;
    struct calibrate_figure joules_per_flop;
    double flops_per_s; /* the most that a row attained */
};

struct calibrate_point {
    const struct calibrate_row *row;
    double measured_w, fitted_w;
    double held_out_w; /* by a fit without this row */
};

struct calibration {
    struct calibrate_class classes[CALIBRATE_CLASSES_MOST];
    size_t class_count;
    struct calibrate_figure joules_per_byte;
    struct calibrate_figure constant_w; /* drawn while working, whatever the work */
    double bytes_per_s;                 /* the most that a row attained */
    double idle_w;                      /* of the rows at rest; UNKNOWN without */
    double launch_s;       /* what a kernel takes beyond its work; UNKNOWN where no row tells */
    double dispatch_s;     /* between kernels that do nothing, handed over one by one; UNKNOWN */
    double graph_launch_s; /* the same, handed over as a graph; UNKNOWN */
    size_t launch_rows;    /* that launch_s stands on */

    struct calibrate_point *points; /* of the rows that were used */
    size_t point_count;
    size_t short_rows; /* left out: too short for the sensor */
    size_t empty_rows; /* left out: no joules, or 0 */
    size_t idle_rows;
    double r2, mape, mape_held_out; /* of power, which at a given time is of energy too */
    double condition;
    bool is_relative;  /* the fit is of shares of the power, not of watts */
    bool is_estimated; /* some joules are by a model */
};

struct calibrate_options {
    bool allow_estimated;
    /* What the rows cannot tell, held at this in the fit; NULL: fitted. */
    const double *joules_per_byte, *constant_w;
    unsigned draws; /* of the bootstrap; 0: 2000 */
    uint64_t seed;
};

/* ERR_BAD_VALUE: refused, and why. */
enum err calibrate_fit(const struct calibrate_rows *rows, const struct calibrate_options *options,
                       struct calibration *out, struct error *why) MUST_USE;
void calibration_release(struct calibration *calibration);

#endif
