/* Virtual time, shared by all processes of one command: it stands still while any of their threads runs, and when all
 * wait it jumps to the earliest time that one of them waits for.  Two runs of a command then see the same times, however
 * busy the machine is.  Threads tell what they wait for (virtual_clock.c); tests/tools/virtual_time.c moves the time. */
#ifndef IPW_FAKES_VIRTUAL_CLOCK_H
#define IPW_FAKES_VIRTUAL_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

enum { WAITERS_MAX = 512, PROCESSES_MAX = 256 };

/* The clocks at the start, in seconds. */
enum { VIRTUAL_MONOTONIC_S = 1000, VIRTUAL_WALL_S = 1800000000 };

/* A thread. */
struct waiter {
    _Atomic int thread; /* its id; 0: free */
    _Atomic int is_waiting;
    _Atomic int64_t until;   /* ns since the start */
    _Atomic int is_released; /* the time has come */
    _Atomic unsigned seen;   /* the last round in which it found nothing to do */
};

struct virtual_time {
    _Atomic int64_t now;    /* ns since the start */
    _Atomic unsigned round; /* of asking every waiter whether it has nothing to do */
    _Atomic unsigned moves; /* waits begun and ended, processes born */
    _Atomic int processes[PROCESSES_MAX];
    struct waiter waiters[WAITERS_MAX];
};

#endif
