#define _GNU_SOURCE
#include "port/thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"

enum err deadline_init(struct deadline *deadline)
{
    deadline->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    deadline->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (deadline->timer >= 0 && deadline->wake >= 0)
        return ERR_OK;
    enum err err = err_from_errno(errno);
    deadline_release(deadline);
    return err;
}

void deadline_release(struct deadline *deadline)
{
    if (deadline->timer >= 0)
        close(deadline->timer);
    if (deadline->wake >= 0)
        close(deadline->wake);
    *deadline = (struct deadline){-1, -1};
}

/* Empties the event descriptor; true when it had been poked. */
static bool drain(int fd)
{
    uint64_t count;
    return read(fd, &count, sizeof count) == (ssize_t)sizeof count;
}

bool deadline_wait(struct deadline *deadline, nanos at)
{
    if (at < 1)
        at = 1; /* zero would disarm the timer */
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / NS_PER_S), .tv_nsec = (long)(at % NS_PER_S)},
    };
    timerfd_settime(deadline->timer, TFD_TIMER_ABSTIME, &when, NULL);
    struct pollfd fds[2] = {
        {.fd = deadline->timer, .events = POLLIN},
        {.fd = deadline->wake, .events = POLLIN},
    };
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
    /* The timer needs no reading: setting it again clears it. */
    return (fds[1].revents & POLLIN) && drain(deadline->wake);
}

void deadline_poke(struct deadline *deadline)
{
    uint64_t one = 1;
    /* Fails only when the counter is full, and then the sleeper is awake already. */
    if (write(deadline->wake, &one, sizeof one) < 0)
        return;
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

void thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, nanos most)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    nanos at = (nanos)until.tv_sec * NS_PER_S + until.tv_nsec + most;
    until.tv_sec = (time_t)(at / NS_PER_S);
    until.tv_nsec = (long)(at % NS_PER_S);
    pthread_cond_timedwait(condition, lock, &until);
}
