/* test: real time, tsan */
/* Deadlines: past ones return immediately, pokes wake a sleeper and are not lost, threads have names. */
#define _GNU_SOURCE
#include "port/thread.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "support/unit.h"

static void test_waits_until_the_deadline(void **state)
{
    (void)state;
    struct deadline deadline;
    deadline_init(&deadline);
    nanos at = clock_now() + 30 * NS_PER_MS;
    assert_false(deadline_wait(&deadline, at));
    assert_true(clock_now() >= at);
}

static void test_past_deadlines_return_immediately(void **state)
{
    (void)state;
    struct deadline deadline;
    deadline_init(&deadline);
    nanos before = clock_now();
    assert_false(deadline_wait(&deadline, before - NS_PER_S));
    assert_false(deadline_wait(&deadline, 0));
    assert_false(deadline_wait(&deadline, -5));
    assert_true(clock_now() - before < 5 * NS_PER_S);
}

static void test_an_early_poke_is_kept_and_consumed_once(void **state)
{
    (void)state;
    struct deadline deadline;
    deadline_init(&deadline);
    deadline_wake(&deadline);
    deadline_wake(&deadline);
    assert_true(deadline_wait(&deadline, clock_now() + 3600 * NS_PER_S));
    assert_false(deadline_wait(&deadline, clock_now() + NS_PER_MS));
}

static void *poke(void *argument)
{
    deadline_wake(argument);
    return NULL;
}

static void test_another_thread_wakes_the_sleeper(void **state)
{
    (void)state;
    struct deadline deadline;
    pthread_t thread;
    deadline_init(&deadline);
    assert_int_equal(pthread_create(&thread, NULL, poke, &deadline), 0);
    assert_true(deadline_wait(&deadline, clock_now() + 3600 * NS_PER_S));
    pthread_join(thread, NULL);
}

static void *name_thread(void *argument)
{
    char name[32] = "";
    cpu_set_t before, after;
    pthread_getaffinity_np(pthread_self(), sizeof before, &before);
    thread_name("a-name-that-is-too-long", -1);
    pthread_getname_np(pthread_self(), name, sizeof name);
    thread_name("x", CPU_SETSIZE); /* no such CPU: its affinity is unchanged */
    pthread_getaffinity_np(pthread_self(), sizeof after, &after);
    *(bool *)argument = !strcmp(name, "a-name-that-is-") && CPU_EQUAL(&before, &after);
    return NULL;
}

static void test_threads_have_names(void **state)
{
    (void)state;
    pthread_t thread;
    bool holds = false;
    assert_int_equal(pthread_create(&thread, NULL, name_thread, &holds), 0);
    pthread_join(thread, NULL);
    assert_true(holds);
}

/* The scheduling policy of a child of a real-time thread: 1 if it is not real-time. */
static int child_is_not_realtime(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(sched_getscheduler(0) == SCHED_OTHER);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static void *run_realtime(void *argument)
{
    struct sched_param one = {.sched_priority = 1};
    bool is_allowed = sched_setscheduler(0, SCHED_FIFO, &one) == 0;
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    thread_set_realtime();
    int policy = sched_getscheduler(0);
    *(bool *)argument =
        is_allowed ? (policy & ~SCHED_RESET_ON_FORK) == SCHED_FIFO && child_is_not_realtime()
                   : policy == SCHED_OTHER;
    return NULL;
}

static void test_realtime_scheduling_is_used_if_permitted(void **state)
{
    (void)state;
    bool holds = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_realtime, &holds), 0);
    pthread_join(thread, NULL);
    assert_true(holds);
    assert_int_equal(sched_getscheduler(0),
                     SCHED_OTHER); /* other threads of the process are unaffected */
}

static void *run_in_background(void *argument)
{
    int *found = argument;
    thread_set_background(10);
    found[0] = sched_getscheduler(0);
    found[1] = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
    return NULL;
}

/* Of the calling thread alone: others must not wait for it. */
static void test_background_threads_have_low_priority(void **state)
{
    (void)state;
    pthread_t thread;
    int found[2] = {-1, -1}, own = getpriority(PRIO_PROCESS, 0), policy = sched_getscheduler(0);
    assert_int_equal(pthread_create(&thread, NULL, run_in_background, found), 0);
    pthread_join(thread, NULL);
    bool is_normal = policy == SCHED_OTHER; /* `make test` runs some tests as SCHED_IDLE */
    assert_int_equal(found[0], is_normal ? SCHED_BATCH : policy);
    assert_int_equal(found[1], is_normal && own < 10 ? 10 : own);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), own);
    assert_int_equal(sched_getscheduler(0), policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_until_the_deadline),
        cmocka_unit_test(test_past_deadlines_return_immediately),
        cmocka_unit_test(test_an_early_poke_is_kept_and_consumed_once),
        cmocka_unit_test(test_another_thread_wakes_the_sleeper),
        cmocka_unit_test(test_threads_have_names),
        cmocka_unit_test(test_realtime_scheduling_is_used_if_permitted),
        cmocka_unit_test(test_background_threads_have_low_priority),
    };
    return RUN_TESTS(tests);
}
