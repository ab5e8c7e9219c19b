/* Predictions against measurements, row by row: how far time and joules are off, and in which regime.
 * docs/estimate.md, "Validation", has the rules.
 *
 * A zeroed struct validation is empty; validation_release takes it back. */
#ifndef IPW_ESTIMATE_VALIDATE_H
#define IPW_ESTIMATE_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "estimate/pass_estimate.h"
#include "graph/reader.h"

#define VALIDATE_ENERGY_LEAST_S 1e-3 /* joules of less are not compared: no meter resolves them */

struct validate_row {
    char label[112];                 /* "resnet50 fp16 batch 8" */
    double measured_s, measured_j;   /* UNKNOWN: not measured, or too short for joules */
    double window_s;                 /* that the joules stand on; UNKNOWN: measured_s */
    double predicted_s, predicted_j; /* UNKNOWN: the device states no figure for it */
    enum estimate_bound regime;      /* of the prediction: what most of its time is bound by */
};

struct validation {
    struct validate_row *rows;
    size_t count, capacity;
    size_t short_rows; /* whose joules were not compared */
    bool is_estimated; /* some measured joules are a model's */
    char hardware[96]; /* as the measurements call it; "": they do not */
    size_t other_rows; /* left out, as was asked for */
};

enum err validation_add(struct validation *validation, const struct validate_row *row,
                        struct error *why) MUST_USE;
void validation_release(struct validation *validation);

/* Mean of |predicted / measured - 1|, and of predicted / measured - 1; UNKNOWN over no row. */
struct validate_error {
    size_t rows;
    double mape, bias;
};
struct validate_sums {
    size_t rows;
    struct validate_error latency, energy;
};
/* Of one regime, or with BOUND_COUNT of all. */
struct validate_sums validate_sum(const struct validation *validation, enum estimate_bound regime);

/* Are time and joules, over all rows, off by no more than `most`?  Of nothing compared nobody knows. */
enum validate_verdict { VALIDATE_UNKNOWN, VALIDATE_PASS, VALIDATE_FAIL };
enum validate_verdict validate_verdict(const struct validation *validation, double most);

#endif
