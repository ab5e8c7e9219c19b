/* test: tsan */
/* The waits of port/thread.h on the clock that other tests step through time with (support/stepped_clock.h). */
#include "support/stepped_clock.h"

#include "core/clock.h"
#include "port/thread.h"
#include "support/unit.h"

#define HOUR (3600 * NS_PER_S)

static int set_up(void **state)
{
    (void)state;
    stepped_clock_start();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stepped_clock_stop();
    return 0;
}

/* a - b, where each reading of the clock takes a little. */
static void assert_after(nanos a, nanos b, nanos expected)
{
    assert_near(seconds(a - b), seconds(expected), 1e-4);
}

/* ---- sleeping ---- */

struct sleeper {
    pthread_t thread;
    nanos length, woke;
    unsigned *count, rank; /* of all that woke, in order */
};

static void *sleeper_main(void *argument)
{
    struct sleeper *sleeper = argument;
    thread_sleep(sleeper->length);
    sleeper->woke = clock_now();
    sleeper->rank = (*sleeper->count)++; /* without a lock: one of them continues at a time */
    return NULL;
}

static void threads_wake_in_the_order_of_their_times(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    struct sleeper sleepers[COUNT];
    unsigned count = 0;
    nanos began = clock_now();
    for (unsigned i = 0; i < COUNT; i++) {
        sleepers[i] = (struct sleeper){.length = (COUNT - i) * HOUR, .count = &count};
        assert_int_equal(thread_start(&sleepers[i].thread, sleeper_main, &sleepers[i]), ERR_OK);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(thread_join(sleepers[i].thread, clock_now() + 100 * HOUR));
        assert_int_equal(sleepers[i].rank, COUNT - 1 - i);
        assert_after(sleepers[i].woke, began, sleepers[i].length);
    }
    assert_after(clock_now(), began, COUNT * HOUR);
}

static void only_a_thread_that_ends_in_time_is_joined(void **state)
{
    (void)state;
    unsigned count = 0;
    struct sleeper sleeper = {.length = 2 * HOUR, .count = &count};
    nanos began = clock_now();
    assert_false(thread_run(sleeper_main, &sleeper, HOUR));
    assert_after(clock_now(), began, HOUR);
    thread_sleep(2 * HOUR); /* it uses our memory */
    assert_after(sleeper.woke, began, 2 * HOUR);
    assert_true(thread_run(sleeper_main, &sleeper, 3 * HOUR));
    assert_after(clock_now(), began, 5 * HOUR);
}

/* ---- waking ---- */

struct meeting {
    struct deadline deadline;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turn;
};

static void *wake_later(void *argument)
{
    struct meeting *meeting = argument;
    thread_sleep(HOUR);
    deadline_wake(&meeting->deadline);
    for (int turn = 1; turn < 4; turn++) {
        thread_sleep(HOUR);
        pthread_mutex_lock(&meeting->lock);
        meeting->turn = turn;
        thread_wake(&meeting->changed);
        pthread_mutex_unlock(&meeting->lock);
    }
    return NULL;
}

static void a_wait_ends_when_it_is_woken(void **state)
{
    (void)state;
    struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    deadline_init(&meeting.deadline);
    nanos began = clock_now();
    assert_int_equal(thread_start(&thread, wake_later, &meeting), ERR_OK);
    assert_true(deadline_wait(&meeting.deadline, began + 100 * HOUR));
    assert_after(clock_now(), began, HOUR);
    pthread_mutex_lock(&meeting.lock);
    for (int turn = 1; turn < 4; turn++) {
        thread_wait(&meeting.changed, &meeting.lock, 100 * HOUR);
        assert_int_equal(meeting.turn, turn);
        assert_after(clock_now(), began, (1 + turn) * HOUR);
    }
    thread_wait(&meeting.changed, &meeting.lock, HOUR);
    assert_after(clock_now(), began, 5 * HOUR);
    pthread_mutex_unlock(&meeting.lock);
    assert_true(thread_join(thread, clock_now() + HOUR));
    assert_after(clock_now(), began, 5 * HOUR);
}

static void a_wait_ends_when_its_time_has_come(void **state)
{
    (void)state;
    struct deadline deadline;
    deadline_init(&deadline);
    nanos began = clock_now();
    assert_false(deadline_wait(&deadline, began + HOUR));
    assert_false(deadline_wait(&deadline, began));
    assert_after(clock_now(), began, HOUR);
    deadline_wake(&deadline);
    assert_true(deadline_wait(&deadline, began)); /* before the call, and only once */
    assert_false(deadline_wait(&deadline, began + 2 * HOUR));
    assert_after(clock_now(), began, 2 * HOUR);
}

#define STEPPED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STEPPED_TEST(threads_wake_in_the_order_of_their_times),
        STEPPED_TEST(only_a_thread_that_ends_in_time_is_joined),
        STEPPED_TEST(a_wait_ends_when_it_is_woken),
        STEPPED_TEST(a_wait_ends_when_its_time_has_come),
    };
    return RUN_TESTS(tests);
}
