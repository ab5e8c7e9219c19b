/* Measured windows for a calibration: operations and bytes with their time and energy.  docs/estimate.md,
 * "Calibration", has the columns of the CSV form.
 *
 * Ownership: a zeroed struct calibrate_rows is empty; calibrate_rows_release frees it. */
#ifndef IPW_ESTIMATE_CALIBRATE_ROWS_H
#define IPW_ESTIMATE_CALIBRATE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "catalog/precision.h"

struct predictor;
struct text;

enum calibrate_kind {
    CALIBRATE_LOAD,
    CALIBRATE_IDLE,   /* idle: reported, not part of the fit */
    CALIBRATE_LAUNCH, /* empty kernels, launched one by one */
    CALIBRATE_GRAPH,  /* the same, launched as one graph */
    CALIBRATE_CACHE,  /* bytes out of a cache: its bandwidth, not part of the fit */
    CALIBRATE_HOST, /* a small operator in PyTorch's eager mode: its host time, not part of the fit */
};

/* The units of the device that the operations ran on. */
enum calibrate_unit {
    CALIBRATE_ANY, /* it has one kind, or the kind is unknown */
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
    double flops, bytes;        /* per repetition */
    double latency_s, energy_j; /* per repetition; energy UNKNOWN: not measured */
    double window_s;            /* over which energy was measured; UNKNOWN: one repetition */
    double updates;             /* sensor updates in it; UNKNOWN: not counted */
    double kernels;             /* for CALIBRATE_LAUNCH and CALIBRATE_GRAPH */
    double held;                /* working set of CALIBRATE_CACHE */
    bool is_estimated;          /* energy estimated by a model, not measured */
    size_t line;                /* in its file; 0: none */
};

struct calibrate_rows {
    struct calibrate_row *items;
    size_t count, capacity;
    char hardware[96]; /* from the first row that names it; "": none does */
};

void calibrate_rows_add(struct calibrate_rows *rows, const struct calibrate_row *row);
void calibrate_rows_release(struct calibrate_rows *rows);

/* Adds the rows of a CSV file.  ERR_BAD_VALUE names file, line and column. */
enum err calibrate_rows_read(const char *path, struct calibrate_rows *rows, struct error *why)
    MUST_USE;

/* Appends them as CSV that calibrate_rows_read reads. */
void calibrate_rows_csv(const struct calibrate_rows *rows, const char *hardware, struct text *out);

/* ---- from measured runs: measurements.c ---- */

/* Adds rows for calibration; operations and bytes are counted from the model.  From a run directory, the queries that
 * ran alone; from a layers result, the undisturbed windows and the idle ones. */
enum err measurements_calibrate(const char *path, struct predictor *counter,
                                struct calibrate_rows *rows, struct error *why) MUST_USE;

#endif
