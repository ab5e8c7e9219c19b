/* Deadlines: past ones return at once, pokes wake and are not lost, threads have names. */
#define _GNU_SOURCE
#include "port/thread.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

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

static void test_past_deadlines_return_at_once(void **state)
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

static void test_an_early_poke_is_kept_and_taken_once(void **state)
{
    (void)state;
    struct deadline deadline;
    deadline_init(&deadline);
    deadline_poke(&deadline);
    deadline_poke(&deadline);
    assert_true(deadline_wait(&deadline, clock_now() + 3600 * NS_PER_S));
    assert_false(deadline_wait(&deadline, clock_now() + NS_PER_MS));
}

static void *poke(void *argument)
{
    deadline_poke(argument);
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

static void *settle(void *argument)
{
    char name[32] = "";
    cpu_set_t before, after;
    pthread_getaffinity_np(pthread_self(), sizeof before, &before);
    thread_settle("a-name-that-is-too-long", -1);
    pthread_getname_np(pthread_self(), name, sizeof name);
    thread_settle("x", CPU_SETSIZE); /* no such CPU: stays where it was */
    pthread_getaffinity_np(pthread_self(), sizeof after, &after);
    *(bool *)argument = !strcmp(name, "a-name-that-is-") && CPU_EQUAL(&before, &after);
    return NULL;
}

static void test_threads_have_names(void **state)
{
    (void)state;
    pthread_t thread;
    bool holds = false;
    assert_int_equal(pthread_create(&thread, NULL, settle, &holds), 0);
    pthread_join(thread, NULL);
    assert_true(holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_until_the_deadline),
        cmocka_unit_test(test_past_deadlines_return_at_once),
        cmocka_unit_test(test_an_early_poke_is_kept_and_taken_once),
        cmocka_unit_test(test_another_thread_wakes_the_sleeper),
        cmocka_unit_test(test_threads_have_names),
    };
    return RUN_TESTS(tests);
}
