/* The windows that `ipw layers` measured (its JSON) as rows to calibrate by: operations and bytes are counted
 * from the model.  Nothing here keeps state. */
#ifndef IPW_ESTIMATE_CALIBRATE_LAYERS_H
#define IPW_ESTIMATE_CALIBRATE_LAYERS_H

#include "core/err.h"
#include "estimate/calibrate_rows.h"
#include "estimate/predictor.h"

/* Adds the undisturbed windows and those at rest.  ERR_BAD_VALUE when the file is none of `ipw layers`. */
enum err calibrate_layers(const char *path, struct predictor *counter, struct calibrate_rows *rows,
                          struct error *why) MUST_USE;

#endif
