#include "support/rng.h"
#include "support/unit.h"

#include <math.h>

#include "attribute/component_fit.h"
#include "core/units.h"

/* A machine of known powers: 10 W idle, and four components, two of which are always busy in the
 * same proportion. Windows are ideal readings, with noise where a test adds some. */
enum { COLUMNS = 4, REPLAYS = 4, WORKS = 3, WINDOWS = REPLAYS * (WORKS + 1), TRIALS = 60 };

static const double IDLE = 10, WATTS[COLUMNS] = {30, 30, 12, 55};
static const unsigned ONE_PHASE[COLUMNS] = {0};

/* Busy seconds of each component in each workload; the last row is idle. */
static const double TIMES[WORKS + 1][COLUMNS] = {
    {1.0, 0.5, 0.1, 0.2}, {0.6, 0.3, 1.4, 0.1}, {0.8, 0.4, 0.3, 1.1}, {0, 0, 0, 0}};

struct world {
    struct fit_window windows[WINDOWS];
    double times[WINDOWS][COLUMNS];
};

/* Sum of twelve uniform draws minus six: approximately normal. */
static double noise(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += rng_uniform_of(state);
    return sum;
}

static void make_windows(struct world *world, const double times[WORKS + 1][COLUMNS], double sigma,
                         uint64_t seed)
{
    for (unsigned w = 0; w < WINDOWS; w++) {
        unsigned work = w % (WORKS + 1);
        double seconds = work == WORKS ? 2 : 0.3, joules;
        for (int j = 0; j < COLUMNS; j++)
            seconds += world->times[w][j] = times[work][j];
        joules = IDLE * seconds + sigma * noise(&seed);
        for (int j = 0; j < COLUMNS; j++)
            joules += WATTS[j] * world->times[w][j];
        world->windows[w] = (struct fit_window){.joules = joules,
                                                .sigma = sigma,
                                                .seconds = seconds,
                                                .busy_s = work == WORKS ? NULL : world->times[w],
                                                .stratum = work};
    }
}

static struct fit_options fit_options_of(const unsigned *phases)
{
    return (struct fit_options){.phases = phases, .columns = COLUMNS, .resamples = 200, .seed = 1};
}

static void known_powers_are_recovered_and_proportional_components_are_grouped(void **state)
{
    (void)state;
    static struct world world;
    struct component_fit fit;
    struct error why = {0};
    struct fit_options with = fit_options_of(ONE_PHASE);
    make_windows(&world, TIMES, 0, 1);
    assert_int_equal(component_fit(world.windows, WINDOWS, &with, &fit, &why), ERR_OK);
    assert_true(fit.has_idle);
    assert_near(fit.idle_watts, IDLE, 1e-6);
    for (int j = 0; j < COLUMNS; j++)
        assert_near(fit.columns[j].watts, WATTS[j], 1e-6);
    assert_int_equal(fit.groups, 3);
    assert_int_equal(fit.columns[0].group, fit.columns[1].group);
    assert_false(fit.columns[0].is_alone);
    assert_false(fit.columns[1].is_alone);
    assert_true(fit.columns[2].is_alone && fit.columns[3].is_alone);
}

static void powers_of_noisy_windows_are_within_their_uncertainty(void **state)
{
    (void)state;
    static struct world world;
    int outside = 0;
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        struct component_fit fit;
        struct error why = {0};
        struct fit_options with = fit_options_of(ONE_PHASE);
        make_windows(&world, TIMES, 0.5, 100 + trial);
        assert_int_equal(component_fit(world.windows, WINDOWS, &with, &fit, &why), ERR_OK);
        for (int j = 0; j < COLUMNS; j++) {
            assert_true(fit.columns[j].watts >= 0);
            assert_true(fit.columns[j].sigma > 0);
            outside += fabs(fit.columns[j].watts - WATTS[j]) > 2 * fit.columns[j].sigma;
        }
    }
    /* At most a twentieth lies beyond two sigmas; three times that would mean a wrong sigma. */
    assert_true(outside <= 0.15 * TRIALS * COLUMNS);
}

/* With any noise: no power is negative, and the fitted energy equals the measured energy. */
static void energy_is_conserved_and_never_negative(void **state)
{
    (void)state;
    static struct world world;
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        struct component_fit fit;
        struct error why = {0};
        struct fit_options with = fit_options_of(ONE_PHASE);
        double explained = 0, measured = 0;
        make_windows(&world, TIMES, 4, 900 + trial);
        assert_int_equal(component_fit(world.windows, WINDOWS, &with, &fit, &why), ERR_OK);
        for (int w = 0; w < WINDOWS; w++) {
            measured += world.windows[w].joules;
            explained += fit.idle_watts * world.windows[w].seconds;
            for (int j = 0; j < COLUMNS && world.windows[w].busy_s; j++) {
                assert_true(fit.columns[j].watts >= 0);
                explained += fit.columns[j].watts * world.times[w][j];
            }
        }
        assert_near(explained / measured, 1, 0.05);
    }
}

/* The same proportion in every workload: only the mean power is identifiable, and it is shared. */
static void proportional_components_share_one_power(void **state)
{
    (void)state;
    static struct world world;
    static const double SAME[WORKS + 1][COLUMNS] = {
        {1, 0.5, 0.1, 0.2}, {2, 1, 0.2, 0.4}, {0.5, 0.25, 0.05, 0.1}, {0, 0, 0, 0}};
    struct component_fit fit;
    struct error why = {0};
    struct fit_options with = fit_options_of(ONE_PHASE);
    make_windows(&world, SAME, 0, 1);
    assert_int_equal(component_fit(world.windows, WINDOWS, &with, &fit, &why), ERR_OK);
    double mean = (30 + 15 + 1.2 + 11) / 1.8;
    assert_int_equal(fit.groups, 1);
    for (int j = 0; j < COLUMNS; j++) {
        assert_near(fit.columns[j].watts, mean, 1e-6);
        assert_false(fit.columns[j].is_alone);
    }
}

static void components_of_different_phases_are_not_grouped(void **state)
{
    (void)state;
    static struct world world;
    static const unsigned TWO[COLUMNS] = {0, 0, 1, 1};
    static const double APART[WORKS + 1][COLUMNS] = {
        {1, 0.5, 0, 0}, {0, 0, 0.5, 1}, {0, 0, 0.25, 0.5}, {0, 0, 0, 0}};
    struct component_fit fit;
    struct error why = {0};
    struct fit_options with = fit_options_of(TWO);
    make_windows(&world, APART, 0, 1);
    assert_int_equal(component_fit(world.windows, WINDOWS, &with, &fit, &why), ERR_OK);
    assert_int_equal(fit.groups, 2);
    assert_near(fit.columns[0].watts, 30, 1e-6);
    assert_near(fit.columns[2].watts, (12 * 0.5 + 55) / 1.5, 1e-6);
}

static void a_component_that_was_never_busy_is_unknown(void **state)
{
    (void)state;
    static struct world world;
    static const double ABSENT[WORKS + 1][COLUMNS] = {
        {1, 0, 0.1, 0.2}, {0.6, 0, 1.4, 0.1}, {0.8, 0, 0.3, 1.1}, {0, 0, 0, 0}};
    struct component_fit fit;
    struct error why = {0};
    struct fit_options with = fit_options_of(ONE_PHASE);
    make_windows(&world, ABSENT, 0, 1);
    assert_int_equal(component_fit(world.windows, WINDOWS, &with, &fit, &why), ERR_OK);
    assert_false(is_known(fit.columns[1].watts));
    assert_near(fit.columns[3].watts, 55, 1e-6);
}

static void without_an_idle_window_idle_power_is_part_of_component_power(void **state)
{
    (void)state;
    static struct world world;
    struct component_fit fit;
    struct error why = {0};
    struct fit_options with = fit_options_of(ONE_PHASE);
    struct fit_window busy[WINDOWS];
    size_t count = 0;
    double joules = 0, explained = 0;
    make_windows(&world, TIMES, 0, 1);
    for (int w = 0; w < WINDOWS; w++)
        if (world.windows[w].busy_s)
            busy[count++] = world.windows[w];
    assert_int_equal(component_fit(busy, count, &with, &fit, &why), ERR_OK);
    assert_false(fit.has_idle);
    assert_false(is_known(fit.idle_watts));
    for (size_t w = 0; w < count; w++) {
        joules += busy[w].joules;
        for (int j = 0; j < COLUMNS; j++)
            explained += fit.columns[j].watts * busy[w].busy_s[j];
    }
    assert_near(explained / joules, 1, 0.02);
}

static void missing_measurements_are_an_error(void **state)
{
    (void)state;
    static struct world world;
    struct component_fit fit;
    struct error why = {0};
    struct fit_options with = fit_options_of(ONE_PHASE);
    assert_int_equal(component_fit(NULL, 0, &with, &fit, &why), ERR_NO_DATA);
    assert_contains(why.text, "no window was measured");
    make_windows(&world, TIMES, 0, 1);
    assert_int_equal(component_fit(&world.windows[WORKS], 1, &with, &fit, &why), ERR_NO_DATA);
    assert_contains(why.text, "no window in which a component was busy");
    with.columns = FIT_COLUMNS_MAX + 1;
    assert_int_equal(component_fit(world.windows, 1, &with, &fit, &why), ERR_BAD_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_powers_are_recovered_and_proportional_components_are_grouped),
        cmocka_unit_test(powers_of_noisy_windows_are_within_their_uncertainty),
        cmocka_unit_test(energy_is_conserved_and_never_negative),
        cmocka_unit_test(proportional_components_share_one_power),
        cmocka_unit_test(components_of_different_phases_are_not_grouped),
        cmocka_unit_test(a_component_that_was_never_busy_is_unknown),
        cmocka_unit_test(without_an_idle_window_idle_power_is_part_of_component_power),
        cmocka_unit_test(missing_measurements_are_an_error),
    };
    return RUN_TESTS(tests);
}
