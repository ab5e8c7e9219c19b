/* A counter that is read every half a minute, interpolated by power samples: against the true integral. */
#include "support/unit.h"

#include <math.h>

#include "sampler/anchored.h"
#include "sampler/series.h"

#define MS     NS_PER_MS
#define TICK   (100 * MS)
#define SAMPLE (20 * MS)
#define DRAIN  (500 * MS)
#define PERIOD (30 * NS_PER_S)
#define MINUTE (60 * NS_PER_S)

/* ---- loads: joules from 0 to t ---- */

static double constant(double t)
{
    return 300 * t;
}

static double square_wave(double t, double period)
{
    double whole = floor(t / period), inside = t - whole * period;
    return 80 * t + 600 * (whole * period / 2 + fmin(inside, period / 2));
}

static double square_30ms(double t)
{
    return square_wave(t, 0.03);
}

static double square_100ms(double t)
{
    return square_wave(t, 0.1);
}

static double square_1s(double t)
{
    return square_wave(t, 1.3);
}

static double square_70s(double t)
{
    return square_wave(t, 70);
}

static double ramp(double t) /* 80 to 680 W in 300 s */
{
    return 80 * t + t * t;
}

static double (*const LOADS[])(double) = {constant,  square_30ms, square_100ms,
                                          square_1s, square_70s,  ramp};

/* ---- a card ---- */

static struct card {
    double (*joules)(double);
    double gain;       /* gain of the power samples */
    nanos hole, until; /* no samples in between */
    nanos reset;       /* the counter restarts from 0 */
    nanos dies;        /* the counter stops there; 0: never */
    struct spill spill;
    struct sensor_channel counter_row, power_row;
    struct series counter, power;
    struct anchored anchored;
    nanos next_anchor, gap;
    bool wants_counter;
    unsigned readings;
    uint64_t last_count;
} card;

static const struct sensor_channel COUNTER = {
    .quantity = QTY_ENERGY, .joules_per_count = 1e-3, .watts_max = 1000};
static const struct sensor_channel POWER = {
    .quantity = QTY_POWER, .watts_max = 1000, .interval_mean = true};

static void begin(double (*joules)(double), double gain)
{
    card = (struct card){.joules = joules, .gain = gain, .gap = NS_PER_S};
    spill_init(&card.spill);
    card.counter_row = COUNTER;
    card.power_row = POWER;
    series_init(&card.counter, &card.counter_row, &card.spill, MINUTE);
    series_init(&card.power, &card.power_row, &card.spill, 3 * NS_PER_S);
    anchored_init(&card.anchored, &card.counter.timeline, &card.power.timeline, &card.spill,
                  PERIOD);
}

static void end(void)
{
    anchored_release(&card.anchored);
    series_release(&card.power);
    series_release(&card.counter);
    spill_release(&card.spill);
}

/* A read at t returns the last update, dated to the middle of the period before. */
static void read_counter(nanos t)
{
    nanos update = (card.dies && t > card.dies ? card.dies : t) / TICK * TICK;
    double joules = card.joules(seconds(update));
    if (card.reset && update >= card.reset)
        joules -= card.joules(seconds(card.reset));
    uint64_t count = (uint64_t)(joules * 1e3);
    if (card.counter_row.wraps_at)
        count %= card.counter_row.wraps_at;
    bool is_new = card.readings++ > 0 && count != card.last_count;
    card.last_count = count;
    if (!is_new) /* the source passes on updates only, and the first read is not one */
        return;
    struct channel_sample sample = {
        .t = t - TICK / 2, .count = count, .sigma_us = 28900, .kind = SAMPLE_GOOD};
    assert_int_equal(series_take(&card.counter, &sample), ERR_OK);
}

static void read_power(nanos from, nanos to)
{
    for (nanos t = from + SAMPLE; t <= to; t += SAMPLE) {
        double mean = (card.joules(seconds(t)) - card.joules(seconds(t - SAMPLE))) / 0.02;
        struct channel_sample sample = {.t = t, .value = card.gain * mean, .kind = SAMPLE_GOOD};
        if (t <= card.hole || t > card.until)
            assert_int_equal(series_take(&card.power, &sample), ERR_OK);
    }
}

static double sum_at(nanos t)
{
    struct running_cursor cursor = {0};
    double sum = 0;
    nanos covered;
    assert_int_equal(window_running(&card.anchored.energy, &cursor, t, &sum, &covered), ERR_OK);
    return sum;
}

/* From `from` to `to` like a session: samples every half a second, the counter when it is due. */
static void run(nanos from, nanos to)
{
    for (nanos t = from + DRAIN; t <= to; t += DRAIN) {
        if (t >= card.next_anchor || card.wants_counter) {
            read_counter(t - 137 * MS);
            card.gap = card.gap < PERIOD / 2 ? 2 * card.gap : PERIOD;
            /* not in phase with the updates */
            card.next_anchor = t + card.gap + 7 * MS;
        }
        const struct timeline_point *last = timeline_last(&card.anchored.energy);
        double before = last ? last->sum : 0, middle = last ? sum_at(last->t / 2) : 0;
        nanos reach = last ? last->t : 0;
        read_power(t - DRAIN, t);
        assert_int_equal(anchored_advance(&card.anchored, &card.wants_counter), ERR_OK);
        if (reach == 0)
            continue;
        assert_true(timeline_last(&card.anchored.energy)->sum >= before); /* monotone */
        assert_float_equal(sum_at(reach), before, 0); /* settled values do not change */
        assert_float_equal(sum_at(reach / 2), middle, 0);
    }
}

/* The largest relative error of a minute that begins at or after `from`. */
static double worst_minute(nanos from, nanos to)
{
    double worst = 0;
    for (nanos t = from; t + MINUTE <= to; t += 370 * MS) {
        double truth = card.joules(seconds(t + MINUTE)) - card.joules(seconds(t));
        worst = fmax(worst, fabs((sum_at(t + MINUTE) - sum_at(t)) / truth - 1));
    }
    return worst;
}

/* ---- tests ---- */

static void every_minute_matches_the_counter(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof LOADS / sizeof *LOADS; i++) {
        begin(LOADS[i], 1);
        run(0, 300 * NS_PER_S);
        assert_true(worst_minute(2 * NS_PER_S, 299 * NS_PER_S) < 0.005);
        assert_true(card.readings < 18); /* 1, 2, 4 ... 30 s */
        end();
    }
}

static void follows_the_counter_if_samples_are_miscalibrated(void **state)
{
    (void)state;
    static const double GAINS[] = {0.6, 0.95, 1.05, 1.4};
    for (size_t i = 0; i < sizeof GAINS / sizeof *GAINS; i++) {
        begin(square_1s, GAINS[i]);
        run(0, 400 * NS_PER_S);
        assert_true(worst_minute(100 * NS_PER_S, 399 * NS_PER_S) < 0.005);
        /* and of all the energy, including the initial error */
        double truth = card.joules(395) - card.joules(5);
        assert_float_equal((sum_at(395 * NS_PER_S) - sum_at(5 * NS_PER_S)) / truth, 1, 0.005);
        end();
    }
}

static void continues_after_a_reset(void **state)
{
    (void)state;
    begin(square_1s, 1);
    card.reset = 123456 * MS;
    run(0, 300 * NS_PER_S);
    assert_int_equal(card.counter.gaps, 1);
    assert_true(worst_minute(2 * NS_PER_S, 299 * NS_PER_S) < 0.005);
    end();
}

static void continues_after_a_wrap(void **state)
{
    (void)state;
    begin(constant, 0.98);
    card.counter_row.wraps_at = 40000000; /* 40 kJ: after 133 s, and again */
    run(0, 300 * NS_PER_S);
    assert_int_equal(card.counter.gaps, 0);
    assert_true(worst_minute(70 * NS_PER_S, 299 * NS_PER_S) < 0.005);
    end();
}

/* A stopped process misses samples; the counter does not. */
static void bridges_missing_samples_by_the_counter(void **state)
{
    (void)state;
    struct window w;
    begin(constant, 1);
    card.hole = 100 * NS_PER_S;
    card.until = 115 * NS_PER_S;
    run(0, 115 * NS_PER_S);
    unsigned before = card.readings;
    run(115 * NS_PER_S, 116 * NS_PER_S + DRAIN);
    assert_true(card.readings > before); /* it was requested */
    run(116 * NS_PER_S + DRAIN, 200 * NS_PER_S);
    assert_true(worst_minute(60 * NS_PER_S, 199 * NS_PER_S) < 0.005);
    assert_int_equal(anchored_window(&card.anchored, 90 * NS_PER_S, 130 * NS_PER_S, &w), ERR_OK);
    assert_float_equal(w.coverage, 1, 1e-9);
    end();
}

/* Without a counter that advances, this is not counter energy: the samples have their own integral. */
static void ends_when_the_counter_dies(void **state)
{
    (void)state;
    struct window w;
    begin(constant, 1);
    card.dies = 60 * NS_PER_S;
    run(0, 400 * NS_PER_S);
    assert_int_equal(anchored_window(&card.anchored, 300 * NS_PER_S, 390 * NS_PER_S, &w),
                     ERR_NO_DATA);
    end();
    begin(constant, 1);
    card.dies = 1;
    run(0, 100 * NS_PER_S);
    assert_false(anchored_is_usable(&card.anchored));
    end();
}

/* What the counter has confirmed is more certain than what is beyond its last reading. */
static void uncertainty_grows_beyond_the_last_anchor(void **state)
{
    (void)state;
    struct window anchored, beyond;
    begin(square_1s, 1);
    run(0, 240 * NS_PER_S);
    nanos last = card.anchored.anchor.t;
    assert_int_equal(anchored_window(&card.anchored, last - 100 * NS_PER_S, last, &anchored),
                     ERR_OK);
    assert_int_equal(anchored_window(&card.anchored, last, last + 5 * NS_PER_S, &beyond), ERR_OK);
    assert_true(sqrt(beyond.variance) / beyond.sum > sqrt(anchored.variance) / anchored.sum);
    double truth = card.joules(seconds(last)) - card.joules(seconds(last) - 100);
    assert_true(fabs(anchored.sum - truth) < 3 * sqrt(anchored.variance));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_minute_matches_the_counter),
        cmocka_unit_test(follows_the_counter_if_samples_are_miscalibrated),
        cmocka_unit_test(continues_after_a_reset),
        cmocka_unit_test(continues_after_a_wrap),
        cmocka_unit_test(bridges_missing_samples_by_the_counter),
        cmocka_unit_test(ends_when_the_counter_dies),
        cmocka_unit_test(uncertainty_grows_beyond_the_last_anchor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
