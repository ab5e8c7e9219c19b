/* Threads, and waking them on absolute deadlines.  One thread waits on a struct deadline, any
 * thread may poke it. */
#ifndef IPW_PORT_THREAD_H
#define IPW_PORT_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct deadline {
    _Atomic uint32_t poked; /* the kernel waits on this word */
};

void deadline_init(struct deadline *deadline);

/* Sleeps until the monotonic time `at` (already past: returns at once) or until poked, before the
 * call or during it.  Returns true when poked. */
bool deadline_wait(struct deadline *deadline, nanos at);
void deadline_poke(struct deadline *deadline);

/* Starts a thread to which no signal is delivered: in somebody else's program they are for the
 * threads that expect them. */
enum err thread_start(pthread_t *thread, void *(*body)(void *), void *argument) MUST_USE;

/* Sleeps that long, whatever interrupts. */
void thread_sleep(nanos length);

/* Waits for the condition, at most about that long; may wake for nothing. */
void thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, nanos most);

/* Puts the calling thread before all ordinary ones, where that is allowed (root, CAP_SYS_NICE,
 * RLIMIT_RTPRIO), so that a busy machine does not make it late; processes that it starts stay ordinary.
 * For threads that sleep nearly all the time. */
void thread_hurry(void);

/* Names the calling thread (15 bytes) and moves it to a CPU (-1: leave it); a CPU that cannot be
 * had (cgroup, offline) is not an error, only slower. */
void thread_settle(const char *name, int cpu);

#endif
