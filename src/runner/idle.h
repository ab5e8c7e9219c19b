/* Watching the machine at rest: what its devices draw when nothing is asked of them. */
#ifndef IPW_RUNNER_IDLE_H
#define IPW_RUNNER_IDLE_H

#include "attribute/ledger.h"
#include "core/err.h"

struct session;

/* Release *out as a baseline.  ERR_INTERRUPTED, with the signal's number in *signal_number, when one
 * came first. */
enum err idle_measure(struct session *session, double idle_s, struct baseline *out,
                      int *signal_number) MUST_USE;

#endif
