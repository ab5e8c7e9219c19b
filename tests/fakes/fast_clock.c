/* Time that runs IPW_FAKE_SPEED times as fast, to run a program for simulated days in seconds.
 * LD_PRELOAD puts this between the program and the C library: clocks are scaled, and waits end that
 * much sooner. CPU time is not scaled. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { CLOCKS = 3 };

static const clockid_t IDS[CLOCKS] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
static int64_t zero[CLOCKS]; /* real time at the start, ns */
static int64_t speed = 1;

static long raw(long number, long a, long b, long c, long d, long e, long f)
{
    static long (*next)(long, ...);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return next(number, a, b, c, d, e, f);
}

static int64_t real_ns(clockid_t id)
{
    struct timespec t;
    raw(SYS_clock_gettime, id, (long)&t, 0, 0, 0, 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

__attribute__((constructor)) static void start(void)
{
    const char *text = getenv("IPW_FAKE_SPEED");
    speed = text && atol(text) > 0 ? atol(text) : 1;
    for (int i = 0; i < CLOCKS; i++)
        zero[i] = real_ns(IDS[i]);
}

static struct timespec as_timespec(int64_t ns)
{
    ns = ns > 0 ? ns : 0;
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* The real clock value at a scaled time. */
static struct timespec unscaled(int clock, const struct timespec *at)
{
    int64_t ns = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec;
    return as_timespec(ns > zero[clock] ? zero[clock] + (ns - zero[clock]) / speed : ns);
}

EXPORT int clock_gettime(clockid_t id, struct timespec *out)
{
    for (int i = 0; i < CLOCKS; i++)
        if (IDS[i] == id) {
            *out = as_timespec(zero[i] + (real_ns(id) - zero[i]) * speed);
            return 0;
        }
    return (int)raw(SYS_clock_gettime, id, (long)out, 0, 0, 0, 0);
}

EXPORT int nanosleep(const struct timespec *length, struct timespec *left)
{
    struct timespec shorter =
        as_timespec(((int64_t)length->tv_sec * 1000000000 + length->tv_nsec) / speed);
    (void)left; /* not interrupted: the program blocks its signals in other threads */
    return (int)raw(SYS_nanosleep, (long)&shorter, 0, 0, 0, 0, 0);
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
    struct timespec limit = as_timespec((int64_t)ms * 1000000 / speed);
    return (int)raw(SYS_epoll_pwait2, fd, (long)events, max, ms < 0 ? 0 : (long)&limit, 0, 0);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec sooner = unscaled(0, until);
    if (!next)
        next = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(
            RTLD_NEXT, "pthread_cond_timedwait");
    return next(condition, lock, &sooner);
}

EXPORT long syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    struct timespec sooner;
    if (number == SYS_futex && a[3] && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
        const struct timespec *deadline;
        memcpy(&deadline, &a[3], sizeof deadline);
        sooner = unscaled(1, deadline);
        a[3] = (long)&sooner;
    }
    return raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
