/* test: tsan, valgrind */
/* The whole sampler over scripted sensors: threads, loss and return, suspend, unusual devices.  Counters follow the
 * clock at a known power, so every window has a known energy.  The clock is stepped, so that a read takes as long as its
 * script says and is never late. */
#include "support/unit.h"

#include <stdatomic.h>
#include <string.h>

#include "core/clock.h"
#include "port/thread.h"
#include "sampler/sampler.h"
#include "sampler/series.h"
#include "support/stepped_clock.h"

#define MS        NS_PER_MS
#define WATTS     100.0
#define PER_COUNT 1e-6

/* ---- adjustable clocks ---- */

static _Atomic int64_t suspended, wall_step;
static _Atomic int64_t late; /* how long the next thread that reads the clock is delayed */

static nanos test_boot(void)
{
    thread_sleep(atomic_exchange(&late, 0));
    return stepped_clock_now() + suspended;
}

static nanos test_wall(void)
{
    return stepped_clock_now() + wall_step;
}

static const struct clock_source CLOCKS = {stepped_clock_now, test_boot, test_wall};

/* ---- the scripted sensor ---- */

struct script {
    nanos tick;        /* the counters' update period */
    nanos read_period; /* the group's default */
    bool follow, power_too;
    bool apart; /* power is read in a separate group, before the counters */
    unsigned channels;
    _Atomic int64_t block; /* a read takes this long, or until it is 0 */
    atomic_bool gone;      /* reads return lost, opens fail */
    atomic_bool changed;   /* opens with another resolution */
    atomic_bool stuck, flaky;
    atomic_uint opened, closed, reads;
};

enum { SCRIPTS = 3 };
static struct script scripts[SCRIPTS];

static enum err scripted_open(const struct sensor_finding *finding, struct sensor *out,
                              struct error *why)
{
    struct script *script = &scripts[finding->key];
    if (script->gone)
        return err_set(why, ERR_ABSENT, "gone");
    for (unsigned i = 0; i < script->channels; i++) {
        char name[32];
        snprintf(name, sizeof name, "counter%u", i);
        struct sensor_channel *channel = sensor_add_channel(out, name, "test", QTY_ENERGY);
        channel->joules_per_count = script->changed ? 2 * PER_COUNT : PER_COUNT;
        channel->watts_max = 10000;
        channel->group = script->apart;
    }
    if (script->power_too)
        sensor_add_channel(out, "power", "test", QTY_POWER)->watts_max = 1000;
    out->group_count = script->apart ? 2 : 1;
    for (unsigned g = 0; g < out->group_count; g++)
        out->groups[g] = (struct sensor_group){.period_default = script->read_period,
                                               .period_min = MS,
                                               .follow_ticks = script->follow};
    out->state = script;
    script->opened++;
    return ERR_OK;
}

static void block_read(const struct script *script, nanos since)
{
    for (nanos left; (left = since + script->block - clock_now()) > 0;)
        thread_sleep(left < NS_PER_S ? left : NS_PER_S);
}

static enum err scripted_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    struct script *script = sensor->state;
    bool counters = !script->apart || group == 1, power = !script->apart || group == 0;
    unsigned n = script->reads++;
    nanos before = clock_now();
    if (script->gone)
        return ERR_LOST;
    if (script->flaky && n % 2)
        return ERR_BUSY;
    if (counters)
        block_read(script, before);
    nanos t = before + (clock_now() - before) / 2;
    nanos tick = script->stuck ? NS_PER_S : t / script->tick * script->tick;
    for (unsigned i = 0; counters && i < script->channels; i++)
        observe_count(out, i, t, (uint64_t)(seconds(tick) * WATTS * (i + 1) / PER_COUNT));
    if (script->power_too && power)
        observe_value(out, script->channels, t, WATTS);
    return ERR_OK;
}

static void scripted_close(struct sensor *sensor)
{
    struct script *script = sensor->state;
    script->closed++;
}

static const struct sensor_driver SCRIPTED = {
    .name = "scripted", .open = scripted_open, .read = scripted_read, .close = scripted_close};

static struct sampler *sampler;

static struct script *add_script(struct sampler *to, unsigned key, nanos tick, nanos read_period)
{
    struct script *script = &scripts[key];
    *script = (struct script){.tick = tick, .read_period = read_period, .channels = 1};
    struct sensor_finding finding = {.driver = &SCRIPTED, .key = key, .kind = SENSOR_TEST};
    snprintf(finding.id, sizeof finding.id, "scripted:%u", key);
    struct error why;
    if (to)
        assert_int_equal(sampler_add(to, &finding, &why), ERR_OK);
    return script;
}

/* Like add_script, for scripts that must be set before opening. */
static void open_script(unsigned key)
{
    struct sensor_finding finding = {.driver = &SCRIPTED, .key = key, .kind = SENSOR_TEST};
    struct error why;
    assert_int_equal(sampler_add(sampler, &finding, &why), ERR_OK);
}

static void start(void)
{
    struct error why;
    assert_int_equal(sampler_start(sampler, &why), ERR_OK);
    sampler_ready(sampler);
}

static int set_up(void **state)
{
    (void)state;
    stepped_clock_start();
    clock_replace(&CLOCKS);
    sampler = sampler_new(0);
    return sampler ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sampler_free(sampler);
    stepped_clock_stop();
    suspended = wall_step = late = 0;
    for (unsigned i = 0; i < SCRIPTS; i++)
        if (scripts[i].opened != scripts[i].closed)
            return -1;
    memset(scripts, 0, sizeof scripts);
    return 0;
}

static struct source_state source_state(void)
{
    struct source_state state;
    sampler_source(sampler, 0, &state);
    return state;
}

/* Checks the mean power of the covered time; returns the coverage. */
static double check_power(struct sampler *of, size_t channel, nanos from, nanos to)
{
    struct window w;
    sampler_settle(of, to);
    assert_int_equal(sampler_window(of, 0, channel, from, to, &w), ERR_OK);
    double watts = WATTS * (double)(channel + 1);
    assert_true(w.covered_s > 0);
    /* The tolerance is one tick at each edge. */
    assert_near(w.sum, watts * w.covered_s,
                0.02 * watts * w.covered_s + 2 * seconds(scripts[0].tick) * watts);
    return w.coverage;
}

/* ---- tests ---- */

static void windows_are_correct_during_and_after_the_run(void **state)
{
    (void)state;
    add_script(NULL, 0, MS, 10 * MS)->power_too = true;
    open_script(0);
    start();
    nanos from = clock_now();
    thread_sleep(150 * MS);
    nanos middle = clock_now();
    assert_true(check_power(sampler, 0, from, middle) > 0.9);
    thread_sleep(50 * MS);
    nanos to = clock_now();
    sampler_settle(sampler, to);
    sampler_stop(sampler);
    assert_true(check_power(sampler, 0, from, to) > 0.9);
    struct window w;
    assert_int_equal(sampler_window(sampler, 0, 1, from, to, &w), ERR_OK);
    assert_near(w.sum, WATTS * w.covered_s, 1e-6);
    double low, high;
    assert_int_equal(sampler_extremes(sampler, 0, 0, from, to, &low, &high), ERR_OK);
    assert_true(low > 0 && low <= WATTS * 1.01 && high >= WATTS * 0.99);
    struct channel_state channel;
    sampler_channel(sampler, 0, 0, &channel);
    assert_true(channel.updates > 0 && channel.has_value && channel.gaps == 0);
    assert_int_equal(sampler_count(sampler), 1);
    assert_string_equal(sampler_sensor(sampler, 0)->channels[1].name, "power");
    assert_true(sampler_reads(sampler) >= 10);
    assert_true(source_state().dropped == 0 && source_state().failed == 0);
    assert_int_equal(sampler_window(sampler, 0, 0, to + NS_PER_S, to + 2 * NS_PER_S, &w),
                     ERR_NO_DATA);
}

static void ticks_are_followed_with_blocking_reads(void **state)
{
    (void)state;
    struct script *script = add_script(NULL, 0, 100 * MS, 100 * MS);
    script->follow = true;
    script->block = 3 * MS;
    open_script(0);
    start();
    thread_sleep(500 * MS);
    nanos from = clock_now();
    unsigned reads = script->reads;
    script->block = 15 * MS;
    thread_sleep(900 * MS);
    nanos to = clock_now();
    assert_true(check_power(sampler, 0, from, to) > 0.7);
    assert_true(script->reads - reads < 120);
    struct channel_state channel;
    sampler_channel(sampler, 0, 0, &channel);
    assert_true(channel.period > 90 * MS && channel.period < 110 * MS);
}

/* Time that the reader was suspended does not count as time to learn. */
static void a_period_is_learned_after_stalls(void **state)
{
    (void)state;
    add_script(NULL, 0, 100 * MS, 100 * MS)->follow = true;
    open_script(0);
    start();
    for (int i = 0; i < 3; i++) {
        late = 400 * MS;
        thread_sleep(410 * MS);
    }
    nanos end = clock_now() + 10 * NS_PER_S;
    struct channel_state channel = {0};
    for (; channel.period == 0 && clock_now() < end; thread_sleep(10 * MS))
        sampler_channel(sampler, 0, 0, &channel);
    assert_true(channel.period > 50 * MS);
}

static void the_first_reading_makes_no_peak(void **state)
{
    (void)state;
    add_script(NULL, 0, 100 * MS, 100 * MS)->follow = true;
    open_script(0);
    nanos from = clock_now();
    start();
    thread_sleep(300 * MS);
    sampler_settle(sampler, clock_now());
    double low, high;
    assert_int_equal(sampler_extremes(sampler, 0, 0, from, clock_now(), &low, &high), ERR_OK);
    assert_true(high < 2 * WATTS);
}

/* Slow reads, and a thread that is late to read, as on a busy machine, are waited for: a measurement begins with a
 * reading. */
static void start_waits_for(nanos slow_read, nanos late_thread)
{
    struct script *script = add_script(sampler, 0, MS, 10 * MS);
    script->block = slow_read;
    late = late_thread;
    start();
    script->block = 0;
    struct channel_state channel;
    sampler_channel(sampler, 0, 0, &channel);
    assert_true(channel.t > 0);
    nanos from = clock_now();
    thread_sleep(30 * MS);
    nanos to = clock_now();
    struct window w;
    sampler_settle(sampler, to);
    assert_int_equal(sampler_window(sampler, 0, 0, from, to, &w), ERR_OK);
    assert_near(w.coverage, 1, 1e-9);
}

static void start_waits_for_a_slow_first_reading(void **state)
{
    (void)state;
    start_waits_for(150 * MS, 0);
}

static void start_waits_for_a_late_first_reading(void **state)
{
    (void)state;
    start_waits_for(150 * MS, 150 * MS);
}

/* The thread reads one group after the other: that one of them has been read says nothing about the
 * next, which on a busy machine may be much later. */
static void settle_waits_for_a_read_of_each_group(void **state)
{
    (void)state;
    struct script *script = add_script(NULL, 0, MS, 10 * MS);
    script->power_too = script->apart = true;
    open_script(0);
    start();
    nanos from = clock_now();
    thread_sleep(30 * MS);
    nanos to = clock_now();
    script->block = 150 * MS;
    struct window w;
    sampler_settle(sampler, to);
    assert_int_equal(sampler_window(sampler, 0, 0, from, to, &w), ERR_OK);
    assert_near(w.coverage, 1, 1e-9);
    script->block = 0;
}

/* A driver call that does not return: the sampler stops without its thread, whose data stays valid
 * until the call returns. */
static void a_driver_that_does_not_return_is_abandoned(void **state)
{
    (void)state;
    struct script *script = add_script(sampler, 0, MS, 10 * MS);
    start();
    nanos from = clock_now();
    thread_sleep(20 * MS);
    script->block = NS_PER_S * 3600;
    while (!source_state().is_lost)
        thread_sleep(50 * MS);
    sampler_settle(sampler, clock_now()); /* without waiting for it */
    struct channel_state channel;
    sampler_channel(sampler, 0, 0, &channel);
    assert_true(channel.blocked_s >= 1);
    struct window w;
    assert_int_equal(sampler_window(sampler, 0, 0, from, clock_now(), &w), ERR_OK);
    assert_true(w.coverage < 0.9);
    sampler_free(sampler);
    sampler = NULL;
    assert_true(script->closed == 0);
    unsigned reads = script->reads;
    script->block = 0;
    while (script->closed == 0) /* when the call returns */
        thread_sleep(50 * MS);
    assert_true(script->reads == reads);
}

static void a_lost_device_is_available_again(void **state)
{
    (void)state;
    struct script *script = add_script(sampler, 0, MS, 5 * MS);
    start();
    nanos from = clock_now();
    thread_sleep(100 * MS);
    script->gone = true;
    while (!source_state().is_lost)
        thread_sleep(5 * MS);
    nanos lost = clock_now();
    thread_sleep(50 * MS);
    script->gone = false;
    /* Repeated settling must not prevent it from coming back. */
    nanos back = lost;
    for (nanos now = lost; source_state().is_lost; now = clock_now()) {
        back = now;
        sampler_settle(sampler, now);
        thread_sleep(MS);
    }
    thread_sleep(100 * MS);
    nanos to = clock_now();
    double coverage = check_power(sampler, 0, from, to);
    assert_true(coverage < 1 - 0.9 * (double)(back - lost) / (double)(to - from));
    assert_int_equal(source_state().lost, 1);
    assert_int_equal(source_state().back, 1);
    assert_int_equal(script->opened, 2);
    struct channel_state channel;
    sampler_channel(sampler, 0, 0, &channel);
    assert_int_equal(channel.gaps, 1);
}

static void another_device_does_not_replace_the_lost_one(void **state)
{
    (void)state;
    struct script *script = add_script(sampler, 0, MS, 5 * MS);
    start();
    script->gone = true;
    script->changed = true;
    while (!source_state().is_lost)
        thread_sleep(5 * MS);
    script->gone = false;
    while (script->closed < 2) /* the lost one, and the remaining one */
        thread_sleep(5 * MS);
    assert_true(source_state().is_lost);
    script->changed = false;
    while (source_state().is_lost)
        thread_sleep(5 * MS);
    assert_int_equal(source_state().back, 1);
}

static void stop_works_while_a_device_is_lost(void **state)
{
    (void)state;
    struct script *script = add_script(sampler, 0, MS, 5 * MS);
    start();
    script->gone = true;
    while (!source_state().is_lost)
        thread_sleep(5 * MS);
    sampler_stop(sampler);
    sampler_stop(sampler);
    assert_int_equal(script->opened, script->closed);
}

static void failing_reads_lose_no_energy(void **state)
{
    (void)state;
    add_script(sampler, 0, MS, 5 * MS)->flaky = true;
    start();
    nanos from = clock_now();
    thread_sleep(200 * MS);
    assert_true(check_power(sampler, 0, from, clock_now()) > 0.5);
    assert_true(source_state().failed > 0);
    assert_int_equal(source_state().lost, 0);
}

static void suspend_is_a_gap_and_a_wall_clock_step_is_not(void **state)
{
    (void)state;
    add_script(sampler, 0, MS, 5 * MS);
    start();
    nanos from = clock_now();
    thread_sleep(50 * MS);
    struct channel_state channel;
    wall_step = -3600 * NS_PER_S;
    thread_sleep(50 * MS);
    sampler_channel(sampler, 0, 0, &channel);
    assert_int_equal(channel.gaps, 0);
    suspended += 10 * NS_PER_S;
    while (sampler_channel(sampler, 0, 0, &channel), channel.gaps == 0)
        thread_sleep(5 * MS);
    thread_sleep(100 * MS);
    assert_true(check_power(sampler, 0, from, clock_now()) < 1);
    sampler_channel(sampler, 0, 0, &channel);
    assert_int_equal(channel.gaps, 1);
    assert_int_equal(channel.last_error, ERR_LOST);
    assert_int_equal(source_state().lost, 0);
}

static void stuck_counter_has_no_energy(void **state)
{
    (void)state;
    add_script(sampler, 0, MS, 5 * MS)->stuck = true;
    start();
    nanos from = clock_now();
    thread_sleep(50 * MS);
    nanos to = clock_now();
    sampler_settle(sampler, to);
    struct window w;
    struct channel_state channel;
    assert_int_equal(sampler_window(sampler, 0, 0, from, to, &w), ERR_NO_DATA);
    assert_false(is_known(w.sum));
    sampler_channel(sampler, 0, 0, &channel);
    assert_int_equal(channel.updates, 0);
    assert_false(channel.has_value);
}

static void every_channel_of_a_large_sensor_is_read(void **state)
{
    (void)state;
    add_script(NULL, 0, MS, 2 * MS)->channels = SENSOR_CHANNELS_MAX;
    open_script(0);
    start();
    nanos from = clock_now();
    thread_sleep(100 * MS);
    nanos to = clock_now();
    for (size_t i = 0; i < SENSOR_CHANNELS_MAX; i++)
        assert_true(check_power(sampler, i, from, to) > 0.5);
}

static void two_samplers_run_concurrently(void **state)
{
    (void)state;
    struct sampler *other = sampler_new(2 * MS);
    struct error why;
    add_script(sampler, 0, MS, 5 * MS);
    add_script(other, 1, MS, 5 * MS);
    start();
    assert_int_equal(sampler_start(other, &why), ERR_OK);
    sampler_ready(other);
    nanos from = clock_now();
    thread_sleep(100 * MS);
    nanos to = clock_now();
    assert_true(check_power(sampler, 0, from, to) > 0.5);
    assert_true(check_power(other, 0, from, to) > 0.5);
    sampler_free(other);
    thread_sleep(20 * MS);
    assert_true(check_power(sampler, 0, from, clock_now()) > 0.5);
}

struct walk {
    size_t count, calls;
    nanos last;
};

static bool take_points(const struct timeline_point *points, size_t count, void *context)
{
    struct walk *walk = context;
    for (size_t i = 0; i < count; i++) {
        assert_true(points[i].t > walk->last);
        walk->last = points[i].t;
    }
    walk->count += count;
    walk->calls++;
    /* A query from the callback must not deadlock. */
    struct window w;
    assert_int_equal(sampler_window(sampler, 0, 0, 0, walk->last + 1, &w),
                     walk->count > 1 ? ERR_OK : ERR_NO_DATA);
    return walk->calls < 100;
}

static void points_are_walked_while_more_are_added(void **state)
{
    (void)state;
    add_script(sampler, 0, MS, MS);
    start();
    thread_sleep(400 * MS);
    struct channel_state channel;
    sampler_channel(sampler, 0, 0, &channel);
    struct walk walk = {0};
    assert_int_equal(sampler_points(sampler, 0, 0, INT64_MIN, take_points, &walk), ERR_OK);
    assert_true(walk.count >= channel.updates);
    assert_true(walk.last >= channel.t);
}

/* ---- a sensor whose power appears late ---- */

#define LAG (30 * MS)

static _Atomic int64_t power_reads[64]; /* when power was read */
static atomic_uint power_read_count;

static enum err lagging_open(const struct sensor_finding *finding, struct sensor *out,
                             struct error *why)
{
    (void)finding, (void)why;
    sensor_add_channel(out, "temperature", "test", QTY_TEMPERATURE);
    struct sensor_channel *power = sensor_add_channel(out, "power", "test", QTY_POWER);
    power->watts_max = 1000;
    power->interval_mean = true;
    power->lag = LAG;
    power->group = 1;
    out->group_count = 2;
    for (unsigned g = 0; g < 2; g++)
        out->groups[g] = (struct sensor_group){.period_default = 10 * NS_PER_S,
                                               .period_min = MS,
                                               .slow_period = g ? 10 * NS_PER_S : 20 * MS,
                                               .slow_period_min = g ? 400 * MS : 20 * MS};
    return ERR_OK;
}

static enum err lagging_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    (void)sensor;
    nanos now = clock_now();
    if (group == 1) {
        power_reads[power_read_count % 64] = now; /* before it is counted */
        power_read_count++;
    }
    observe_value(out, group, group == 1 ? now - LAG : now, WATTS);
    return ERR_OK;
}

static void lagging_close(struct sensor *sensor)
{
    (void)sensor;
}

/* Power is not read along with the temperature shortly before the expected tick, for which it would have to be read
 * again. */
static void an_early_read_is_not_repeated_for_the_tick(void **state)
{
    (void)state;
    static const struct sensor_driver LAGGING = {
        .name = "lagging", .open = lagging_open, .read = lagging_read, .close = lagging_close};
    struct sensor_finding finding = {.driver = &LAGGING, .kind = SENSOR_TEST, .id = "lagging:0"};
    struct error why;
    const nanos every = 600 * MS;
    sampler_set_low_overhead(sampler, 0);
    assert_int_equal(sampler_add(sampler, &finding, &why), ERR_OK);
    start();
    nanos t = clock_now() + every;
    for (int i = 0; i < 2; i++, t += every) {
        thread_sleep(t - clock_now());
        sampler_tick(sampler, t, 200 * MS);
    }
    unsigned seen = 0; /* reads until the first that serves a tick at t, which no call announces */
    while (power_read_count <= seen || power_reads[seen] < t + LAG) {
        assert_true(clock_now() < t + 20 * NS_PER_S);
        if (power_read_count <= seen)
            thread_sleep(MS);
        else
            assert_true(power_reads[seen++] < t - 100 * MS); /* not shortly before it */
    }
}

static void long_history_takes_bounded_memory(void **state)
{
    (void)state;
    enum { SAMPLES = 1000 * 1000 }; /* 17 minutes at 1 kHz */
    struct sensor_channel channel = {
        .quantity = QTY_ENERGY, .joules_per_count = PER_COUNT, .watts_max = 1000};
    struct spill spill;
    struct series series;
    spill_init(&spill);
    series_init(&series, &channel, &spill, NS_PER_S);
    for (int i = 0; i < SAMPLES; i++) {
        struct channel_sample sample = {.t = NS_PER_S + i * MS, .count = (uint64_t)i * 100000};
        assert_int_equal(series_take(&series, &sample), ERR_OK);
    }
    assert_int_equal(series.timeline.thinned, 0);
    size_t bytes = series.timeline.tail_capacity * sizeof(struct timeline_point) +
                   series.timeline.block_capacity * sizeof(struct timeline_block);
    assert_true(bytes < 512 * 1024);
    struct window w;
    assert_int_equal(window_read(&series.timeline, NS_PER_S, NS_PER_S + (SAMPLES - 1) * MS, &w),
                     ERR_OK);
    assert_near(w.sum, 0.1 * (SAMPLES - 1), 1e-4);
    assert_near(w.coverage, 1, 0);
    series_release(&series);
    spill_release(&spill);
}

#define SAMPLER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAMPLER_TEST(windows_are_correct_during_and_after_the_run),
        SAMPLER_TEST(ticks_are_followed_with_blocking_reads),
        SAMPLER_TEST(a_period_is_learned_after_stalls),
        SAMPLER_TEST(the_first_reading_makes_no_peak),
        SAMPLER_TEST(start_waits_for_a_slow_first_reading),
        SAMPLER_TEST(start_waits_for_a_late_first_reading),
        SAMPLER_TEST(settle_waits_for_a_read_of_each_group),
        SAMPLER_TEST(a_driver_that_does_not_return_is_abandoned),
        SAMPLER_TEST(a_lost_device_is_available_again),
        SAMPLER_TEST(another_device_does_not_replace_the_lost_one),
        SAMPLER_TEST(stop_works_while_a_device_is_lost),
        SAMPLER_TEST(failing_reads_lose_no_energy),
        SAMPLER_TEST(suspend_is_a_gap_and_a_wall_clock_step_is_not),
        SAMPLER_TEST(stuck_counter_has_no_energy),
        SAMPLER_TEST(every_channel_of_a_large_sensor_is_read),
        SAMPLER_TEST(two_samplers_run_concurrently),
        SAMPLER_TEST(points_are_walked_while_more_are_added),
        SAMPLER_TEST(an_early_read_is_not_repeated_for_the_tick),
        cmocka_unit_test(long_history_takes_bounded_memory),
    };
    return RUN_TESTS(tests);
}
