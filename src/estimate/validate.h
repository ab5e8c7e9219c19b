/* Predictions compared with measurements, row by row: how far time and energy are off, by regime.
 * docs/estimate.md, "Validation", has the rules.
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

/* ---- predicting one measured row: a pass or a request of a model, or a single load of operations and bytes ---- */

/* predictor_init borrows the hardware; predictor_release closes the model that is kept open, since rows of one model
 * usually follow each other. */
struct predictor {
    const struct hardware *hardware; /* NULL: for predictor_count only */
    const char *model_word;          /* replaces the models that rows name; NULL: theirs */
    enum partition_fusion fusion;
    enum runtime_id runtime; /* with the fusion that it has */
    bool has_usual_runtime;  /* that of the row, or the default of the device */
    bool has_precision;      /* else that of the row, of the file, or the default of the device */
    enum precision precision;
    double host_launch_s; /* of the host; 0: not known; UNKNOWN: that of the row */
    struct model model;   /* the last one, if is_open */
    bool is_open;
};

struct prediction {
    double latency_s, joules;
    struct estimate_interval latency_range, joules_range; /* over those; UNKNOWN for single loads */
    enum estimate_bound regime;                           /* that most of the time is bound by */
    bool has_assumed_host; /* for which it waits, see struct runtime_host */
};

/* What a measured row ran; 0 where it does not say. */
struct measured_pass {
    const char *model; /* a file or a name */
    bool has_precision;
    enum precision precision;
    const char *runtime; /* as a file says it: "pytorch-graph", "eager"; NULL and others: unknown */
    double host_launch_s; /* of the host that launched it; 0: not known */
    struct graph_options setting;
    int64_t output_tokens; /* above 0: a whole request, prefill and decode */
};

void predictor_init(struct predictor *predictor, const struct hardware *hardware);
void predictor_release(struct predictor *predictor);

enum err predictor_predict(struct predictor *predictor, const struct measured_pass *pass,
                           struct prediction *out, struct error *why) MUST_USE;

/* Its operations and bytes, which do not depend on the device. */
enum err predictor_count(struct predictor *predictor, const struct measured_pass *pass,
                         double *flops, double *bytes, struct error *why) MUST_USE;

/* ---- the validation ---- */

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

/* The host's launch time by the rows that were predicted with an assumed one and wait for it: UNKNOWN if these are few. */
struct validate_host {
    size_t rows;
    double launch_s;
};
struct validate_host validate_host(const struct validation *validation);

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
