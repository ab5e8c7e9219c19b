/* Measured runs as rows to calibrate with and to validate against: the queries of a run directory of `ipw
 * profile`, or the windows and settings of a result of `ipw layers --json`.  Nothing is owned. */
#ifndef IPW_ESTIMATE_MEASUREMENTS_H
#define IPW_ESTIMATE_MEASUREMENTS_H

#include "core/err.h"
#include "estimate/calibrate_rows.h"
#include "estimate/predictor.h"
#include "estimate/validate.h"

/* Adds rows to calibrate with; operations and bytes are counted from the model.  Of a run directory, the queries
 * that ran alone; of a layers result, the undisturbed windows and the idle ones. */
enum err measurements_calibrate(const char *path, struct predictor *counter,
                                struct calibrate_rows *rows, struct error *why) MUST_USE;

/* Predicts and adds all queries of a run directory, all settings of a layers result (*.json), or the rows of a
 * CSV file that `where` selects. */
enum err measurements_validate(const char *path, const struct params *where,
                               struct predictor *predictor, struct validation *validation,
                               struct error *why) MUST_USE;

#endif
