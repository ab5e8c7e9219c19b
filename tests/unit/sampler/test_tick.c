/* The tick finder against simulated sensors. Time is simulated: every case is deterministic. */
#include "support/unit.h"

#include <stdlib.h>

#include "sampler/tick.h"

#define US NS_PER_US
#define MS NS_PER_MS

/* ---- a sensor and its reader ---- */

struct rig {
    /* the sensor */
    double period;       /* ns, true */
    double phase;        /* ns: a tick falls on phase + k x period */
    unsigned repeat_pct; /* ticks that do not change the value */
    bool stuck;
    /* a read */
    nanos cost;      /* how long it takes */
    nanos hiccup;    /* 0, or how long every 50th takes */
    nanos oversleep; /* maximum oversleep */
    unsigned stall_pct;
    nanos
        stall_max; /* how long the scheduler suspends the reader, in `stall_pct` of its sleeps and reads */
    /* the reader */
    struct tick tick;
    nanos now;
    nanos poll; /* while not locked */
    nanos gap;
    unsigned long reads, news;
    uint64_t shown;
    nanos last_told;
    uint64_t seed;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static double uniform(struct rig *rig)
{
    return (double)next_random(&rig->seed) / 2147483648.0;
}

static int64_t tick_number(const struct rig *rig, nanos t)
{
    return (int64_t)floor(((double)t - rig->phase) / rig->period);
}

/* The value at t: the number of the last tick that changed it. */
static uint64_t value_at(const struct rig *rig, nanos t)
{
    int64_t n = tick_number(rig, t);
    if (rig->stuck)
        return 1;
    while (rig->repeat_pct && (uint64_t)n * 2654435761u % 100 < rig->repeat_pct)
        n--;
    return (uint64_t)n;
}

struct errors {
    unsigned count, within_1, within_3, within_slack;
    unsigned undated,
        dated_later; /* dated to the period only; by a read that found them unchanged */
    double worst;    /* ns */
};

static nanos stall(struct rig *rig)
{
    if (!rig->stall_pct || uniform(rig) * 100 >= rig->stall_pct)
        return 0;
    return (nanos)(uniform(rig) * (double)rig->stall_max);
}

/* One read; the date of a new value is compared with the true tick. */
static void read_once(struct rig *rig, struct errors *errors)
{
    nanos cost = rig->hiccup && rig->reads % 50 == 49 ? rig->hiccup : rig->cost;
    cost += stall(rig);
    nanos begin = rig->now + (nanos)(uniform(rig) * (double)rig->oversleep) + stall(rig);
    nanos taken = begin + (nanos)(uniform(rig) * (double)cost);
    nanos t = begin + cost / 2;
    uint64_t value = value_at(rig, taken);
    bool is_new = rig->reads == 0 || value != rig->shown;
    struct tick_time when;
    bool is_dated = tick_observe(&rig->tick, t, cost / 2, is_new, &when);
    assert_true(is_dated || !is_new);
    rig->now = begin + cost;
    rig->reads++;
    if (!is_dated)
        return;
    rig->shown = value;
    rig->news += is_new;
    assert_true(when.t <= t);
    assert_true(when.t >= rig->last_told);
    assert_true(when.sigma >= 0);
    rig->last_told = when.t;
    if (!errors)
        return;
    double error = fabs((double)when.t - (rig->phase + (double)value * rig->period));
    errors->count++;
    errors->within_1 += error <= (double)when.sigma;
    errors->within_3 += error <= 3 * (double)when.sigma + 1;
    errors->within_slack += error <= (double)when.sigma * 1.733 + 2;
    errors->worst = fmax(errors->worst, error);
    errors->undated += is_new && (double)when.sigma > rig->period / 8;
    errors->dated_later += !is_new && (double)when.sigma < rig->period / 8;
}

/* Reads like the sampler - polls until locked, then when due - for `length`. */
static void run_for(struct rig *rig, nanos length, struct errors *errors)
{
    nanos until = rig->now + length;
    while (rig->now < until) {
        read_once(rig, errors);
        nanos next = tick_next_read(&rig->tick, rig->now, rig->gap);
        rig->now = next ? (next > rig->now ? next : rig->now) : rig->now + rig->poll;
    }
}

static void start(struct rig *rig, double period_ms)
{
    *rig = (struct rig){
        .period = period_ms * 1e6,
        .phase = 123457,
        .cost = 2 * US,
        .oversleep = 60 * US,
        .now = NS_PER_S,
        .poll = 4 * MS,
        .gap = (nanos)(period_ms * 0.75e6),
        .seed = 42,
    };
    tick_init(&rig->tick);
}

/* Runs until locked and some time on; then checks the invariants of every working sensor. */
static void check_follows(struct rig *rig, double length_s, double reads_per_tick)
{
    run_for(rig, (nanos)(rig->period * 60), NULL);
    assert_true(rig->tick.locked);
    unsigned long reads = rig->reads, news = rig->news;
    nanos begun = rig->now;
    struct errors errors = {0};
    run_for(rig, (nanos)(length_s * 1e9), &errors);
    double ticks = (double)(rig->now - begun) / rig->period;
    assert_true(rig->tick.locked);
    assert_near((double)rig->tick.period, rig->period, rig->period * 0.01);
    if (rig->repeat_pct == 0)
        assert_near((double)(rig->news - news), ticks, 2 + ticks * 0.01);
    assert_true((double)(rig->reads - reads) <= reads_per_tick * ticks + 4);
    assert_true(errors.within_slack * 10 >= errors.count * 9);
    assert_true(errors.within_3 * 100 >= errors.count * 95);
}

/* ---- sensors ---- */

static void follows_a_fast_sensor(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 1);
    rig.poll = 250 * US;
    rig.oversleep = 20 * US;
    check_follows(&rig, 10, 1.2);
}

static void follows_gpu_sensors(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 20);
    check_follows(&rig, 60, 1.2);
    start(&rig, 100);
    check_follows(&rig, 120, 1.2);
}

static void dates_are_much_more_precise_than_the_period(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 100);
    run_for(&rig, 10 * NS_PER_S, NULL);
    struct errors errors = {0};
    run_for(&rig, 100 * NS_PER_S, &errors);
    assert_true(errors.worst <= 0.05 * rig.period);
    assert_true(rig.tick.slack <= (nanos)(0.05 * rig.period));
}

static void follows_with_slow_reads(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 100);
    rig.cost = 3 * MS;
    check_follows(&rig, 120, 1.2);
    start(&rig, 100);
    rig.cost = 3 * MS;
    rig.hiccup = 15 * MS;
    rig.oversleep = 500 * US;
    check_follows(&rig, 120, 1.2);
    start(&rig, 20);
    rig.cost = 3 * MS;
    check_follows(&rig, 60, 1.8); /* the read itself takes a seventh of the period */
}

static void follows_with_noisy_wake_ups(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 100);
    rig.oversleep = 10 * MS;
    check_follows(&rig, 120, 1.3);
}

/* A tick that came unseen during a stall is not counted as part of the next interval: that period would be too long,
 * and a reader that skips ticks would find every value consistent with it. */
static void stalls_of_the_reader_are_no_longer_periods(void **state)
{
    (void)state;
    struct errors all = {0};
    unsigned locked = 0, seeds = test_is_instrumented() ? 200 : 2000;
    for (unsigned seed = 0; seed < seeds; seed++) {
        struct rig rig;
        start(&rig, 100);
        rig.phase += seed * 1e6;
        rig.seed = seed;
        rig.gap = seed % 2 ? NS_PER_S : 75 * MS;
        rig.stall_pct = 1 + seed % 20;
        rig.stall_max = (nanos)(100 + seed % 7 * 100) * MS;
        run_for(&rig, 10 * NS_PER_S, NULL);
        struct errors errors = {0};
        run_for(&rig, 10 * NS_PER_S, &errors);
        if (rig.tick.locked) {
            double off = fabs((double)rig.tick.period - rig.period);
            assert_true(off <= (double)rig.tick.period_slack + rig.period * 1e-4);
            locked++;
        }
        all.count += errors.count;
        all.within_slack += errors.within_slack;
    }
    assert_true(all.count > seeds * 40 && locked > seeds / 10);
    assert_true(all.count - all.within_slack <= all.count / 5000);
}

static void follows_a_drifting_sensor_clock(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct rig rig;
        start(&rig, 100);
        run_for(&rig, 20 * NS_PER_S, NULL);
        assert_true(rig.tick.locked);
        /* From here on the clock is off by 100 ppm, with continuous phase. */
        double tick = rig.phase + (double)tick_number(&rig, rig.now) * rig.period;
        rig.period *= 1 + sign * 1e-4;
        rig.phase = tick - rig.period * floor(tick / rig.period);
        rig.shown = value_at(&rig, rig.now);
        check_follows(&rig, 300, 1.2);
    }
}

static void a_phase_jump_is_detected(void **state)
{
    (void)state;
    for (int percent = 5; percent < 100; percent += 10) {
        struct rig rig;
        start(&rig, 100);
        rig.cost = 3 * MS;
        run_for(&rig, 20 * NS_PER_S, NULL);
        rig.phase += rig.period * percent / 100;
        run_for(&rig, 6 * NS_PER_S, NULL);
        check_follows(&rig, 60, 1.2);
    }
}

static void repeated_values_do_not_lose_the_phase(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 100);
    run_for(&rig, 10 * NS_PER_S, NULL);
    rig.repeat_pct = 10;
    check_follows(&rig, 120, 1.5);
    start(&rig, 100);
    rig.repeat_pct = 20;
    run_for(&rig, 20 * NS_PER_S, NULL);
    check_follows(&rig, 60, 1.8);
}

static void stuck_sensor_unlocks_and_relocks(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 100);
    run_for(&rig, 10 * NS_PER_S, NULL);
    assert_true(rig.tick.locked);
    rig.stuck = true;
    rig.shown = 1;
    unsigned long reads = rig.reads;
    run_for(&rig, 280 * MS, NULL);
    assert_true(rig.reads - reads <= 12);
    run_for(&rig, NS_PER_S, NULL);
    assert_false(rig.tick.locked);
    assert_near((double)rig.tick.period, rig.period, rig.period * 0.01);
    assert_int_equal(tick_next_read(&rig.tick, rig.now, rig.gap), 0);
    rig.stuck = false;
    check_follows(&rig, 30, 1.2);
}

static void constant_sensor_never_locks(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 100);
    rig.stuck = true;
    run_for(&rig, 10 * NS_PER_S, NULL);
    assert_false(rig.tick.locked);
    assert_int_equal(rig.tick.period, 0);
    assert_int_equal(rig.news, 1);
}

/* Reads slower than the ticks: each value is new, and only pairs of reads show the phase. */
static void ticks_may_be_skipped_deliberately(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 100);
    run_for(&rig, 10 * NS_PER_S, NULL);
    rig.gap = 750 * MS;
    struct errors errors = {0};
    unsigned long reads = rig.reads;
    run_for(&rig, 600 * NS_PER_S, &errors);
    assert_true(rig.tick.locked);
    assert_true(rig.reads - reads <= 600 / 0.75 * 1.5);
    assert_true(errors.within_slack * 10 >= errors.count * 9);
    assert_true(rig.tick.slack < 10 * MS);
}

/* While the phase is uncertain, ticks are read in pairs. If the first read has the new value, the
 * second one finds it unchanged, and dates it: otherwise every other value would be lost. */
static void an_ambiguous_value_is_dated_by_the_next_read(void **state)
{
    (void)state;
    struct errors errors = {0};
    for (unsigned i = 0; i < 40; i++) {
        struct rig rig;
        start(&rig, 100);
        rig.seed = i;
        rig.phase = 1e6 * i;
        while (!rig.tick.locked)
            run_for(&rig, 1, NULL);
        rig.gap = 750 * MS;
        run_for(&rig, 5 * NS_PER_S, &errors);
    }
    assert_true(errors.undated > 40);
    assert_true(errors.dated_later > errors.undated / 4);
    assert_true(errors.within_slack * 10 >= errors.count * 9);
}

/* A millisecond counter polled every 20 ms after the period was learned: the phase is lost soon,
 * and the dates must show it. */
static void slow_polling_claims_no_phase(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 0.997);
    rig.poll = 250 * US;
    for (int i = 0; i < 60; i++) {
        read_once(&rig, NULL);
        rig.now += rig.poll;
    }
    assert_near((double)rig.tick.period, rig.period, rig.period * 0.05);
    struct errors errors = {0};
    for (int i = 0; i < 5000; i++) {
        read_once(&rig, &errors);
        rig.now += 20 * MS;
    }
    assert_true(errors.within_slack * 100 >= errors.count * 95);
    assert_true(errors.worst <= 1.1 * rig.period);
}

static void equal_times_are_handled(void **state)
{
    (void)state;
    struct tick tick;
    struct tick_time when;
    tick_init(&tick);
    for (int i = 0; i < 10; i++) {
        tick_observe(&tick, 5 * MS, 0, true, &when);
        assert_int_equal(when.t, 5 * MS);
    }
    assert_false(tick.locked);
}

static void unlock_keeps_the_period_as_a_guess(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 100);
    run_for(&rig, 10 * NS_PER_S, NULL);
    nanos period = rig.tick.period;
    tick_unlock(&rig.tick);
    assert_false(rig.tick.locked);
    assert_int_equal(rig.tick.period, period);
    /* The first read after that may show a value as old as the period. */
    struct tick_time when;
    tick_observe(&rig.tick, rig.now, 0, true, &when);
    assert_near((double)when.t, (double)(rig.now - period / 2), 2);
    assert_near((double)when.sigma, (double)period / 2 / sqrt(3), (double)period / 100);
}

/* A thread that is preempted in a read got the value at any time during it. */
static void reads_longer_than_the_period_are_dated_within_the_read(void **state)
{
    (void)state;
    struct rig rig;
    struct errors errors = {0};
    start(&rig, 1);
    rig.poll = MS / 10;
    run_for(&rig, 50 * MS, NULL);
    assert_near((double)rig.tick.period, 1e6, 0.2e6);
    rig.hiccup = 30 * MS;
    for (int i = 0; i < 5000; i++) {
        tick_unlock(&rig.tick);
        rig.now += 10 * MS;
        read_once(&rig, &errors);
    }
    assert_int_equal(errors.count, 5000);
    assert_int_equal(errors.within_slack, errors.count);
}

/* After the reads that learn the period the value is read after 1, 2, 4 ... s, whole periods of the sensor. */
static double bias_of_rare_reads(double period_ms, double phase_ms)
{
    struct rig rig = {
        .period = period_ms * 1e6, .phase = phase_ms * 1e6, .cost = 100 * US, .now = NS_PER_S};
    struct tick_time when;
    double sum = 0;
    tick_init(&rig.tick);
    for (unsigned i = 0; i < 50 && rig.tick.period == 0; i++, rig.now += 20 * MS)
        read_once(&rig, NULL);
    assert_true(rig.tick.period > 0);
    nanos t = rig.tick.read_t;
    for (int i = 0; i < 5; i++) {
        t += (NS_PER_S << i) + tick_to_mid_period(&rig.tick);
        assert_true(tick_observe(&rig.tick, t, 50 * US, true, &when));
        sum += (double)when.t - (rig.phase + (double)tick_number(&rig, t) * rig.period);
    }
    return sum / 5;
}

static void rare_reads_are_dated_without_bias(void **state)
{
    (void)state;
    double sum = 0;
    for (int phase = 0; phase < 100; phase++)
        sum += bias_of_rare_reads(100, phase);
    assert_near(sum / 100, 0, 1e6);
    /* The period of an H200's counter: the tick was found to 10 ms, and its phase drifts by 1 ms a second. */
    for (int phase = 0; phase < 100; phase++)
        assert_near(bias_of_rare_reads(99.9, phase), 0, 10e6 + 1e6 * (1 + 3 + 7 + 15 + 31) / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_a_fast_sensor),
        cmocka_unit_test(follows_gpu_sensors),
        cmocka_unit_test(dates_are_much_more_precise_than_the_period),
        cmocka_unit_test(follows_with_slow_reads),
        cmocka_unit_test(follows_with_noisy_wake_ups),
        cmocka_unit_test(stalls_of_the_reader_are_no_longer_periods),
        cmocka_unit_test(follows_a_drifting_sensor_clock),
        cmocka_unit_test(a_phase_jump_is_detected),
        cmocka_unit_test(repeated_values_do_not_lose_the_phase),
        cmocka_unit_test(stuck_sensor_unlocks_and_relocks),
        cmocka_unit_test(constant_sensor_never_locks),
        cmocka_unit_test(ticks_may_be_skipped_deliberately),
        cmocka_unit_test(an_ambiguous_value_is_dated_by_the_next_read),
        cmocka_unit_test(slow_polling_claims_no_phase),
        cmocka_unit_test(equal_times_are_handled),
        cmocka_unit_test(unlock_keeps_the_period_as_a_guess),
        cmocka_unit_test(reads_longer_than_the_period_are_dated_within_the_read),
        cmocka_unit_test(rare_reads_are_dated_without_bias),
    };
    return RUN_TESTS(tests);
}
