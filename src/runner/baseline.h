/* Measuring idle power: the mean power of each device while the machine does nothing. */
#ifndef IPW_RUNNER_BASELINE_H
#define IPW_RUNNER_BASELINE_H

#include "attribute/ledger.h"
#include "core/err.h"

struct session;

/* Fills *out, to be released with baseline_release.  ERR_INTERRUPTED, with the signal's number in
 * *signal_number, when one came first. */
enum err baseline_measure(struct session *session, double idle_s, struct baseline *out,
                          int *signal_number) MUST_USE;

#endif
