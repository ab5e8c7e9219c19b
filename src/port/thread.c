#define _GNU_SOURCE
#include "port/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"

void deadline_init(struct deadline *deadline)
{
    atomic_init(&deadline->poked, 0);
}

/* Sleeps of a thread end up to its slack late, 50 us unless it says otherwise. */
static void wake_in_time(void)
{
    static _Thread_local bool said;
    if (!said)
        prctl(PR_SET_TIMERSLACK, 1UL);
    said = true;
}

/* One call of the kernel a sleep: a timer descriptor and a second one to be poked through, polled
 * together, cost twice the processor time of a thousand wake-ups a second. */
bool deadline_wait(struct deadline *deadline, nanos at)
{
    if (at < 0)
        at = 0; /* which the kernel takes for past, and a negative time for an error */
    struct timespec until = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)};
    wake_in_time();
    while (atomic_exchange(&deadline->poked, 0) == 0) {
        if (syscall(SYS_futex, &deadline->poked, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL,
                    FUTEX_BITSET_MATCH_ANY) < 0 &&
            errno != EINTR && errno != EAGAIN)
            return false;
    }
    return true;
}

void deadline_poke(struct deadline *deadline)
{
    atomic_store(&deadline->poked, 1);
    syscall(SYS_futex, &deadline->poked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Faults of a thread's own stay with it. */
enum err thread_start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    static const int OWN[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        sigdelset(&blocked, OWN[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int number = pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err_from_errno(number);
}

void thread_sleep(nanos length)
{
    struct timespec left = {.tv_sec = (time_t)(length / NS_PER_S),
                            .tv_nsec = (long)(length % NS_PER_S)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

void thread_settle(const char *name, int cpu)
{
    char short_name[16];
    str_copy(short_name, sizeof short_name, name);
    pthread_setname_np(pthread_self(), short_name);
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void thread_hurry(void)
{
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
}

void thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, nanos most)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    nanos at = (nanos)until.tv_sec * NS_PER_S + until.tv_nsec + most;
    until.tv_sec = (time_t)(at / NS_PER_S);
    until.tv_nsec = (long)(at % NS_PER_S);
    pthread_cond_timedwait(condition, lock, &until);
}
