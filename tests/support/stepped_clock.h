/* A clock that moves only when nobody has anything to do: while every thread waits for a time or for another thread, it
 * goes to the earliest time that one of them waits for, and that thread continues; of several, the one that has waited
 * longest.  Hours pass in a moment, and a busy machine changes no result.
 *
 * It sees the threads that thread_start has started after stepped_clock_start, the caller of that, and what they do by
 * the functions of port/thread.h.  A thread in any other call (a lock, a pipe, pthread_join) counts as running, and time
 * stands still until that returns: correct, unless what it waits for takes time.  So join with thread_join a thread that
 * sleeps.  Where sockets or other processes take part, use support/shifted_clock.h. */
#ifndef TESTS_SUPPORT_STEPPED_CLOCK_H
#define TESTS_SUPPORT_STEPPED_CLOCK_H

#include "core/units.h"

/* Replaces the clocks and the waits of the process, which has no other threads then. */
void stepped_clock_start(void);

/* Restores them, after all threads have ended: one that still waits for a time fails the test. */
void stepped_clock_stop(void);

/* The monotonic clock, for a test that installs a source of its own on top (clock_replace).  Each reading takes 100 ns,
 * as of a real clock: what happens between two of them takes time, too. */
nanos stepped_clock_now(void);

#endif
