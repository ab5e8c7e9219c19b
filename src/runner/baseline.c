#include "runner/baseline.h"

#include "core/clock.h"
#include "port/proc.h"
#include "sampler/sampler.h"
#include "sampler/session.h"

enum err baseline_measure(struct session *session, double idle_s, struct baseline *out,
                          int *signal_number)
{
    struct ledger ledger;
    sampler_mark(session->sampler);
    nanos from = clock_now();
    *signal_number = proc_poll_signal(from_seconds(idle_s));
    nanos to = clock_now();
    if (*signal_number)
        return ERR_INTERRUPTED;
    sampler_settle(session->sampler, to);
    enum err err = ledger_take(session->sampler, from, to, NULL, &ledger);
    if (err)
        return err;
    err = baseline_from(&ledger, out);
    ledger_release(&ledger);
    return err;
}
