/* The clock of another host: for any delays and drift, the true time is within the uncertainty. The
 * time that this host was suspended, as opposed to stalls. */
#include "support/unit.h"

#include "core/random.h"
#include "core/clock.h"

#define AHEAD (123456 * NS_PER_S)

/* The server's clock at a local time, when it runs fast by that many ppm. */
static nanos server_at(nanos t, double ppm)
{
    return t + AHEAD + (nanos)((double)t * ppm * 1e-6);
}

static nanos clock_error(const struct clock_offset *clock, nanos t, double ppm)
{
    nanos off = clock_offset_to_local(clock, server_at(t, ppm)) - t;
    return off < 0 ? -off : off;
}

static void the_true_time_is_within_the_uncertainty(void **state)
{
    (void)state;
    static const double PPM[] = {0, 50, -50, 499, -499};
    struct random random = random_seeded(7);
    for (size_t p = 0; p < sizeof PPM / sizeof *PPM; p++) {
        struct clock_offset clock = {0};
        nanos t = NS_PER_S;
        for (int i = 0; i < 2000; i++) {
            nanos there = random_between(&random, 10 * NS_PER_US, 20 * NS_PER_MS);
            nanos back = random_between(&random, 10 * NS_PER_US, 200 * NS_PER_MS);
            assert_true(
                clock_offset_add(&clock, t, t + there + back, server_at(t + there, PPM[p])));
            t += there + back;
            assert_true(clock_error(&clock, t, PPM[p]) <= clock_offset_error(&clock, t) + 1);
            nanos later = t + random_between(&random, 0, 10 * NS_PER_S);
            assert_true(clock_error(&clock, later, PPM[p]) <=
                        clock_offset_error(&clock, later) + 1);
            t = later;
        }
    }
}

static void the_reply_with_the_shortest_round_trip_counts(void **state)
{
    (void)state;
    struct clock_offset clock = {0};
    clock_offset_add(&clock, 0, NS_PER_S, server_at(NS_PER_S / 2, 0));
    assert_in_range(clock_offset_error(&clock, NS_PER_S), NS_PER_S / 2, NS_PER_S / 2 + NS_PER_MS);
    clock_offset_add(&clock, 2 * NS_PER_S, 2 * NS_PER_S + 2 * NS_PER_MS,
                     server_at(2 * NS_PER_S + NS_PER_MS, 0));
    assert_in_range(clock_offset_error(&clock, 2 * NS_PER_S + 2 * NS_PER_MS), NS_PER_MS,
                    NS_PER_MS + 2 * NS_PER_US);
    /* A slow reply after it adds only drift. */
    clock_offset_add(&clock, 3 * NS_PER_S, 4 * NS_PER_S, server_at(3 * NS_PER_S, 0));
    assert_true(clock_offset_error(&clock, 4 * NS_PER_S) < 3 * NS_PER_MS);
    assert_true(clock_error(&clock, 4 * NS_PER_S, 0) <= clock_offset_error(&clock, 4 * NS_PER_S));
}

static void a_step_is_detected(void **state)
{
    (void)state;
    struct clock_offset clock = {0};
    assert_true(clock_offset_add(&clock, 0, NS_PER_MS, server_at(0, 0)));
    nanos t = 10 * NS_PER_S;
    assert_false(clock_offset_add(&clock, t, t + NS_PER_MS, server_at(t, 0) - NS_PER_S));
    assert_true(clock_offset_add(&clock, t, t + NS_PER_MS, server_at(t, 0) - NS_PER_S));
    nanos here = clock_offset_to_local(&clock, server_at(t, 0) - NS_PER_S);
    assert_true(here >= t - NS_PER_MS && here <= t + NS_PER_MS);
}

/* A thread that is descheduled between two clock reads, at the n-th of them. */
static int reading, stalled_at;
static nanos running, suspended;

static nanos take_time(void)
{
    running += reading++ == stalled_at ? 700 * NS_PER_MS : 50;
    return running;
}

static nanos take_boot_time(void)
{
    return take_time() + suspended;
}

static void a_scheduling_stall_is_not_a_suspend(void **state)
{
    (void)state;
    static const struct clock_source STALLING = {take_time, take_boot_time, take_time};
    clock_replace(&STALLING);
    for (stalled_at = 0; stalled_at < 6; stalled_at++) {
        reading = 0;
        nanos before = clock_suspended();
        suspended += 2 * NS_PER_S;
        assert_near(seconds(clock_suspended() - before), 2, 1e-3);
    }
    clock_replace(NULL);
}

static nanos take_wall_time(void)
{
    return take_time() + 5 * NS_PER_S;
}

static void a_scheduling_stall_does_not_shift_the_wall_clock(void **state)
{
    (void)state;
    static const struct clock_source STALLING = {take_time, take_boot_time, take_wall_time};
    clock_replace(&STALLING);
    for (stalled_at = 0; stalled_at < 6; stalled_at++) {
        reading = 0;
        assert_near(seconds(clock_wall_offset()), 5, 1e-3);
    }
    clock_replace(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_true_time_is_within_the_uncertainty),
        cmocka_unit_test(the_reply_with_the_shortest_round_trip_counts),
        cmocka_unit_test(a_step_is_detected),
        cmocka_unit_test(a_scheduling_stall_is_not_a_suspend),
        cmocka_unit_test(a_scheduling_stall_does_not_shift_the_wall_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
