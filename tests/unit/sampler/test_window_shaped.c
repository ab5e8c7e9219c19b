/* A counter's window laid out by finer power samples. */
#include "support/unit.h"

#include <math.h>

#include "sampler/window.h"

#define TICK   (100 * NS_PER_MS)
#define SAMPLE (20 * NS_PER_MS)
#define LENGTH 40 /* ticks */

/* The load: 100 W, and 600 W in every second third of a second.  The oracle integrates it by brute
 * force in steps of a tenth of a millisecond. */
static double load_watts(nanos t)
{
    return (t / (333 * NS_PER_MS)) % 2 ? 600 : 100;
}

static double load_joules(nanos from, nanos to)
{
    double joules = 0;
    nanos step = 100 * NS_PER_US;
    for (nanos t = from; t < to; t += step)
        joules += load_watts(t) * seconds(t + step < to ? step : to - t);
    return joules;
}

struct pair {
    struct spill spill;
    struct timeline counter, power;
};

/* gain: what the power sensor shows of the truth, as a miscalibrated one would. */
static void build(struct pair *pair, double gain, int power_ends_at_tick)
{
    spill_init(&pair->spill);
    timeline_init(&pair->counter, &pair->spill, SHAPE_MEANS);
    timeline_init(&pair->power, &pair->spill, SHAPE_MEANS);
    double sum = 0;
    for (int i = 0; i <= LENGTH; i++) {
        nanos t = i * TICK;
        double added = i ? load_joules(t - TICK, t) : 0;
        sum += added;
        struct timeline_point p = {
            .t = t, .covered = t, .sum = sum, .value = i ? added / 0.1 : UNKNOWN};
        assert_int_equal(timeline_append(&pair->counter, &p), ERR_OK);
    }
    sum = 0;
    for (nanos t = 0; t <= power_ends_at_tick * TICK; t += SAMPLE) {
        double added = t ? gain * load_joules(t - SAMPLE, t) : 0;
        sum += added;
        struct timeline_point p = {
            .t = t, .covered = t, .sum = sum, .value = t ? added / 0.02 : UNKNOWN};
        assert_int_equal(timeline_append(&pair->power, &p), ERR_OK);
    }
}

static void release(struct pair *pair)
{
    timeline_release(&pair->counter);
    timeline_release(&pair->power);
    spill_release(&pair->spill);
}

/* The same sequence everywhere: a failure can be repeated. */
static uint64_t seed;

static nanos random_time(nanos from, nanos to)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return from + (nanos)((double)(seed >> 11) * 0x1p-53 * (double)(to - from));
}

static void windows_come_nearer_to_the_truth(void **state)
{
    (void)state;
    struct pair pair;
    build(&pair, 0.97, LENGTH);
    seed = 7;
    double straight_error = 0, shaped_error = 0;
    int within = 0, rounds = 400;
    for (int i = 0; i < rounds; i++) {
        nanos from = random_time(0, 3 * NS_PER_S);
        nanos to = random_time(from + 30 * NS_PER_MS, from + 900 * NS_PER_MS);
        struct window straight, shaped;
        double truth = load_joules(from, to);
        assert_int_equal(window_read(&pair.counter, from, to, &straight), ERR_OK);
        assert_int_equal(window_read_shaped(&pair.counter, &pair.power, from, to, &shaped), ERR_OK);
        straight_error += fabs(straight.sum - truth);
        shaped_error += fabs(shaped.sum - truth);
        within += fabs(shaped.sum - truth) <= 3 * sqrt(shaped.variance) + 1e-9;
        assert_near(shaped.coverage, 1, 1e-12);
    }
    if (shaped_error > straight_error / 3)
        print_error("shaped %g J, straight %g J\n", shaped_error, straight_error);
    assert_true(shaped_error < straight_error / 3);
    if (within < rounds * 9 / 10)
        print_error("%d of %d within three standard uncertainties\n", within, rounds);
    assert_true(within >= rounds * 9 / 10);
    release(&pair);
}

/* The counter keeps the amount: whatever the samples' gain, adjacent windows add up to it. */
static void adjacent_windows_add_up_to_the_counter(void **state)
{
    (void)state;
    struct pair pair;
    build(&pair, 1.3, LENGTH);
    seed = 11;
    nanos t = 0;
    double sum = 0;
    struct window part, whole;
    while (t < LENGTH * TICK) {
        nanos to = t + random_time(NS_PER_MS, 250 * NS_PER_MS);
        if (to > LENGTH * TICK)
            to = LENGTH * TICK;
        assert_int_equal(window_read_shaped(&pair.counter, &pair.power, t, to, &part), ERR_OK);
        assert_true(part.variance >= 0);
        sum += part.sum;
        t = to;
    }
    assert_int_equal(window_read(&pair.counter, 0, LENGTH * TICK, &whole), ERR_OK);
    assert_near(sum, whole.sum, 1e-9 * whole.sum);
    release(&pair);
}

static void an_edge_without_samples_is_a_straight_line(void **state)
{
    (void)state;
    struct pair pair;
    build(&pair, 1, 20);
    struct window straight, shaped;
    nanos from = 2550 * NS_PER_MS, to = 3170 * NS_PER_MS;
    assert_int_equal(window_read(&pair.counter, from, to, &straight), ERR_OK);
    assert_int_equal(window_read_shaped(&pair.counter, &pair.power, from, to, &shaped), ERR_OK);
    assert_near(shaped.sum, straight.sum, 1e-12);
    assert_near(shaped.variance, straight.variance, 1e-12);
    release(&pair);
}

static void a_window_inside_one_tick_gets_its_share(void **state)
{
    (void)state;
    struct pair pair;
    build(&pair, 1, LENGTH);
    struct window shaped;
    /* 333 ms falls inside the fourth tick: 100 W before it, 600 W after. */
    assert_int_equal(
        window_read_shaped(&pair.counter, &pair.power, 340 * NS_PER_MS, 380 * NS_PER_MS, &shaped),
        ERR_OK);
    assert_near(shaped.sum, 600 * 0.04, 0.5);
    assert_true(sqrt(shaped.variance) < 5);
    assert_int_equal(
        window_read_shaped(&pair.counter, &pair.power, 301 * NS_PER_MS, 319 * NS_PER_MS, &shaped),
        ERR_OK);
    assert_near(shaped.sum, 100 * 0.018, 0.5);
    release(&pair);
}

/* One cursor walked over the whole history, in strides that sometimes skip intervals, and back. */
static void running_sums_are_what_windows_are_made_of(void **state)
{
    (void)state;
    static const nanos STRIDES[] = {NS_PER_MS, 7 * NS_PER_MS, 131 * NS_PER_MS, -60 * NS_PER_MS};
    struct pair pair;
    build(&pair, 0.9, LENGTH / 2);
    struct shaped_cursor cursor = {0};
    double last_sum, sum;
    nanos last_covered, covered, t = 5 * NS_PER_MS;
    assert_int_equal(
        window_running_shaped(&pair.counter, &pair.power, &cursor, t, &last_sum, &last_covered),
        ERR_OK);
    for (int i = 0; t < LENGTH * TICK + 2 * TICK; i++) {
        nanos stride = STRIDES[i % 4];
        struct window window;
        t += stride;
        assert_int_equal(
            window_running_shaped(&pair.counter, &pair.power, &cursor, t, &sum, &covered), ERR_OK);
        if (stride > 0) {
            enum err err = window_read_shaped(&pair.counter, &pair.power, t - stride, t, &window);
            if (err)
                assert_int_equal(covered, last_covered);
            else
                assert_near(sum - last_sum, window.sum, 1e-9);
            assert_near(seconds(covered - last_covered), window.covered_s, 1e-9);
        }
        last_sum = sum;
        last_covered = covered;
    }
    release(&pair);
}

static void running_sum_of_nothing_is_no_data(void **state)
{
    (void)state;
    struct spill spill;
    struct timeline empty;
    struct running_cursor cursor = {0};
    double sum;
    nanos covered;
    spill_init(&spill);
    timeline_init(&empty, &spill, SHAPE_POINTS);
    assert_int_equal(window_running(&empty, &cursor, 1, &sum, &covered), ERR_NO_DATA);
    timeline_release(&empty);
    spill_release(&spill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_come_nearer_to_the_truth),
        cmocka_unit_test(adjacent_windows_add_up_to_the_counter),
        cmocka_unit_test(an_edge_without_samples_is_a_straight_line),
        cmocka_unit_test(a_window_inside_one_tick_gets_its_share),
        cmocka_unit_test(running_sums_are_what_windows_are_made_of),
        cmocka_unit_test(running_sum_of_nothing_is_no_data),
    };
    return RUN_TESTS(tests);
}
