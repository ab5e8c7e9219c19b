/* Waiting for the end of a child that signals to us are meant for: a measured command, or a run of a sweep. */
#ifndef IPW_RUNNER_AWAIT_H
#define IPW_RUNNER_AWAIT_H

#include <stdbool.h>

struct child;
struct child_end;

/* The signals so far: the first asks the command to end, the second terminates it, the third kills it. */
enum { AWAIT_ASKED = 1, AWAIT_TERMINATED = 2, AWAIT_KILLED = 3 };

struct await {
    /* The child is ipw itself, which does that with its own command, and saves its run.  It gets what the terminal has
     * not sent it already; only a fourth signal kills it, with its command. */
    bool is_ipw;
    /* Called when the child still runs 2 s after a signal that did not kill it, once for each: `number` was the latest,
     * and there were `signals`. */
    void (*slow)(void *context, int number, unsigned signals);
    void *context;
};

/* Waits until the child has ended and, once it was terminated, every process that it started.  Returns the number of
 * the latest signal, or 0. */
int await_child(struct child *child, const struct await *await, struct child_end *end);

#endif
