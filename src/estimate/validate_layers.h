/* The settings that `ipw layers` measured (its JSON), each with its prediction.  Nothing here keeps state. */
#ifndef IPW_ESTIMATE_VALIDATE_LAYERS_H
#define IPW_ESTIMATE_VALIDATE_LAYERS_H

#include "core/err.h"
#include "estimate/predictor.h"
#include "estimate/validate.h"

/* Adds to *out.  ERR_BAD_VALUE when the file is none of `ipw layers`. */
enum err validate_layers(const char *path, struct predictor *predictor, struct validation *out,
                         struct error *why) MUST_USE;

#endif
