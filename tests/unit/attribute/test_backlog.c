/* test: tsan */
/* Capacity of the backlog: callers block for attribution only. */
#include "attribute/share_parts.h"

#include "core/clock.h"
#include "core/random.h"
#include "port/thread.h"
#include "support/stepped_clock.h"
#include "support/unit.h"

enum { ENDED_MAX = 3 };

static void end_request(struct backlog *backlog, uint64_t id)
{
    struct sharer *sharer = sharer_new(0);
    assert_non_null(sharer);
    sharer->trace = (struct request_trace){.id = id, .from = (nanos)id, .to = (nanos)id + 1};
    assert_int_equal(backlog_begin(backlog, id, (nanos)id), ERR_OK);
    assert_int_equal(backlog_end(backlog, sharer), ERR_OK);
}

static void collect(struct backlog *backlog)
{
    nanos earliest;
    backlog_collect(backlog, &earliest);
}

static void has_capacity_until_the_limit(void **state)
{
    (void)state;
    struct backlog backlog;
    backlog_init(&backlog);
    for (uint64_t id = 1; id <= ENDED_MAX; id++) {
        assert_true(backlog_has_capacity(&backlog, ENDED_MAX, 0));
        end_request(&backlog, id);
    }
    assert_int_equal(backlog_ended(&backlog), ENDED_MAX);
    assert_false(backlog_has_capacity(&backlog, ENDED_MAX, NS_PER_MS));
    backlog_release(&backlog);
}

/* A long request delays the settling of others: that must not block new ones. */
static void requests_blocked_by_one_in_flight_do_not_use_capacity(void **state)
{
    (void)state;
    struct backlog backlog;
    backlog_init(&backlog);
    assert_int_equal(backlog_begin(&backlog, 100, 0), ERR_OK);
    for (uint64_t id = 1; id <= ENDED_MAX; id++)
        end_request(&backlog, id);
    collect(&backlog);
    assert_null(backlog_pop(&backlog, 0));
    assert_true(backlog_has_capacity(&backlog, ENDED_MAX, 0));
    backlog_release(&backlog);
}

static void *collect_later(void *argument)
{
    thread_sleep(10 * NS_PER_MS);
    collect(argument);
    return NULL;
}

static void collecting_wakes_waiting_threads(void **state)
{
    (void)state;
    struct backlog backlog;
    pthread_t thread;
    backlog_init(&backlog);
    for (uint64_t id = 1; id <= ENDED_MAX; id++)
        end_request(&backlog, id);
    stepped_clock_start();
    nanos began = clock_now();
    assert_int_equal(thread_start(&thread, collect_later, &backlog), ERR_OK);
    assert_true(backlog_has_capacity(&backlog, ENDED_MAX, 600 * NS_PER_S));
    assert_near(seconds(clock_now() - began), 0.01, 1e-4);
    assert_true(thread_join(thread, clock_now() + NS_PER_S));
    stepped_clock_stop();
    backlog_release(&backlog);
}

/* In any order, the oldest request in flight is known, and none is lost or duplicated. */
static void requests_may_end_in_any_order(void **state)
{
    (void)state;
    enum { COUNT = 3000, WINDOW = 100 };
    static bool in_flight[COUNT + 1];
    struct random random = {.state = 3};
    struct backlog backlog;
    nanos earliest;
    backlog_init(&backlog);
    for (uint64_t begun = 0, first = 1; first <= COUNT;) {
        uint64_t id = first + random_below(&random, WINDOW);
        if (begun < COUNT && begun < first + random_below(&random, WINDOW)) {
            in_flight[++begun] = true;
            assert_int_equal(backlog_begin(&backlog, begun, (nanos)begun), ERR_OK);
        } else if (id <= begun && in_flight[id]) {
            assert_int_equal(backlog_begin(&backlog, id, 0), ERR_BAD_VALUE);
            backlog_forget(&backlog, id);
            in_flight[id] = false;
        }
        while (first <= begun && !in_flight[first])
            first++;
        backlog_collect(&backlog, &earliest);
        assert_int_equal(earliest, first <= begun ? (nanos)first : INT64_MAX);
    }
    backlog_release(&backlog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_capacity_until_the_limit),
        cmocka_unit_test(requests_blocked_by_one_in_flight_do_not_use_capacity),
        cmocka_unit_test(collecting_wakes_waiting_threads),
        cmocka_unit_test(requests_may_end_in_any_order),
    };
    return RUN_TESTS(tests);
}
