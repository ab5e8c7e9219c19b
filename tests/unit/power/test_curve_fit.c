/* The curves of the roofline model: known ones are recovered, outliers do not move them, few points are enough. */
#include "support/unit.h"

#include <math.h>

#include "power/curve_fit.h"
#include "power/freq_points.h"

enum { CLOCKS = 60 };

static double clock_of(size_t i)
{
    return 510 + 15.0 * (double)i;
}

#define FMAX 1395.0

static void the_knee_is_found_despite_outliers(void **state)
{
    (void)state;
    double u[CLOCKS], t[CLOCKS];
    struct time_fit fit;
    for (size_t i = 0; i < CLOCKS; i++) {
        u[i] = FMAX / clock_of(i);
        t[i] = 10 + 8 * fmax(0, u[i] - 1.5);
    }
    t[CLOCKS - 1] = 400; /* the cold first point of a sweep */
    t[20] = 30;
    assert_int_equal(time_fit(u, t, CLOCKS, &fit), ERR_OK);
    assert_near(fit.t0, 10, 0.05);
    assert_near(fit.knee, 1.5, 0.03);
    assert_near(time_fit_at(&fit, 2), 14, 0.1);
}

static void without_a_knee_none_is_reported(void **state)
{
    (void)state;
    double u[CLOCKS], t[CLOCKS];
    struct time_fit fit;
    for (size_t i = 0; i < CLOCKS; i++) {
        u[i] = FMAX / clock_of(i);
        t[i] = 3 + 5 * u[i];
    }
    assert_int_equal(time_fit(u, t, CLOCKS, &fit), ERR_OK);
    assert_near(fit.knee, 1, 1e-12);
    assert_near(fit.t0, 8, 1e-6);
    assert_near(fit.t1, 5, 1e-6);
}

static void one_and_two_points_give_a_roofline(void **state)
{
    (void)state;
    struct time_fit fit;
    assert_int_equal(time_fit((double[]){1}, (double[]){4}, 1, &fit), ERR_OK);
    assert_near(time_fit_at(&fit, 2), 8, 1e-12);
    assert_int_equal(time_fit((double[]){1, 2}, (double[]){4, 6}, 2, &fit), ERR_OK);
    assert_near(time_fit_at(&fit, 1.2), 4, 1e-12); /* still memory-bound: 3 u < 4 */
    assert_near(time_fit_at(&fit, 1.8), 5.4, 1e-12);
    /* A lower clock that makes the work faster is noise: time is then constant. */
    assert_int_equal(time_fit((double[]){1, 2}, (double[]){4, 3.9}, 2, &fit), ERR_OK);
    assert_near(time_fit_at(&fit, 2), 4, 1e-12);
    assert_int_equal(time_fit(NULL, NULL, 0, &fit), ERR_NO_DATA);
}

static double cubic(double x)
{
    double z = x - 1;
    return 200 + 300 * z + 250 * z * z + 80 * z * z * z;
}

static void a_cubic_is_recovered_and_the_floor_is_kept(void **state)
{
    (void)state;
    struct freq_sample samples[CLOCKS] = {0};
    struct power_fit fit;
    for (size_t i = 0; i < CLOCKS; i++) {
        samples[i].freq_mhz = clock_of(i);
        samples[i].power_w = cubic(clock_of(i) / FMAX);
    }
    samples[30].power_w = 20; /* a throttled one */
    assert_int_equal(power_fit(samples, CLOCKS, FMAX, 30, power_prior_builtin(), &fit), ERR_OK);
    for (size_t i = 0; i < CLOCKS; i++)
        assert_near(power_fit_at(&fit, clock_of(i) / FMAX), cubic(clock_of(i) / FMAX), 1e-3);
    assert_true(power_fit_at(&fit, 0.01) >= 30);
    assert_int_equal(power_fit(samples, 0, FMAX, 30, power_prior_builtin(), &fit), ERR_NO_DATA);
}

/* The prior's mean is a curve: one probe scales it, and more than one change its shape. */
static void probes_adjust_the_prior_curve(void **state)
{
    (void)state;
    struct freq_sample probe = {.freq_mhz = FMAX, .power_w = 100};
    struct power_fit fit, bent;
    assert_int_equal(power_fit(&probe, 1, FMAX, UNKNOWN, power_prior_builtin(), &fit), ERR_OK);
    assert_near(power_fit_at(&fit, 1), 100, 1e-9);
    double middle = power_fit_at(&fit, 0.7);
    assert_true(middle > 50 && middle < 75);
    struct freq_sample probes[2] = {probe, {.freq_mhz = 0.7 * FMAX, .power_w = 1.15 * middle}};
    assert_int_equal(power_fit(probes, 2, FMAX, UNKNOWN, power_prior_builtin(), &bent), ERR_OK);
    assert_near(power_fit_at(&bent, 0.7), 1.15 * middle, 0.02 * middle);
    assert_true(power_fit_at(&bent, 0.5) > 1.05 * power_fit_at(&fit, 0.5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_knee_is_found_despite_outliers),
        cmocka_unit_test(without_a_knee_none_is_reported),
        cmocka_unit_test(one_and_two_points_give_a_roofline),
        cmocka_unit_test(a_cubic_is_recovered_and_the_floor_is_kept),
        cmocka_unit_test(probes_adjust_the_prior_curve),
    };
    return RUN_TESTS(tests);
}
