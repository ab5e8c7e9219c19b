/* What the estimator says of a model that was measured: its energy and time for the same work, on this machine where the
 * catalog has it, else on a device that it has. */
#ifndef IPW_RUNNER_PREDICTION_H
#define IPW_RUNNER_PREDICTION_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct hardware;

/* The work of one query. */
struct predicted_work {
    const char *model; /* a file that the estimator reads */
    double prompt_tokens, output_tokens; /* of a language model; else UNKNOWN */
    unsigned batch;                      /* samples of a pass; 0: one */
    double passes;                       /* of the model; UNKNOWN: one */
};

struct prediction {
    double joules, plus_minus, seconds;
};

/* This machine's entry of the catalog, or that of a common GPU.  The caller releases it. */
enum err prediction_device(struct hardware *out, struct error *why) MUST_USE;

/* ERR_UNSUPPORTED, with the reason, for what cannot be estimated. */
enum err prediction_make(const struct predicted_work *work, const struct hardware *device,
                         struct prediction *out, struct error *why) MUST_USE;

#endif
