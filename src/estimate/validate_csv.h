/* Measured rows of a CSV file, each with its prediction.  Three kinds, told by the columns: passes of models
 * (model, latency_s), subgraphs (lat_mean_ms), and single loads as `ipw estimate calibrate` reads them.
 * Nothing here keeps state. */
#ifndef IPW_ESTIMATE_VALIDATE_CSV_H
#define IPW_ESTIMATE_VALIDATE_CSV_H

#include "core/err.h"
#include "estimate/predictor.h"
#include "estimate/validate.h"

struct params;

/* Adds to *out the rows in which every column of `where` has its value; they must be of one device.
 * ERR_BAD_VALUE names file, line and column. */
enum err validate_csv(const char *path, const struct params *where, struct predictor *predictor,
                      struct validation *out, struct error *why) MUST_USE;

#endif
