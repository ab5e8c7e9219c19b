#include "support/stepped_clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "port/thread.h"

/* Far from 0 and from each other, so that confusing them is detected. */
#define MONOTONIC_ZERO (1000 * NS_PER_S)
#define WALL_ZERO      (1800000000 * NS_PER_S)
#define READING_TAKES  100

/* A thread that waits: for somebody to wake whoever waits for `key` (NULL: nobody does), or for a time. */
struct waiter {
    const void *key;
    nanos until;
    pthread_cond_t resume;
    bool is_released, is_woken;
    struct waiter *next;
};

/* A thread that thread_start has started. */
struct member {
    pthread_t thread;
    void *(*body)(void *);
    void *argument;
    bool has_ended;
    struct member *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest, but for `now` */
static _Atomic nanos now;
static unsigned running;       /* threads that do not wait */
static struct waiter *waiters; /* the longest first */
static struct member *members; /* the newest first */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "stepped clock: %s\n", what);
    abort();
}

/* ---- waiting: with the lock held ---- */

static void release(struct waiter *waiter, bool is_woken)
{
    struct waiter **at = &waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    waiter->is_released = true;
    waiter->is_woken = is_woken;
    running++; /* at once: time must not move before it runs */
    pthread_cond_signal(&waiter->resume);
}

/* Where all wait for each other, time stands still, as it does for them. */
static void step_if_idle(void)
{
    struct waiter *first = waiters;
    for (struct waiter *w = waiters; w; w = w->next)
        if (w->until < first->until)
            first = w;
    if (running > 0 || !first || first->until == INT64_MAX)
        return;
    if (now < first->until)
        now = first->until;
    release(first, false);
}

/* False: the time has come. */
static bool wait_for(const void *key, nanos until)
{
    struct waiter self = {
        .key = key, .until = until, .resume = (pthread_cond_t)PTHREAD_COND_INITIALIZER};
    struct waiter **last = &waiters;
    while (*last)
        last = &(*last)->next;
    *last = &self;
    running--;
    step_if_idle();
    while (!self.is_released)
        pthread_cond_wait(&self.resume, &lock);
    pthread_cond_destroy(&self.resume);
    /* NOLINTNEXTLINE(clang-analyzer-core.StackAddressEscape): release() has taken it off the list */
    return self.is_woken;
}

static void wake_all(const void *key)
{
    for (struct waiter *next, *w = waiters; w; w = next) {
        next = w->next;
        if (w->key == key)
            release(w, true);
    }
}

/* ---- the rows of struct thread_waits ---- */

static void stepped_sleep(nanos length)
{
    pthread_mutex_lock(&lock);
    if (length > 0)
        wait_for(NULL, now + length);
    pthread_mutex_unlock(&lock);
}

static bool stepped_wait(_Atomic uint32_t *woken, nanos at)
{
    pthread_mutex_lock(&lock);
    while (!atomic_load(woken) && now < at)
        wait_for(woken, at);
    bool is_woken = atomic_exchange(woken, 0);
    pthread_mutex_unlock(&lock);
    return is_woken;
}

static void stepped_wake(_Atomic uint32_t *woken)
{
    pthread_mutex_lock(&lock);
    atomic_store(woken, 1);
    wake_all(woken);
    pthread_mutex_unlock(&lock);
}

static void stepped_wait_condition(pthread_cond_t *condition, pthread_mutex_t *guard, nanos limit)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(guard);
    wait_for(condition, now + limit);
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(guard);
}

static void stepped_wake_condition(pthread_cond_t *condition)
{
    pthread_mutex_lock(&lock);
    wake_all(condition);
    pthread_mutex_unlock(&lock);
}

static void *run_member(void *argument)
{
    struct member *member = argument;
    void *result = member->body(member->argument);
    pthread_mutex_lock(&lock);
    member->has_ended = true;
    running--;
    wake_all(member);
    step_if_idle();
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
    return result;
}

static int stepped_start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    struct member *member = calloc(1, sizeof *member);
    must(member != NULL, "out of memory");
    member->body = body;
    member->argument = argument;
    pthread_mutex_lock(&lock);
    int number = pthread_create(&member->thread, NULL, run_member, member);
    must(number == 0, "cannot start a thread");
    running++;
    member->next = members;
    members = member;
    *thread = member->thread;
    pthread_mutex_unlock(&lock);
    return 0;
}

static bool stepped_join(pthread_t thread, nanos until)
{
    pthread_mutex_lock(&lock);
    struct member *member = members;
    while (member && !pthread_equal(member->thread, thread))
        member = member->next;
    must(member != NULL, "a thread to join that was started before the clock");
    while (!member->has_ended && now < until)
        wait_for(member, until);
    bool has_ended = member->has_ended;
    pthread_mutex_unlock(&lock);
    if (has_ended)
        pthread_join(thread, NULL);
    return has_ended;
}

/* ---- the clocks ---- */

nanos stepped_clock_now(void)
{
    return atomic_fetch_add(&now, READING_TAKES);
}

static nanos stepped_wall(void)
{
    return stepped_clock_now() - MONOTONIC_ZERO + WALL_ZERO;
}

void stepped_clock_start(void)
{
    static const struct clock_source SOURCE = {stepped_clock_now, stepped_clock_now, stepped_wall};
    static const struct thread_waits WAITS = {
        .start = stepped_start,
        .join = stepped_join,
        .sleep = stepped_sleep,
        .wait = stepped_wait,
        .wake = stepped_wake,
        .wait_condition = stepped_wait_condition,
        .wake_condition = stepped_wake_condition,
    };
    now = MONOTONIC_ZERO;
    running = 1;
    clock_replace(&SOURCE);
    (void)thread_replace_waits(&WAITS);
}

void stepped_clock_stop(void)
{
    pthread_mutex_lock(&lock);
    must(!waiters, "a thread still waits");
    while (running > 1) /* the end of one that was not joined */
        pthread_cond_wait(&ended, &lock);
    for (struct member *next, *member = members; member; member = next) {
        next = member->next;
        free(member);
    }
    members = NULL;
    pthread_mutex_unlock(&lock);
    clock_replace(NULL);
    (void)thread_replace_waits(NULL);
}
