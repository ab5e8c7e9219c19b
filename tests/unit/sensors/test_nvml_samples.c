/* The driver's sample buffer: each sample once, in order, at its time, for any behavior of the clocks. */
#include "support/unit.h"

#include <math.h>
#include <string.h>

#include "sensors/registry.h"
#include "support/nvml_fake.h"

static const double SPACING = 0.02;

/* All observations of one test. */
struct gathered {
    struct sensor sensor;
    struct observation items[4096];
    size_t count;
};

static struct gathered got;

static void open_card(const char *script)
{
    got.count = 0;
    nvml_fake_script("%s", script);
    nvml_fake_time(10);
    assert_int_equal(nvml_fake_open("nvml:0", &got.sensor), ERR_OK);
}

/* Drains at a time, and checks the invariants of every drain. */
static void drain(double at)
{
    nvml_fake_time(at);
    assert_int_equal(nvml_fake_read(&got.sensor, "power.samples"), ERR_OK);
    size_t count = nvml_fake_count(&got.sensor, "power.samples");
    for (size_t i = 0; i < count; i++) {
        const struct observation *o = nvml_fake_get(&got.sensor, "power.samples", i);
        assert_true(o->t <= nvml_fake_nanos(at)); /* not in the future */
        if (got.count)
            assert_true(o->t > got.items[got.count - 1].t); /* in order, without duplicates */
        got.items[got.count++] = *o;
    }
}

/* The k-th sample after the opening at 10 s was taken at 10 + k * spacing. */
static double true_time(size_t k)
{
    return 10 + (double)(k + 1) * SPACING;
}

static void assert_all_until(double end, double tolerance_s)
{
    assert_int_equal(got.count, (size_t)floor((end - 10) / SPACING + 1e-6));
    for (size_t k = 0; k < got.count; k++)
        assert_near(seconds(got.items[k].t - nvml_fake_nanos(0)), true_time(k), tolerance_s);
}

static void every_sample_is_delivered_once(void **state)
{
    (void)state;
    /* 50 ms of 400 W, 50 ms of 100 W: finer than the resolution of any field. */
    open_card("power 0 square 100 400 0.1 0.5\n");
    static const double AT[] = {10.5,  11.0,  11.013, 11.027, 11.9, 12.4,
                                14.75, 14.75, 14.759, 15.26,  16};
    for (size_t i = 0; i < sizeof AT / sizeof *AT; i++)
        drain(AT[i]);
    assert_all_until(16, 2e-6);
    double joules = 0;
    for (size_t k = 0; k < got.count; k++) {
        assert_int_equal(got.items[k].missing, ERR_OK);
        joules += got.items[k].value * SPACING;
    }
    assert_near(joules, 250 * 6, 0.01);
    sensor_close(&got.sensor);
}

static void old_samples_are_not_repeated_after_reopening(void **state)
{
    (void)state;
    open_card("");
    drain(10.5);
    sensor_close(&got.sensor);
    nvml_fake_time(11);
    assert_int_equal(nvml_fake_open("nvml:0", &got.sensor), ERR_OK);
    size_t before = got.count;
    drain(11.2);
    assert_int_equal(got.count - before, 10);
    assert_near(seconds(got.items[before].t - nvml_fake_nanos(0)), 11.02, 2e-6);
    sensor_close(&got.sensor);
}

static void an_overrun_buffer_returns_what_is_left(void **state)
{
    (void)state;
    open_card("depth 0 119\n");
    drain(20);
    assert_int_equal(got.count, 119);
    assert_near(seconds(got.items[118].t - nvml_fake_nanos(0)), 20, 2e-6);
    sensor_close(&got.sensor);
}

static void samples_beyond_the_capacity_are_delivered_later(void **state)
{
    (void)state;
    open_card("");
    nvml_fake_capacity(10);
    drain(10.5);
    assert_int_equal(got.count, 10);
    drain(10.5);
    drain(10.5);
    nvml_fake_capacity(0);
    drain(10.9);
    assert_all_until(10.9, 2e-6);
    sensor_close(&got.sensor);
}

static void padding_is_not_a_sample(void **state)
{
    (void)state;
    open_card("pad 0 3\n");
    drain(10.5);
    drain(11);
    assert_all_until(11, 2e-6);
    sensor_close(&got.sensor);
}

/* The wall clock is set between drains, for ipw and for the driver. */
static void a_wall_clock_step_loses_nothing(void **state)
{
    static const double STEPS[] = {3600, -3600, 0.5, -0.5, 0.05, -0.05, 0.008, -0.008, 1e8, -1e8};
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        nvml_fake_stop(state);
        nvml_fake_start(state);
        open_card("");
        drain(10.5);
        drain(11);
        nvml_fake_time(11.21);
        nvml_fake_set_wall(STEPS[i], STEPS[i]);
        drain(11.5);
        drain(12);
        drain(12.51);
        assert_all_until(12.51, SPACING);
        /* Much later, times are exact again. */
        assert_near(seconds(got.items[got.count - 1].t - nvml_fake_nanos(0)), 12.5, 1e-5);
        sensor_close(&got.sensor);
    }
}

/* The driver's timestamps diverge from our clock: times are re-anchored, but nothing is lost or duplicated. */
static void a_driver_with_another_clock_loses_nothing(void **state)
{
    static const double STEPS[] = {3600, -3600, 2, -0.303, -0.507};
    for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        nvml_fake_stop(state);
        nvml_fake_start(state);
        open_card("");
        drain(10.5);
        nvml_fake_time(10.71);
        nvml_fake_set_wall(0, STEPS[i]);
        drain(11);
        drain(11.5);
        drain(12);
        drain(12.5);
        assert_all_until(12.5,
                         0.6); /* at worst late by a drain's period, when timestamps went back */
        sensor_close(&got.sensor);
    }
}

/* Our clock is set and the driver's is not. */
static void a_step_of_our_clock_only_loses_nothing(void **state)
{
    (void)state;
    open_card("");
    drain(10.5);
    nvml_fake_set_wall(-1800, 0);
    drain(11);
    drain(11.5);
    assert_int_equal(got.count, 75);
    assert_near(seconds(got.items[74].t - nvml_fake_nanos(0)), 11.5, SPACING);
    sensor_close(&got.sensor);
}

/* Samples that appear late in the buffer, or with late timestamps, do not cost a second call at each drain. */
static void a_constant_delay_is_learned_once(void **state)
{
    (void)state;
    nvml_fake_time(1);
    nvml_fake_set_wall(0, -0.05);
    open_card("");
    drain(10.5);
    for (int i = 0; i < 6; i++) {
        nvml_fake_script("fail nvmlDeviceGetSamples 0 10 after 1\n");
        drain(11 + 0.507 * i);
    }
    assert_all_until(13.535, 0.051);
    sensor_close(&got.sensor);
}

static void an_implausible_sample_is_missing_and_the_rest_is_read(void **state)
{
    (void)state;
    static const char *const SCRIPTS[] = {
        "type samples double\nvalue samples_mw 0 nan\n",
        "type samples double\nvalue samples_mw 0 inf\n",
        "type samples longlong\nvalue samples_mw 0 -5000\n",
        "value samples_mw 0 4294967295\n",
        "value samples_mw 0 20000000\n",
    };
    for (size_t i = 0; i < sizeof SCRIPTS / sizeof *SCRIPTS; i++) {
        open_card(SCRIPTS[i]);
        drain(10.1);
        assert_int_equal(got.count, 5);
        for (size_t k = 0; k < got.count; k++)
            assert_int_equal(got.items[k].missing, ERR_BAD_VALUE);
        nvml_fake_script("power 0 constant 70\n");
        drain(10.2);
        assert_int_equal(got.count, 10);
        assert_int_equal(got.items[9].missing, ERR_OK);
        assert_near(got.items[9].value, 70, 1e-3);
        sensor_close(&got.sensor);
    }
}

static void samples_of_a_failed_drain_are_delivered_later(void **state)
{
    (void)state;
    open_card("");
    drain(10.5);
    nvml_fake_script("fail nvmlDeviceGetSamples 0 10\n");
    nvml_fake_time(11);
    assert_int_equal(nvml_fake_read(&got.sensor, "power.samples"), ERR_OK);
    assert_int_equal(nvml_fake_count(&got.sensor, "power.samples"), 1);
    assert_int_equal(nvml_fake_get(&got.sensor, "power.samples", 0)->missing, ERR_TIMEOUT);
    nvml_fake_script("%s", "");
    drain(11.5);
    assert_all_until(11.5, 2e-6);
    sensor_close(&got.sensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NVML_TEST(every_sample_is_delivered_once),
        NVML_TEST(old_samples_are_not_repeated_after_reopening),
        NVML_TEST(an_overrun_buffer_returns_what_is_left),
        NVML_TEST(samples_beyond_the_capacity_are_delivered_later),
        NVML_TEST(padding_is_not_a_sample),
        NVML_TEST(a_wall_clock_step_loses_nothing),
        NVML_TEST(a_driver_with_another_clock_loses_nothing),
        NVML_TEST(a_step_of_our_clock_only_loses_nothing),
        NVML_TEST(a_constant_delay_is_learned_once),
        NVML_TEST(an_implausible_sample_is_missing_and_the_rest_is_read),
        NVML_TEST(samples_of_a_failed_drain_are_delivered_later),
    };
    return RUN_TESTS(tests);
}
