/* The completed queries of a run directory, each as a request that can be predicted or counted.  Everything
 * that is given out lasts for the call alone. */
#ifndef IPW_CLI_ESTIMATE_QUERIES_H
#define IPW_CLI_ESTIMATE_QUERIES_H

#include <stdbool.h>

#include "core/err.h"
#include "estimate/predictor.h"

struct estimate_query {
    struct measured_pass question; /* prompt and answer */
    char label[112];
    double latency_s, joules; /* UNKNOWN: not measured */
    bool is_estimated;        /* the joules are a model's */
    bool is_short;            /* fewer than ten updates of a sensor */
    bool is_alone;            /* no other request ran beside it */
};

/* Stops when take returns anything but ERR_OK, and returns that. */
enum err estimate_queries(const char *directory,
                          enum err (*take)(void *context, const struct estimate_query *query,
                                           struct error *why),
                          void *context, struct error *why) MUST_USE;

#endif
