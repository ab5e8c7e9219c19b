/* Comparison of predictions with measurements, row by row: errors of time and energy, by regime.  docs/estimate.md,
 * "Validation", has the rules.
 *
 * Ownership: a zeroed struct validation is empty; validation_release frees it. */
#ifndef IPW_ESTIMATE_VALIDATE_H
#define IPW_ESTIMATE_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/calibrate_rows.h"
#include "estimate/partition.h"
#include "estimate/workload_estimate.h"
#include "graph/reader.h"

struct params;
struct result;

/* ---- predicting one measured row: a pass or a request of a model, or a single load of operations and bytes ---- */

/* predictor_init borrows the hardware; predictor_release closes the model that is kept open, since consecutive rows
 * usually have the same model. */
struct predictor {
    const struct hardware *hardware; /* NULL: for predictor_count only */
    const char *model_word;          /* overrides the models of the rows; NULL: theirs */
    enum partition_fusion fusion;
    enum runtime_id runtime;  /* and its fusion */
    bool has_default_runtime; /* use that of the row, or the default of the device */
    bool has_precision; /* otherwise that of the row, of the file, or the default of the device */
    enum precision precision;
    double host_launch_s; /* launch time of the host; 0: unknown; UNKNOWN: that of the row */
    struct model model;   /* the last one, if is_open */
    bool is_open;
};

struct prediction {
    double latency_s, joules;
    struct estimate_interval latency_range, joules_range; /* over those; UNKNOWN for single loads */
    enum estimate_bound regime;                           /* bound of most of the time */
    bool has_assumed_host; /* waits for an assumed host, see struct runtime_host */
};

/* A measured row; 0 if not stated. */
struct measured_pass {
    const char *model; /* a file or a name */
    bool has_precision;
    enum precision precision;
    const char *runtime;  /* as in the file: "pytorch-graph", "eager"; NULL and others: unknown */
    double host_launch_s; /* launch time of the host; 0: unknown */
    struct graph_options setting;
    int64_t output_tokens; /* positive: a complete request, prefill and decode */
};

void predictor_init(struct predictor *predictor, const struct hardware *hardware);
void predictor_release(struct predictor *predictor);

enum err predictor_predict(struct predictor *predictor, const struct measured_pass *pass,
                           struct prediction *out, struct error *why) MUST_USE;

/* Counts the operations and bytes of a row, independent of the device. */
enum err predictor_count(struct predictor *predictor, const struct measured_pass *pass,
                         double *flops, double *bytes, struct error *why) MUST_USE;

/* ---- the validation ---- */

#define VALIDATE_ENERGY_MIN_S 1e-3 /* shorter windows are not compared: no meter resolves them */

struct validate_row {
    char label[112];               /* "resnet50 fp16 batch 8" */
    double measured_s, measured_j; /* UNKNOWN: not measured, or too short for energy */
    double window_s;               /* over which energy was measured; UNKNOWN: measured_s */
    char group[40];                /* value of the column `leave_out` */
    struct prediction predicted;   /* UNKNOWN: the device states no figure for it */
};

struct validation {
    struct validate_row *rows;
    size_t count, capacity;
    size_t short_rows;     /* rows whose energy was not compared */
    bool is_estimated;     /* some measured energies are estimated by a model */
    char hardware[96];     /* as named in the measurements; "": not named */
    size_t other_rows;     /* excluded by `where` */
    const char *leave_out; /* the column whose values are groups; NULL: none.  Set by the caller */
};

void validation_add(struct validation *validation, const struct validate_row *row);
void validation_release(struct validation *validation);

/* Predicts and adds the rows of a CSV file in which every column of `where` has its value; they must be of one device.
 * The columns distinguish three kinds of rows: passes of models (model, latency_s), subgraphs (lat_mean_ms), and single
 * loads as in calibrate_rows_read.  ERR_BAD_VALUE names file, line and column. */
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
/* For one regime, or with BOUND_COUNT for all. */
struct validate_sums validate_sum(const struct validation *validation, enum estimate_bound regime);

/* Leave-one-group-out: as if the model had been corrected without the rows of their own group: each prediction times
 * the geometric mean of measured over predicted of the other groups, its interval from their spread (68 and 95 %).  For
 * one group, or with NULL for all. */
struct validate_sums validate_held_out(const struct validation *validation, const char *group);

/* The host's launch time inferred from host-bound rows that were predicted with an assumed one: UNKNOWN if these are
 * few. */
struct validate_host {
    size_t rows;
    double launch_s;
};
struct validate_host validate_host(const struct validation *validation);

/* Whether the mean errors of time and energy over all rows are at most `max`.  UNKNOWN if nothing was compared. */
enum validate_verdict { VALIDATE_UNKNOWN, VALIDATE_PASS, VALIDATE_FAIL };
enum validate_verdict validate_verdict(const struct validation *validation, double max);

/* ---- from measured runs: measurements.c ---- */

/* Predicts and adds all queries of a run directory, all settings of a layers result (*.json), or the rows of a
 * CSV file that `where` selects. */
enum err measurements_validate(const char *path, const struct params *where,
                               struct predictor *predictor, struct validation *validation,
                               struct error *why) MUST_USE;

/* ---- the result: validate_result.c ---- */

struct validate_outcome {
    const struct validation *validation;
    const struct hardware *hardware;
    const char *data; /* source of the measurements: the file or run */
    double max;       /* --max-mape, as a share; or UNKNOWN */
};
void validation_to_result(const struct validate_outcome *outcome, struct result *result);

#endif
