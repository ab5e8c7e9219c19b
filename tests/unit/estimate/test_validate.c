/* Prediction errors: sums by regime, and rows that are not compared. */
#include "estimate/validate.h"

#include "core/units.h"
#include "support/unit.h"

static struct validate_row make_row(enum estimate_bound regime, double measured, double predicted)
{
    return (struct validate_row){
        .measured_s = measured,
        .measured_j = 100 * measured,
        .window_s = UNKNOWN,
        .predicted = {.latency_s = predicted, .joules = 100 * predicted, .regime = regime}};
}

static void add_row(struct validation *validation, struct validate_row it)
{
    validation_add(validation, &it);
}

static void test_errors_by_regime_and_overall(void **state)
{
    (void)state;
    struct validation v = {0};
    add_row(&v, make_row(BOUND_COMPUTE, 1, 1.2));
    add_row(&v, make_row(BOUND_COMPUTE, 1, 0.6));
    add_row(&v, make_row(BOUND_MEMORY, 2, 3));
    struct validate_sums sums = validate_sum(&v, BOUND_COMPUTE);
    assert_int_equal(sums.rows, 2);
    assert_near(sums.latency.mape, 0.3, 1e-12);
    assert_near(sums.latency.bias, -0.1, 1e-12);
    sums = validate_sum(&v, BOUND_COUNT);
    assert_int_equal(sums.energy.rows, 3);
    assert_near(sums.energy.mape, 1.1 / 3, 1e-12);
    sums = validate_sum(&v, BOUND_LAUNCH);
    assert_int_equal(sums.rows, 0);
    assert_false(is_known(sums.latency.mape));
    validation_release(&v);
}

static void test_joules_under_a_millisecond_are_not_compared(void **state)
{
    (void)state;
    struct validation v = {0};
    add_row(&v, make_row(BOUND_COMPUTE, 0.9e-3, 1e-3));
    struct validate_row long_window = make_row(BOUND_COMPUTE, 0.9e-3, 1e-3);
    long_window.window_s = 1;
    add_row(&v, long_window);
    struct validate_sums sums = validate_sum(&v, BOUND_COUNT);
    assert_int_equal(v.short_rows, 1);
    assert_int_equal(sums.latency.rows, 2);
    assert_int_equal(sums.energy.rows, 1);
    validation_release(&v);
}

static void test_unknown_figures_are_ignored(void **state)
{
    (void)state;
    struct validation v = {0};
    struct validate_row it = make_row(BOUND_COMPUTE, 1, 1);
    it.measured_j = UNKNOWN;
    add_row(&v, it);
    it = make_row(BOUND_COMPUTE, 1, 1);
    it.predicted.joules = UNKNOWN;
    add_row(&v, it);
    struct validate_sums sums = validate_sum(&v, BOUND_COUNT);
    assert_int_equal(sums.latency.rows, 2);
    assert_int_equal(sums.energy.rows, 0);
    assert_false(is_known(sums.energy.mape));
    validation_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_by_regime_and_overall),
        cmocka_unit_test(test_joules_under_a_millisecond_are_not_compared),
        cmocka_unit_test(test_unknown_figures_are_ignored),
    };
    return RUN_TESTS(tests);
}
