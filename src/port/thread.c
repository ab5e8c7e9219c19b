#define _GNU_SOURCE
#include "port/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"

enum { SHORT_SLICE = 100 * 1000 }; /* ns; the kernel's minimum */

/* ---- waiting ---- */

void deadline_init(struct deadline *deadline)
{
    atomic_init(&deadline->woken, 0);
}

/* The kernel may delay wake-ups by the timer slack, 50 us by default. */
static void set_timer_slack(void)
{
    static _Thread_local bool is_set;
    if (!is_set)
        prctl(PR_SET_TIMERSLACK, 1UL);
    is_set = true;
}

/* One system call per sleep: polling a timerfd and an eventfd costs twice the CPU time at a thousand wake-ups a
 * second. */
static bool kernel_wait(_Atomic uint32_t *woken, nanos at)
{
    if (at < 0)
        at = 0; /* 0 is in the past; a negative time would be an error */
    struct timespec until = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
    set_timer_slack();
    while (atomic_exchange(woken, 0) == 0) {
        if (syscall(SYS_futex, woken, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL,
                    FUTEX_BITSET_MATCH_ANY) < 0 &&
            errno != EINTR && errno != EAGAIN)
            return false;
    }
    return true;
}

static void kernel_wake(_Atomic uint32_t *woken)
{
    atomic_store(woken, 1);
    syscall(SYS_futex, woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void kernel_sleep(nanos length)
{
    struct timespec left = {.tv_sec = (time_t)(length / NS_PER_S),
                            .tv_nsec = (long)(length % NS_PER_S)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static struct timespec real_after(nanos limit)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    nanos at = (nanos)now.tv_sec * NS_PER_S + now.tv_nsec + (limit > 0 ? limit : 0);
    return (struct timespec){.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
}

static void kernel_wait_condition(pthread_cond_t *condition, pthread_mutex_t *lock, nanos limit)
{
    const struct timespec until = real_after(limit);
    pthread_cond_timedwait(condition, lock, &until);
}

static void kernel_wake_condition(pthread_cond_t *condition)
{
    pthread_cond_broadcast(condition);
}

static int kernel_start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    return pthread_create(thread, NULL, body, argument);
}

static bool kernel_join(pthread_t thread, nanos until)
{
    const struct timespec limit = real_after(until - clock_now());
    return pthread_timedjoin_np(thread, NULL, &limit) == 0;
}

static const struct thread_waits KERNEL = {
    .start = kernel_start,
    .join = kernel_join,
    .sleep = kernel_sleep,
    .wait = kernel_wait,
    .wake = kernel_wake,
    .wait_condition = kernel_wait_condition,
    .wake_condition = kernel_wake_condition,
};
static const struct thread_waits *current = &KERNEL;

const struct thread_waits *thread_replace_waits(const struct thread_waits *waits)
{
    const struct thread_waits *before = current;
    current = waits ? waits : &KERNEL;
    return before;
}

bool deadline_wait(struct deadline *deadline, nanos at)
{
    return current->wait(&deadline->woken, at);
}

void deadline_wake(struct deadline *deadline)
{
    current->wake(&deadline->woken);
}

void thread_sleep(nanos length)
{
    current->sleep(length);
}

void thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, nanos limit)
{
    current->wait_condition(condition, lock, limit);
}

void thread_wake(pthread_cond_t *condition)
{
    current->wake_condition(condition);
}

/* ---- start and end ---- */

/* Synchronous signals stay enabled: they belong to the thread that causes them. */
enum err thread_start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < COUNT_OF(FAULTS); i++)
        sigdelset(&blocked, FAULTS[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int number = current->start(thread, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err_from_errno(number);
}

static atomic_bool any_left;

bool thread_join(pthread_t thread, nanos until)
{
    if (current->join(thread, until))
        return true;
    pthread_detach(thread);
    atomic_store(&any_left, true);
    return false;
}

bool thread_run(void *(*body)(void *), void *context, nanos limit)
{
    pthread_t thread;
    nanos until = clock_now() + limit;
    if (thread_start(&thread, body, context) == ERR_OK)
        return thread_join(thread, until);
    body(context); /* without a thread there is no limit */
    return true;
}

bool thread_any_abandoned(void)
{
    return atomic_load(&any_left);
}

/* ---- the calling thread ---- */

nanos thread_cpu(void)
{
    struct timespec used = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (nanos)used.tv_sec * NS_PER_S + used.tv_nsec;
}

int thread_cpu_count(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? count : 1;
}

void thread_name(const char *name, int cpu)
{
    char short_name[16];
    chars_copy(short_name, name);
    pthread_setname_np(pthread_self(), short_name);
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void thread_set_realtime(void)
{
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
}

/* The kernel's struct sched_attr, which libc does not declare. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* A batch thread does not preempt others when it wakes.  From Linux 6.6 on, a thread that wakes waits until the running
 * one has used its slice, milliseconds, whatever their weights: a shorter slice (from 6.12 on; earlier kernels ignore
 * it) makes way sooner. */
void thread_set_background(int nice)
{
    id_t self = (id_t)syscall(SYS_gettid);
    int now = getpriority(PRIO_PROCESS, self);
    const struct scheduling wanted = {.size = sizeof wanted,
                                      .policy = SCHED_BATCH,
                                      .nice = now > nice ? now : nice,
                                      .runtime = SHORT_SLICE};
    if (sched_getscheduler(0) != SCHED_OTHER) /* realtime, or already lower */
        return;
    if (syscall(SYS_sched_setattr, 0, &wanted, 0U))
        setpriority(PRIO_PROCESS, self, wanted.nice);
}

/* A thread with a shorter slice than the running one's does not wait for the end of that. */
void thread_set_responsive(void)
{
    const struct scheduling wanted = {.size = sizeof wanted,
                                      .policy = SCHED_OTHER,
                                      .nice = getpriority(PRIO_PROCESS, 0),
                                      .runtime = SHORT_SLICE};
    if (sched_getscheduler(0) == SCHED_OTHER)
        syscall(SYS_sched_setattr, 0, &wanted, 0U);
}
