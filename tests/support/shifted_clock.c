#include "support/shifted_clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "port/thread.h"

#define SLICE (5 * NS_PER_MS) /* of a wait, after which it looks at the clock */

static _Atomic nanos shift;
static struct thread_waits waits; /* the kernel's, but for those of below */
static const struct thread_waits *kernel;

static nanos read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (nanos)t.tv_sec * NS_PER_S + t.tv_nsec + shift;
}

static nanos shifted_monotonic(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static nanos shifted_boot(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

static nanos shifted_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

static void shifted_sleep(nanos length)
{
    nanos until = clock_now() + length;
    for (nanos left; (left = until - clock_now()) > 0;)
        kernel->sleep(min_nanos(left, SLICE));
}

static bool shifted_wait(_Atomic uint32_t *woken, nanos at)
{
    bool is_woken;
    do
        is_woken = kernel->wait(woken, min_nanos(at, clock_now() + SLICE) - shift);
    while (!is_woken && clock_now() < at);
    return is_woken;
}

/* Its caller expects to be woken for nothing. */
static void shifted_wait_condition(pthread_cond_t *condition, pthread_mutex_t *lock, nanos limit)
{
    kernel->wait_condition(condition, lock, min_nanos(limit, SLICE));
}

void shifted_clock_start(void)
{
    static const struct clock_source SOURCE = {shifted_monotonic, shifted_boot, shifted_wall};
    kernel = thread_replace_waits(NULL);
    waits = *kernel;
    waits.sleep = shifted_sleep;
    waits.wait = shifted_wait;
    waits.wait_condition = shifted_wait_condition;
    (void)thread_replace_waits(&waits);
    clock_replace(&SOURCE);
}

void shifted_clock_advance(nanos length)
{
    shift += length;
}

static bool file_contains(const char *path, const char *text)
{
    char line[4096];
    bool is_there = false;
    FILE *file = fopen(path, "r");
    while (file && !is_there && fgets(line, sizeof line, file))
        is_there = strstr(line, text);
    if (file)
        fclose(file);
    return is_there;
}

void await_text(const char *path, const char *text)
{
    while (!file_contains(path, text))
        nanosleep(&(struct timespec){.tv_nsec = 2 * NS_PER_MS}, NULL);
}

void *shifted_clock_main(void *shift_at)
{
    const struct shift_at *at = shift_at;
    await_text(at->path, at->text);
    shifted_clock_advance(at->length);
    if (at->cancel)
        *at->cancel = true;
    return NULL;
}
