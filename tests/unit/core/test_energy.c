#include "support/unit.h"

#include <math.h>

#include "core/energy.h"

static struct energy figure(double joules, double statistical, double systematic, double coverage)
{
    return (struct energy){.joules = joules,
                           .statistical = statistical,
                           .plus_minus = hypot(statistical, systematic),
                           .coverage = coverage,
                           .idle_joules = joules / 4,
                           .active_joules = joules * 3 / 4,
                           .method = METHOD_COUNTER,
                           .updates = 10};
}

static void energies_are_added_with_their_uncertainty(void **state)
{
    (void)state;
    struct energy sum = figure(30, 0.3, 0.6, 1), part = figure(10, 0.4, 0.2, 0.6);
    energy_add(&sum, &part);
    assert_near(sum.joules, 40, 1e-12);
    assert_near(sum.statistical, 0.5, 1e-12);            /* independent: 0.3 and 0.4 */
    assert_near(sum.plus_minus, hypot(0.5, 0.8), 1e-12); /* one calibration: 0.6 + 0.2 */
    assert_near(sum.coverage, (30 * 1 + 10 * 0.6) / 40, 1e-12);
    assert_near(sum.idle_joules, 10, 1e-12);
    assert_near(sum.active_joules, 30, 1e-12);
    assert_int_equal(sum.updates, 20);
    assert_int_equal(sum.method, METHOD_COUNTER);
}

static void the_sum_has_the_weaker_method(void **state)
{
    (void)state;
    struct energy sum = figure(1, 0, 0, 1), part = figure(1, 0, 0, 1);
    part.method = METHOD_ESTIMATED;
    energy_add(&sum, &part);
    assert_int_equal(sum.method, METHOD_ESTIMATED);
    part.method = METHOD_INTEGRAL;
    energy_add(&sum, &part);
    assert_int_equal(sum.method, METHOD_ESTIMATED);
}

static void unknown_energy_adds_nothing(void **state)
{
    (void)state;
    struct energy unknown = energy_unknown("why"), part = figure(5, 0.1, 0.1, 1), sum = part;
    energy_add(&sum, &unknown);
    assert_near(sum.joules, 5, 0);
    energy_add(&unknown, &part);
    assert_near(unknown.joules, 5, 0);
    assert_int_equal(unknown.method, METHOD_COUNTER);
}

static void coverage_of_zero_joules_is_averaged(void **state)
{
    (void)state;
    struct energy sum = figure(0, 0, 0, 1), part = figure(0, 0, 0, 0.5);
    energy_add(&sum, &part);
    assert_near(sum.joules, 0, 0);
    assert_near(sum.coverage, 0.75, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energies_are_added_with_their_uncertainty),
        cmocka_unit_test(the_sum_has_the_weaker_method),
        cmocka_unit_test(unknown_energy_adds_nothing),
        cmocka_unit_test(coverage_of_zero_joules_is_averaged),
    };
    return RUN_TESTS(tests);
}
