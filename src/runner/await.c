#include "runner/await.h"

#include <signal.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/units.h"
#include "port/proc.h"

static const nanos PATIENCE = 2 * NS_PER_S;

static bool must_kill(const struct await *await, unsigned signals)
{
    return signals > AWAIT_KILLED || (signals == AWAIT_KILLED && !await->is_ipw);
}

/* The terminal sends a signal to its foreground process group, which a command shares with us unless it has left it. */
static void pass_on(const struct child *child, const struct await *await, int number,
                    unsigned signals, bool from_terminal)
{
    if (must_kill(await, signals))
        child_signal_all(child, SIGKILL);
    else if (!await->is_ipw && signals == AWAIT_TERMINATED)
        child_signal_all(child, SIGTERM);
    else if (from_terminal && child_is_in_our_group(child))
        return;
    else if (await->is_ipw)
        kill(child->pid, number);
    else
        child_signal_group(child, number);
}

/* As child_wait.  A shell that SIGTERM ends may leave a program behind that ignores it.  A fourth signal gives up: a
 * process that hangs in a driver cannot be killed. */
static int await_event(struct child *child, const struct await *await, unsigned signals,
                       nanos until, struct child_end *end, bool *from_terminal)
{
    bool with_orphans = !await->is_ipw && (signals == AWAIT_TERMINATED || signals == AWAIT_KILLED);
    int event = child->pid > 0 ? child_wait(child, end, until, from_terminal) : WAIT_ENDED;
    return event == WAIT_ENDED && with_orphans ? proc_await_orphans(until) : event;
}

int await_child(struct child *child, const struct await *await, struct child_end *end)
{
    int latest = 0;
    unsigned signals = 0;
    nanos until = INT64_MAX;
    for (;;) {
        bool from_terminal = false;
        int event = await_event(child, await, signals, until, end, &from_terminal);
        if (event == WAIT_ENDED)
            return latest;
        until = clock_now() + PATIENCE;
        if (event != WAIT_TIMEOUT) {
            latest = event;
            signals++;
            pass_on(child, await, latest, signals, from_terminal);
        } else if (must_kill(await, signals)) {
            child_signal_all(child, SIGKILL); /* a process may have been started meanwhile */
        } else {
            await->slow(await->context, latest, signals);
            until = INT64_MAX;
        }
    }
}
