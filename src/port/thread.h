/* Threads, and sleeping until absolute deadlines.  One thread waits on a struct deadline, any thread may wake it. */
#ifndef IPW_PORT_THREAD_H
#define IPW_PORT_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct deadline {
    _Atomic uint32_t woken; /* a futex */
};

void deadline_init(struct deadline *deadline);

/* Sleeps until the monotonic time `at` (in the past: returns at once) or until woken, before the call or during it.
 * Returns true when woken. */
bool deadline_wait(struct deadline *deadline, nanos at);
void deadline_wake(struct deadline *deadline);

/* Starts a thread with all signals blocked: in a host program they are for the threads that expect them. */
enum err thread_start(pthread_t *thread, void *(*body)(void *), void *argument) MUST_USE;

/* Waits for its end until the monotonic time `until`.  False: it is still running and is abandoned; the memory it
 * uses must never be freed. */
bool thread_join(pthread_t thread, nanos until) MUST_USE;

/* Runs body(context) in a thread and waits for its end, at most `limit`.  False: the thread is abandoned, with the
 * context. */
bool thread_run(void *(*body)(void *), void *context, nanos limit) MUST_USE;

/* Whether a thread was abandoned: exit handlers of libraries may wait for a lock that it holds. */
bool thread_any_abandoned(void);

/* Sleeps that long, even when interrupted. */
void thread_sleep(nanos length);

/* CPU time of the calling thread. */
nanos thread_cpu(void);

/* The number of CPUs on which it may run: 1 or more. */
int thread_cpu_count(void);

/* Waits for the condition, at most about `limit`; may wake spuriously.  thread_wake ends the waits of all threads. */
void thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, nanos limit);
void thread_wake(pthread_cond_t *condition);

/* Gives the calling thread real-time priority where that is allowed (root, CAP_SYS_NICE, RLIMIT_RTPRIO), so that a
 * busy machine does not make it late; processes that it starts do not inherit it.  For threads that sleep nearly all
 * the time. */
void thread_set_realtime(void);

/* For background work: the calling thread does not preempt others when it wakes, and makes way for them.  With a nice
 * value of 0 it still gets its share of a busy CPU, so that its work cannot fall behind; with 10, a tenth of that. */
void thread_set_background(int nice);

/* For a thread that answers requests and never runs long: it preempts others when it wakes, without a higher priority
 * (from Linux 6.12 on; earlier kernels ignore it). */
void thread_set_responsive(void);

/* Names the calling thread (15 bytes) and pins it to a CPU (-1: does not); a CPU that is not available (cgroup,
 * offline) is not an error, only slower. */
void thread_name(const char *name, int cpu);

/* ---- replaceable waits ---- */

/* What the functions above do, behind a table, as the clocks are (core/clock.h): a test that replaces both moves time,
 * and each thread that waits for a time sees it (tests/support/virtual_clock.h).  Each row has the contract of the
 * function after it. */
struct thread_waits {
    int (*start)(pthread_t *thread, void *(*body)(void *), void *argument); /* pthread_create */
    bool (*join)(pthread_t thread, nanos until);                            /* thread_join */
    void (*sleep)(nanos length);                                            /* thread_sleep */
    bool (*wait)(_Atomic uint32_t *woken, nanos at);                        /* deadline_wait */
    void (*wake)(_Atomic uint32_t *woken);                                  /* deadline_wake */
    void (*wait_condition)(pthread_cond_t *condition, pthread_mutex_t *lock,
                           nanos limit);               /* thread_wait */
    void (*wake_condition)(pthread_cond_t *condition); /* thread_wake */
};

/* Installs other waits for the whole process, and returns those before; NULL restores the kernel's.  For tests, while no
 * other thread runs. */
const struct thread_waits *thread_replace_waits(const struct thread_waits *waits);

#endif
