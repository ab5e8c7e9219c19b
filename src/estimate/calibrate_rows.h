/* Measured windows that a calibration is fitted to: so many operations and bytes took so long and so many
 * joules.  docs/estimate.md, "Calibration", has the columns of the CSV form.
 *
 * A zeroed struct calibrate_rows is empty; calibrate_rows_release takes it back. */
#ifndef IPW_ESTIMATE_CALIBRATE_ROWS_H
#define IPW_ESTIMATE_CALIBRATE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "catalog/precision.h"

enum calibrate_kind {
    CALIBRATE_LOAD,
    CALIBRATE_IDLE,   /* nothing ran: told beside the fit, not part of it */
    CALIBRATE_LAUNCH, /* kernels that do next to nothing, one after the other */
    CALIBRATE_GRAPH,  /* the same, handed over as one graph */
};

enum calibrate_unit {                /* of the device, that the operations ran on */
                      CALIBRATE_ANY, /* it has one kind, or nobody says */
                      CALIBRATE_MATRIX,
                      CALIBRATE_VECTOR,
                      CALIBRATE_UNITS
};
const char *calibrate_unit_name(enum calibrate_unit unit); /* "" for CALIBRATE_ANY */

struct calibrate_row {
    enum calibrate_kind kind;
    enum precision precision;
    enum calibrate_unit unit;
    char label[64];             /* "matmul 64x64x64" */
    double flops, bytes;        /* of one repetition */
    double latency_s, energy_j; /* of one repetition; energy UNKNOWN: not measured */
    double window_s;            /* that energy stands on; UNKNOWN: one repetition */
    double updates;             /* of the sensor in it; UNKNOWN: not told */
    double kernels;             /* of CALIBRATE_LAUNCH and CALIBRATE_GRAPH */
    bool is_estimated;          /* energy by a model, not by a meter */
    size_t line;                /* in its file; 0: none */
};

struct calibrate_rows {
    struct calibrate_row *items;
    size_t count, capacity;
    char hardware[96]; /* of the first row that says; "": none does */
};

enum err calibrate_rows_add(struct calibrate_rows *rows, const struct calibrate_row *row,
                            struct error *why) MUST_USE;
void calibrate_rows_release(struct calibrate_rows *rows);

/* Adds what a CSV file has.  ERR_BAD_VALUE names file, line and column. */
enum err calibrate_rows_read(const char *path, struct calibrate_rows *rows, struct error *why)
    MUST_USE;

#endif
