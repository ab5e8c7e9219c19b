/* test: valgrind */
/* From samples to a timeline: valid and invalid behavior of counters and readings, and what must never be counted. */
#include "support/unit.h"

#include "sampler/series.h"
#include "sampler/window.h"

#define MS NS_PER_MS

static struct spill spill;
static struct sensor_channel channel;
static struct series series;

static void begin(struct sensor_channel like, nanos gap_limit)
{
    spill_init(&spill);
    channel = like;
    series_init(&series, &channel, &spill, gap_limit);
}

static void end(void)
{
    series_release(&series);
    spill_release(&spill);
}

static const struct sensor_channel COUNTER = {
    .quantity = QTY_ENERGY, .joules_per_count = 0.5, .wraps_at = 1000, .watts_max = 500};
static const struct sensor_channel COUNTER_64 = {
    .quantity = QTY_ENERGY, .joules_per_count = 1e-3, .watts_max = 1000};
static const struct sensor_channel POWER = {.quantity = QTY_POWER, .watts_max = 700};
static const struct sensor_channel MEAN = {
    .quantity = QTY_POWER, .watts_max = 700, .interval_mean = true};

static void count_at(nanos t, uint64_t count)
{
    struct channel_sample sample = {.t = t, .count = count, .kind = SAMPLE_GOOD};
    assert_int_equal(series_take(&series, &sample), ERR_OK);
}

static void value_at(nanos t, double value)
{
    struct channel_sample sample = {.t = t, .value = value, .kind = SAMPLE_GOOD};
    assert_int_equal(series_take(&series, &sample), ERR_OK);
}

static void missing_at(nanos t, enum sample_kind kind, enum err why)
{
    struct channel_sample sample = {.t = t, .kind = (uint8_t)kind, .why = (uint8_t)why};
    assert_int_equal(series_take(&series, &sample), ERR_OK);
}

/* J over [from, to] and the coverage; UNKNOWN when there is none. */
static double joules(nanos from, nanos to, double *coverage)
{
    struct window w;
    enum err err = window_read(&series.timeline, from, to, &w);
    if (coverage)
        *coverage = w.coverage;
    assert_int_equal(err == ERR_OK, is_known(w.sum));
    return w.sum;
}

#define assert_joules(from, to, expected, covered)                                                 \
    do {                                                                                           \
        double coverage_;                                                                          \
        assert_near(joules((from), (to), &coverage_), (expected), 1e-9);                           \
        assert_near(coverage_, (covered), 1e-9);                                                   \
    } while (0)

/* ---- counters ---- */

static void counter_differences_are_joules(void **state)
{
    (void)state;
    begin(COUNTER, 0);
    count_at(1 * NS_PER_S, 100);
    assert_false(is_known(joules(NS_PER_S, 2 * NS_PER_S, NULL)));
    count_at(2 * NS_PER_S, 140);
    count_at(3 * NS_PER_S, 200);
    assert_joules(NS_PER_S, 3 * NS_PER_S, 50, 1);
    assert_joules(NS_PER_S, 2 * NS_PER_S + 500 * MS, 35, 1);
    assert_joules(0, 4 * NS_PER_S, 50, 0.5);
    assert_int_equal(series.updates, 2);
    assert_int_equal(series.gaps, 0);
    end();
}

static void counter_resolution_is_part_of_the_uncertainty(void **state)
{
    (void)state;
    begin((struct sensor_channel){.quantity = QTY_ENERGY, .joules_per_count = 1}, 0);
    for (int i = 1; i < 10; i++)
        count_at(i * NS_PER_S, (uint64_t)i * 100);
    struct window w;
    assert_int_equal(window_read(&series.timeline, 2 * NS_PER_S, 5 * NS_PER_S, &w), ERR_OK);
    assert_near(w.sum, 300, 1e-9);
    assert_near(w.variance, 2.0 / 12, 1e-9);
    end();
}

static void counter_wraps_at_its_modulus(void **state)
{
    (void)state;
    begin(COUNTER, 0);
    count_at(1 * NS_PER_S, 999);
    count_at(2 * NS_PER_S, 0); /* one count */
    assert_joules(NS_PER_S, 2 * NS_PER_S, 0.5, 1);
    count_at(3 * NS_PER_S, 990); /* 495 J in 1 s: just the maximum power */
    count_at(4 * NS_PER_S, 10);  /* 20 counts */
    assert_joules(3 * NS_PER_S, 4 * NS_PER_S, 10, 1);
    assert_int_equal(series.gaps, 0);
    end();
}

static void reset_is_a_gap_not_a_wrap(void **state)
{
    (void)state;
    begin(COUNTER, 0);
    channel.watts_max = 100;
    count_at(1 * NS_PER_S, 100);
    count_at(2 * NS_PER_S, 200);
    count_at(3 * NS_PER_S, 0); /* as a wrap this would be 400 J, at most 110 J are plausible */
    count_at(4 * NS_PER_S, 60);
    assert_int_equal(series.gaps, 1);
    assert_joules(NS_PER_S, 4 * NS_PER_S, 80, 2.0 / 3);
    assert_false(is_known(joules(2 * NS_PER_S, 3 * NS_PER_S, NULL)));
    assert_int_equal(series.last_error, ERR_BAD_VALUE);
    end();
}

static void decrease_without_a_modulus_is_a_gap(void **state)
{
    (void)state;
    begin(COUNTER_64, 0);
    count_at(1 * NS_PER_S, 5000000);
    count_at(2 * NS_PER_S, 5100000);
    count_at(3 * NS_PER_S, 4999999);
    count_at(4 * NS_PER_S, 5199999);
    assert_joules(NS_PER_S, 4 * NS_PER_S, 300, 2.0 / 3);
    assert_int_equal(series.gaps, 1);
    end();
}

static void jump_above_maximum_power_is_a_gap(void **state)
{
    (void)state;
    begin(COUNTER_64, 0);
    count_at(1 * NS_PER_S, 0);
    count_at(2 * NS_PER_S, 100 * 1000);
    count_at(3 * NS_PER_S, 90 * 1000 * 1000); /* 90 kW */
    count_at(4 * NS_PER_S, 90 * 1000 * 1000 + 50 * 1000);
    assert_joules(NS_PER_S, 4 * NS_PER_S, 150, 2.0 / 3);
    assert_int_equal(series.gaps, 1);
    end();
}

static void close_reads_may_span_a_whole_tick(void **state)
{
    (void)state;
    begin(COUNTER_64, 0);
    count_at(NS_PER_S, 0);
    count_at(NS_PER_S + 2 * MS, 50 * 1000); /* 50 J of a 100 ms tick at 500 W */
    assert_int_equal(series.gaps, 0);
    assert_joules(NS_PER_S, NS_PER_S + 2 * MS, 50, 1);
    end();
}

static void counter_that_may_have_wrapped_unseen_is_a_gap(void **state)
{
    (void)state;
    begin(COUNTER, 0); /* it wraps at 500 J: one second at maximum power */
    count_at(1 * NS_PER_S, 100);
    count_at(2 * NS_PER_S, 110);
    count_at(5 * NS_PER_S, 120);
    assert_int_equal(series.gaps, 1);
    count_at(5 * NS_PER_S + 500 * MS, 130);
    assert_joules(NS_PER_S, 5 * NS_PER_S + 500 * MS, 10, 1.5 / 4.5);
    end();
}

static void stuck_counter_is_not_zero_joules(void **state)
{
    (void)state;
    begin(COUNTER_64, 0);
    for (int i = 1; i < 20; i++)
        count_at(i * NS_PER_S, 777);
    assert_int_equal(series.updates, 0);
    assert_false(is_known(joules(NS_PER_S, 19 * NS_PER_S, NULL)));
    /* When it advances at last, its joules belong to all the time since. */
    count_at(20 * NS_PER_S, 777 + 19000);
    assert_joules(NS_PER_S, 20 * NS_PER_S, 19, 1);
    end();
}

static void counter_survives_missing_reads(void **state)
{
    (void)state;
    begin(COUNTER_64, 0);
    count_at(1 * NS_PER_S, 0);
    missing_at(2 * NS_PER_S, SAMPLE_MISSING, ERR_BUSY);
    missing_at(3 * NS_PER_S, SAMPLE_MISSING, ERR_IO);
    count_at(4 * NS_PER_S, 300 * 1000);
    assert_joules(NS_PER_S, 4 * NS_PER_S, 300, 1);
    assert_int_equal(series.missing, 2);
    assert_int_equal(series.last_error, ERR_IO);
    end();
}

static void known_gap_is_not_counted(void **state)
{
    (void)state;
    begin(COUNTER_64, 0);
    count_at(1 * NS_PER_S, 0);
    count_at(2 * NS_PER_S, 100 * 1000);
    missing_at(3 * NS_PER_S, SAMPLE_GAP, ERR_LOST);
    missing_at(3 * NS_PER_S, SAMPLE_GAP, ERR_LOST);
    count_at(5 * NS_PER_S, 500 * 1000);
    count_at(6 * NS_PER_S, 600 * 1000);
    assert_joules(NS_PER_S, 6 * NS_PER_S, 200, 0.4);
    assert_int_equal(series.gaps, 1);
    assert_int_equal(series.last_error, ERR_LOST);
    end();
}

static void samples_out_of_order_are_ignored(void **state)
{
    (void)state;
    begin(COUNTER_64, 0);
    count_at(2 * NS_PER_S, 0);
    count_at(1 * NS_PER_S, 10);
    count_at(2 * NS_PER_S, 20);
    count_at(3 * NS_PER_S, 100 * 1000);
    assert_joules(2 * NS_PER_S, 3 * NS_PER_S, 100, 1);
    end();
}

/* ---- readings ---- */

static void power_is_integrated(void **state)
{
    (void)state;
    begin(POWER, NS_PER_S);
    value_at(1 * NS_PER_S, 100);
    assert_false(is_known(joules(0, 2 * NS_PER_S, NULL)));
    value_at(1 * NS_PER_S + 500 * MS, 200);
    value_at(2 * NS_PER_S, 200);
    assert_joules(NS_PER_S, 2 * NS_PER_S, 75 + 100, 1);
    struct window w;
    assert_int_equal(window_read(&series.timeline, NS_PER_S, 2 * NS_PER_S, &w), ERR_OK);
    /* The unknown course of the power between two readings, and their unknown age of up to half their spacing, which
     * misplaces the step. */
    assert_near(sqrt(w.variance), hypot(100 * 0.5 / sqrt(12), 100 * 0.25 / sqrt(3)), 2e-3);
    end();
}

static void implausible_readings_are_rejected(void **state)
{
    (void)state;
    static const double BAD[] = {UNKNOWN, INFINITY, -INFINITY, -1, 700.1, 1e9};
    begin(POWER, NS_PER_S);
    value_at(NS_PER_S, 100);
    for (size_t i = 0; i < 6; i++)
        value_at(NS_PER_S + (nanos)(i + 1) * 100 * MS, BAD[i]);
    assert_int_equal(series.refused, 6);
    assert_int_equal(series.last_error, ERR_BAD_VALUE);
    assert_int_equal(timeline_count(&series.timeline), 1);
    value_at(2 * NS_PER_S, 100);
    assert_joules(NS_PER_S, 2 * NS_PER_S, 100, 1);
    assert_near(timeline_last(&series.timeline)->value, 100, 0);
    end();
}

static void negative_temperature_is_valid(void **state)
{
    (void)state;
    begin((struct sensor_channel){.quantity = QTY_TEMPERATURE}, NS_PER_S);
    value_at(NS_PER_S, -5);
    value_at(2 * NS_PER_S, -5);
    assert_int_equal(series.refused, 0);
    assert_near(joules(NS_PER_S, 2 * NS_PER_S, NULL), -5, 1e-9);
    end();
}

static void readings_too_far_apart_are_a_gap(void **state)
{
    (void)state;
    begin(POWER, 500 * MS);
    value_at(1000 * MS, 100);
    value_at(1500 * MS, 100); /* exactly the limit */
    value_at(2001 * MS, 100); /* beyond it */
    value_at(2101 * MS, 100);
    assert_joules(1000 * MS, 2101 * MS, 60, 600.0 / 1101);
    assert_int_equal(series.gaps, 1);
    end();
}

/* A meter of a whole machine that reads 0 W is dead: one such reading is bridged, more are not
 * covered. A rail may be switched off. */
static void repeated_zero_watts_of_a_whole_device_are_not_covered(void **state)
{
    (void)state;
    static const enum scope WHOLE[] = {SCOPE_NODE, SCOPE_BOARD, SCOPE_PACKAGE, SCOPE_GPU};
    struct sensor_channel meter = POWER;
    double coverage;
    for (size_t i = 0; i < sizeof WHOLE / sizeof *WHOLE; i++) {
        meter.scope = WHOLE[i];
        begin(meter, 500 * MS);
        for (int k = 0; k <= 20; k++)
            value_at((nanos)k * 100 * MS, k == 5 || k > 10 ? 0 : 50);
        assert_near(joules(0, 1000 * MS, &coverage), 50, 1e-9);
        assert_near(coverage, 1, 1e-9);
        assert_near(joules(0, 2000 * MS, &coverage), 50, 1e-9);
        assert_near(coverage, 0.5, 1e-9);
        assert_int_equal(series.zeros, 11);
        end();
    }
    meter.scope = SCOPE_RAIL;
    begin(meter, 500 * MS);
    for (int k = 0; k <= 20; k++)
        value_at((nanos)k * 100 * MS, k > 10 ? 0 : 50);
    assert_near(joules(0, 2000 * MS, &coverage), 50 + 2.5, 1e-9);
    assert_near(coverage, 1, 1e-9);
    end();
}

static void interval_mean_starts_at_its_first_empty_read(void **state)
{
    (void)state;
    begin(MEAN, 5 * NS_PER_S);
    missing_at(1 * NS_PER_S, SAMPLE_MISSING, ERR_NO_DATA);
    value_at(2 * NS_PER_S, 100);
    value_at(3 * NS_PER_S, 300);
    assert_joules(NS_PER_S, 3 * NS_PER_S, 400, 1);
    assert_joules(NS_PER_S, 2 * NS_PER_S, 100, 1);
    end();
    /* Two empty reads: the first mean begins at the second of them. */
    begin(MEAN, 5 * NS_PER_S);
    missing_at(1 * NS_PER_S, SAMPLE_MISSING, ERR_NO_DATA);
    missing_at(2 * NS_PER_S, SAMPLE_MISSING, ERR_NO_DATA);
    value_at(3 * NS_PER_S, 100);
    assert_joules(NS_PER_S, 3 * NS_PER_S, 100, 0.5);
    end();
}

static void interval_mean_restarts_after_a_gap(void **state)
{
    (void)state;
    begin(MEAN, 5 * NS_PER_S);
    missing_at(1 * NS_PER_S, SAMPLE_MISSING, ERR_NO_DATA);
    value_at(2 * NS_PER_S, 100);
    missing_at(3 * NS_PER_S, SAMPLE_GAP, ERR_LOST);
    missing_at(4 * NS_PER_S, SAMPLE_MISSING, ERR_NO_DATA);
    value_at(5 * NS_PER_S, 200);
    assert_joules(NS_PER_S, 5 * NS_PER_S, 300, 0.5);
    /* An implausible mean leaves its own interval uncovered, not the next one. */
    value_at(6 * NS_PER_S, 1e6);
    value_at(7 * NS_PER_S, 50);
    assert_joules(5 * NS_PER_S, 7 * NS_PER_S, 50, 0.5);
    /* Nor does one that restarted half way; one that merely took longer covers all of it. */
    missing_at(8 * NS_PER_S, SAMPLE_MISSING, ERR_NO_DATA);
    value_at(9 * NS_PER_S, 70);
    assert_joules(7 * NS_PER_S, 9 * NS_PER_S, 70, 0.5);
    missing_at(10 * NS_PER_S, SAMPLE_MISSING, ERR_BUSY);
    value_at(11 * NS_PER_S, 30);
    assert_joules(9 * NS_PER_S, 11 * NS_PER_S, 60, 1);
    end();
}

static void interval_mean_without_an_empty_read_skips_the_first(void **state)
{
    (void)state;
    begin(MEAN, 5 * NS_PER_S);
    value_at(1 * NS_PER_S, 100);
    value_at(2 * NS_PER_S, 200);
    assert_joules(0, 2 * NS_PER_S, 200, 0.5);
    end();
}

/* ---- conservation ---- */

static void adjacent_windows_add_up(void **state)
{
    (void)state;
    static const struct sensor_channel *const KINDS[] = {&COUNTER_64, &POWER, &MEAN};
    for (size_t k = 0; k < 3; k++) {
        begin(*KINDS[k], NS_PER_S);
        uint64_t count = 0, random = 9;
        nanos t = NS_PER_S, first = t;
        for (int i = 0; i < 20000; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            if (i % 700 == 699)
                missing_at(t, SAMPLE_GAP, ERR_LOST);
            else if (k == 0)
                count_at(t, count);
            else
                value_at(t, (double)(random >> 40) * 1e-5);
            t += 500 * NS_PER_US + (nanos)(random >> 44);
            count += (random >> 50) % 1000;
        }
        double whole = joules(first, t, NULL), sum = 0;
        nanos step = (t - first) / 997;
        for (nanos at = first; at < t; at += step) {
            double part = joules(at, at + step < t ? at + step : t, NULL);
            sum += is_known(part) ? part : 0;
        }
        assert_true(whole > 0);
        assert_near(sum, whole, 1e-9 * whole);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counter_differences_are_joules),
        cmocka_unit_test(counter_resolution_is_part_of_the_uncertainty),
        cmocka_unit_test(counter_wraps_at_its_modulus),
        cmocka_unit_test(reset_is_a_gap_not_a_wrap),
        cmocka_unit_test(decrease_without_a_modulus_is_a_gap),
        cmocka_unit_test(jump_above_maximum_power_is_a_gap),
        cmocka_unit_test(close_reads_may_span_a_whole_tick),
        cmocka_unit_test(counter_that_may_have_wrapped_unseen_is_a_gap),
        cmocka_unit_test(stuck_counter_is_not_zero_joules),
        cmocka_unit_test(counter_survives_missing_reads),
        cmocka_unit_test(known_gap_is_not_counted),
        cmocka_unit_test(samples_out_of_order_are_ignored),
        cmocka_unit_test(power_is_integrated),
        cmocka_unit_test(implausible_readings_are_rejected),
        cmocka_unit_test(negative_temperature_is_valid),
        cmocka_unit_test(readings_too_far_apart_are_a_gap),
        cmocka_unit_test(repeated_zero_watts_of_a_whole_device_are_not_covered),
        cmocka_unit_test(interval_mean_starts_at_its_first_empty_read),
        cmocka_unit_test(interval_mean_restarts_after_a_gap),
        cmocka_unit_test(interval_mean_without_an_empty_read_skips_the_first),
        cmocka_unit_test(adjacent_windows_add_up),
    };
    return RUN_TESTS(tests);
}
