/* LD_PRELOAD puts this between a program and the C library: its clocks show the virtual time of the file named by
 * IPW_FAKE_TIME, and a wait with a limit ends when that time has come (see virtual_clock.h).  CPU time is real.
 *
 * A wait for an event is a loop of short real waits.  After each of them the thread notes that it has nothing to do in
 * this round. */
#define _GNU_SOURCE
#include "virtual_clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { CONDITIONS = 1024 };

static const int64_t SECOND = 1000000000;
static const struct timespec SLICE = {.tv_nsec = 100000};

static struct virtual_time *shared;
static _Thread_local struct waiter *own;
static _Atomic unsigned wakes[CONDITIONS]; /* of condition variables, by a hash of the address */

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static long raw(long number, long a, long b, long c, long d, long e, long f)
{
    static long (*call)(long, ...);
    if (!call)
        call = (long (*)(long, ...))next("syscall");
    return call(number, a, b, c, d, e, f);
}

static void add_process(int process)
{
    for (int i = 0; i < PROCESSES_MAX; i++) {
        int none = 0;
        if (shared->processes[i] == process ||
            atomic_compare_exchange_strong(&shared->processes[i], &none, process))
            break;
    }
    shared->moves++;
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("IPW_FAKE_TIME");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        abort();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        abort();
    close(fd);
    add_process(getpid());
}

/* ---- clocks ---- */

static int64_t zero_of(clockid_t clock)
{
    return (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? VIRTUAL_WALL_S
                                                                      : VIRTUAL_MONOTONIC_S) *
           SECOND;
}

static bool is_virtual(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
           clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_REALTIME_COARSE ||
           clock == CLOCK_MONOTONIC_COARSE;
}

static struct timespec as_timespec(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

static int64_t as_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * SECOND + t->tv_nsec;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (!shared || !is_virtual(clock))
        return (int)raw(SYS_clock_gettime, clock, (long)out, 0, 0, 0, 0);
    *out = as_timespec(zero_of(clock) + shared->now);
    return 0;
}

EXPORT time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

EXPORT int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

/* ---- waits ---- */

static struct waiter *find_waiter(void)
{
    int self = (int)raw(SYS_gettid, 0, 0, 0, 0, 0, 0);
    for (int i = 0; !own && i < WAITERS_MAX; i++)
        if (shared->waiters[i].thread == self) /* of a thread that was killed */
            own = &shared->waiters[i];
    for (int i = 0; !own && i < WAITERS_MAX; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&shared->waiters[i].thread, &none, self))
            own = &shared->waiters[i];
    }
    if (!own)
        abort();
    return own;
}

static void wait_begin(int64_t until)
{
    struct waiter *w = find_waiter();
    w->until = until;
    w->is_released = 0;
    w->seen = 0;
    w->is_waiting = 1;
    shared->moves++;
}

static void wait_end(void)
{
    own->is_waiting = 0;
    shared->moves++;
}

/* Notes that the event did not occur until now; false if the time has come.  The round is that before the slice in
 * which it did not occur. */
static bool goes_on(unsigned round)
{
    own->seen = round;
    return !own->is_released;
}

static int64_t until_after(int64_t length)
{
    return shared->now + (length > 0 ? length : 0);
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *length,
                           struct timespec *left)
{
    (void)left; /* not interrupted: programs block their signals in threads that sleep */
    wait_begin(flags & TIMER_ABSTIME ? as_ns(length) - zero_of(clock) : until_after(as_ns(length)));
    unsigned round = shared->round;
    while (goes_on(round)) {
        round = shared->round;
        raw(SYS_futex, (long)&own->is_released, FUTEX_WAIT, 0, (long)&SLICE, 0, 0);
    }
    wait_end();
    return 0;
}

/* Lets the threads run that this one has started or woken, until they wait: which of them is first does not depend on
 * the machine. */
static void let_others_run(void)
{
    static const struct timespec NONE;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &NONE, NULL);
}

EXPORT int nanosleep(const struct timespec *length, struct timespec *left)
{
    return clock_nanosleep(CLOCK_MONOTONIC, 0, length, left);
}

EXPORT int usleep(useconds_t length)
{
    struct timespec t = as_timespec((int64_t)length * 1000);
    return nanosleep(&t, NULL);
}

static int sliced_poll(struct pollfd *fds, nfds_t count, const struct timespec *slice,
                       const sigset_t *mask)
{
    struct timespec t = *slice; /* the system call changes it */
    return (int)raw(SYS_ppoll, (long)fds, (long)count, (long)&t, (long)mask, _NSIG / 8, 0);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                 const sigset_t *mask)
{
    int n = 0;
    if (!limit)
        return (int)raw(SYS_ppoll, (long)fds, (long)count, 0, (long)mask, _NSIG / 8, 0);
    if (as_ns(limit) == 0)
        return sliced_poll(fds, count, limit, mask);
    wait_begin(until_after(as_ns(limit)));
    unsigned round;
    do {
        round = shared->round;
        n = sliced_poll(fds, count, &SLICE, mask);
    } while (n == 0 && goes_on(round));
    int code = errno;
    wait_end();
    errno = code;
    return n;
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int ms)
{
    struct timespec limit = as_timespec((int64_t)ms * 1000000);
    return ppoll(fds, count, ms < 0 ? NULL : &limit, NULL);
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    int n = poll(&polled, 1, ms); /* an epoll descriptor is readable when it has events */
    return n > 0 ? (int)raw(SYS_epoll_pwait, fd, (long)events, max, 0, 0, _NSIG / 8) : n;
}

EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                        const struct timespec *restrict limit)
{
    static const struct timespec AT_ONCE;
    long number;
    if (!limit || as_ns(limit) == 0)
        return (int)raw(SYS_rt_sigtimedwait, (long)set, (long)info, (long)(limit ? &AT_ONCE : NULL),
                        _NSIG / 8, 0, 0);
    wait_begin(until_after(as_ns(limit)));
    unsigned round;
    do {
        round = shared->round;
        number = raw(SYS_rt_sigtimedwait, (long)set, (long)info, (long)&SLICE, _NSIG / 8, 0, 0);
    } while (number < 0 && errno == EAGAIN && goes_on(round));
    int code = errno;
    wait_end();
    errno = code;
    return (int)number;
}

/* The monotonic time of a futex wait by deadline. */
EXPORT long syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (!shared || number != SYS_futex || !a[3] || (a[1] & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET) {
        long result = raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (shared && number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE)
            let_others_run();
        return result;
    }
    const struct timespec *deadline;
    memcpy(&deadline, &a[3], sizeof deadline);
    wait_begin(as_ns(deadline) - zero_of(CLOCK_MONOTONIC));
    unsigned round;
    long code;
    do {
        round = shared->round;
        code = raw(SYS_futex, a[0], (a[1] & FUTEX_PRIVATE_FLAG) | FUTEX_WAIT, a[2], (long)&SLICE, 0,
                   0);
    } while (code < 0 && errno == ETIMEDOUT && goes_on(round));
    int reason = errno;
    wait_end();
    errno = reason;
    return code;
}

/* ---- condition variables ---- */

static _Atomic unsigned *wakes_of(const pthread_cond_t *condition)
{
    return &wakes[(uintptr_t)condition / 16 % CONDITIONS];
}

static struct timespec real_after_slice(void)
{
    struct timespec t;
    raw(SYS_clock_gettime, CLOCK_REALTIME, (long)&t, 0, 0, 0, 0);
    return as_timespec(as_ns(&t) + as_ns(&SLICE));
}

/* A wake-up between two slices is seen by its count. */
EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition,
                                  pthread_mutex_t *restrict lock,
                                  const struct timespec *restrict deadline)
{
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!wait)
        wait = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))next(
            "pthread_cond_timedwait");
    unsigned before = *wakes_of(condition), round;
    int code;
    wait_begin(as_ns(deadline) - zero_of(CLOCK_REALTIME));
    do {
        struct timespec slice = real_after_slice();
        round = shared->round;
        code = wait(condition, lock, &slice);
        if (*wakes_of(condition) != before)
            code = 0;
    } while (code == ETIMEDOUT && goes_on(round));
    wait_end();
    return code;
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
    static int (*wake)(pthread_cond_t *);
    if (!wake)
        wake = (int (*)(pthread_cond_t *))next("pthread_cond_signal");
    ++*wakes_of(condition);
    int code = wake(condition);
    let_others_run();
    return code;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
    static int (*wake)(pthread_cond_t *);
    if (!wake)
        wake = (int (*)(pthread_cond_t *))next("pthread_cond_broadcast");
    ++*wakes_of(condition);
    int code = wake(condition);
    let_others_run();
    return code;
}

EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *deadline)
{
    unsigned round;
    int code;
    wait_begin(as_ns(deadline) - zero_of(CLOCK_REALTIME));
    do {
        round = shared->round;
        code = pthread_tryjoin_np(thread, result);
        if (code == EBUSY)
            raw(SYS_nanosleep, (long)&SLICE, 0, 0, 0, 0, 0);
    } while (code == EBUSY && goes_on(round));
    wait_end();
    return code == EBUSY ? ETIMEDOUT : code;
}

EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                          void *(*body)(void *), void *restrict argument)
{
    static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!create)
        create = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))next(
            "pthread_create");
    int code = create(thread, attributes, body, argument);
    if (shared && code == 0)
        let_others_run();
    return code;
}

/* ---- processes: known before their parent can wait ---- */

EXPORT pid_t fork(void)
{
    static pid_t (*call)(void);
    if (!call)
        call = (pid_t(*)(void))next("fork");
    pid_t process = call();
    if (process == 0)
        own = NULL; /* that of the parent's thread */
    if (process >= 0)
        add_process(process ? process : getpid());
    return process;
}

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                           const posix_spawnattr_t *, char *const[], char *const[]);

static int spawned(const char *name, pid_t *process, const char *path,
                   const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                   char *const argv[], char *const envp[])
{
    pid_t child = 0;
    int code = ((spawn_function *)next(name))(&child, path, actions, attributes, argv, envp);
    if (code == 0)
        add_process(child);
    if (process)
        *process = child;
    return code;
}

EXPORT int posix_spawn(pid_t *restrict process, const char *restrict path,
                       const posix_spawn_file_actions_t *restrict actions,
                       const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                       char *const envp[restrict])
{
    return spawned("posix_spawn", process, path, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *restrict process, const char *restrict path,
                        const posix_spawn_file_actions_t *restrict actions,
                        const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                        char *const envp[restrict])
{
    return spawned("posix_spawnp", process, path, actions, attributes, argv, envp);
}
