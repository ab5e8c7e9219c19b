/* The machine at rest, and awake: threads that spin as an engine's do while they wait for one another,
 * with no work to do.  Both are windows like the others, with the model loaded. */
#ifndef IPW_RUNNER_LAYERS_REST_H
#define IPW_RUNNER_LAYERS_REST_H

#include <stdatomic.h>

#include "core/err.h"
#include "runner/layers.h"

struct session;

/* threads 0: nothing runs; otherwise so many spin.  *window gets the energy, *out the mean power.
 * ERR_INTERRUPTED when *cancel turned true. */
enum err rest_measure(struct session *session, double length_s, unsigned threads,
                      const atomic_bool *cancel, struct layers_window *window,
                      struct layers_rest *out, struct error *why) MUST_USE;

/* The longest update period of the sensors whose joules are in the ledger's total; 0 when unknown. */
double rest_update_period(struct session *session, const struct ledger *ledger);

#endif
