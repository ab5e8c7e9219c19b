/* Predictions compared with measurements, row by row: how far time and energy are off, by regime.
 * docs/estimate.md, "Validation", has the rules.
 *
 * Ownership: a zeroed struct validation is empty; validation_release frees it. */
#ifndef IPW_ESTIMATE_VALIDATE_H
#define IPW_ESTIMATE_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "estimate/predictor.h"

struct params;

#define VALIDATE_ENERGY_LEAST_S 1e-3 /* shorter energies are not compared: no meter resolves them */

struct validate_row {
    char label[112];               /* "resnet50 fp16 batch 8" */
    double measured_s, measured_j; /* UNKNOWN: not measured, or too short for energy */
    double window_s;               /* over which energy was measured; UNKNOWN: measured_s */
    char group[40];                /* of the column `leave_out` */
    struct prediction predicted;   /* UNKNOWN: the device states no figure for it */
};

struct validation {
    struct validate_row *rows;
    size_t count, capacity;
    size_t short_rows;     /* whose energy was not compared */
    bool is_estimated;     /* some measured energies are estimated by a model */
    char hardware[96];     /* as the measurements name it; "": they do not */
    size_t other_rows;     /* left out by `where` */
    const char *leave_out; /* the column whose values are groups; NULL: none.  Set by the caller */
};

enum err validation_add(struct validation *validation, const struct validate_row *row,
                        struct error *why) MUST_USE;
void validation_release(struct validation *validation);

/* Predicts and adds the rows of a CSV file in which every column of `where` has its value; they must be of one
 * device.  The columns tell three kinds of rows apart: passes of models (model, latency_s), subgraphs
 * (lat_mean_ms), and single loads as calibrate_rows_read reads them.  ERR_BAD_VALUE names file, line and
 * column. */
enum err validation_read(struct validation *validation, const char *path,
                         const struct params *where, struct predictor *predictor, struct error *why)
    MUST_USE;

/* Mean of |predicted / measured - 1| and of predicted / measured - 1; UNKNOWN without rows. */
struct validate_error {
    size_t rows, ranged; /* compared, and of these with an interval */
    double mape, bias;
    double
        inside[2]; /* share of rows within one and two standard deviations; UNKNOWN without any */
};
struct validate_sums {
    size_t rows;
    struct validate_error latency, energy;
};
/* Of one regime, or with BOUND_COUNT of all. */
struct validate_sums validate_sum(const struct validation *validation, enum estimate_bound regime);

/* Of rows as if the model had been corrected without those of their own group: each prediction times the geometric
 * mean of measured over predicted of the other groups, its interval from their spread (68 and 95 %).  Of one group, or
 * with NULL of all. */
struct validate_sums validate_held_out(const struct validation *validation, const char *group);

/* Are time and energy over all rows off by at most `most`?  UNKNOWN when nothing was compared. */
enum validate_verdict { VALIDATE_UNKNOWN, VALIDATE_PASS, VALIDATE_FAIL };
enum validate_verdict validate_verdict(const struct validation *validation, double most);

/* ---- out of measured runs: measurements.c ---- */

/* Predicts and adds all queries of a run directory, all settings of a layers result (*.json), or the rows of a
 * CSV file that `where` selects. */
enum err measurements_validate(const char *path, const struct params *where,
                               struct predictor *predictor, struct validation *validation,
                               struct error *why) MUST_USE;

#endif
