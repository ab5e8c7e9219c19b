/* Limits against given figures. */
#include "estimate/budget.h"

#include <math.h>

#include "core/units.h"
#include "support/unit.h"

static struct estimate_workload *work_of(double batch, double units, bool is_request)
{
    static struct estimate_workload work;
    work = (struct estimate_workload){.spec = {.is_request = is_request},
                                      .batch = batch,
                                      .count = 1,
                                      .units = units,
                                      .unit = is_request ? "output token" : "sample"};
    return &work;
}

static struct workload_estimate estimate_of(const struct estimate_workload *work)
{
    return (struct workload_estimate){.work = work,
                                      .total = {.latency_s = 0.010,
                                                .latency_plus_minus = 0.002,
                                                .joules = {.total = 8},
                                                .joules_plus_minus = 2,
                                                .average_w = 800,
                                                .power_plus_minus = 10},
                                      .memory = {.total_peak = 4e9, .capacity = 5e9, .fits = true}};
}

static void each_limit_is_compared_with_its_figure(void **state)
{
    static const struct {
        enum budget_kind kind;
        double max, value, margin;
        enum budget_verdict verdict;
        bool is_sure;
    } CASES[] = {
        {BUDGET_LATENCY, 0.020, 0.010, 0.5, BUDGET_PASS, true},
        {BUDGET_LATENCY, 0.011, 0.010, 1.0 / 11, BUDGET_PASS, false},
        {BUDGET_LATENCY, 0.010, 0.010, 0, BUDGET_PASS, false},
        {BUDGET_LATENCY, 0.009, 0.010, -1.0 / 9, BUDGET_FAIL, false},
        {BUDGET_LATENCY, 0.005, 0.010, -1, BUDGET_FAIL, true},
        {BUDGET_ENERGY, 4, 2, 0.5, BUDGET_PASS, true}, /* per sample, of four */
        {BUDGET_ENERGY, 1, 2, -1, BUDGET_FAIL, true},
        {BUDGET_MEMORY, 4e9, 4e9, 0, BUDGET_PASS, true},
        {BUDGET_MEMORY, 2e9, 4e9, -1, BUDGET_FAIL, true},
        {BUDGET_POWER, 795, 800, -5.0 / 795, BUDGET_FAIL, false},
    };
    struct workload_estimate estimate = estimate_of(work_of(4, 4, false));
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct budget budget = budget_none();
        struct budget_check checks[BUDGET_KINDS];
        budget.max[CASES[i].kind] = CASES[i].max;
        assert_int_equal(budget_evaluate(&budget, &estimate, checks), 1);
        assert_int_equal(checks[0].kind, CASES[i].kind);
        assert_near(checks[0].value, CASES[i].value, 1e-12);
        assert_near(checks[0].margin, CASES[i].margin, 1e-12);
        assert_int_equal(checks[0].verdict, CASES[i].verdict);
        assert_int_equal(checks[0].is_sure, CASES[i].is_sure);
        assert_int_equal(budget_holds(&budget, &estimate), CASES[i].verdict == BUDGET_PASS);
    }
}

/* Shipped runtimes may take up to 3.6 times the estimate, but hardly less than it. */
static void a_limit_within_the_uncertainty_is_not_certain(void **state)
{
    struct workload_estimate estimate = estimate_of(work_of(4, 4, false));
    estimate.shipped.above = 2.6;
    static const struct {
        enum budget_kind kind;
        double max;
        bool is_sure;
    } CASES[] = {
        {BUDGET_LATENCY, 0.040, true},  {BUDGET_LATENCY, 0.020, false},
        {BUDGET_LATENCY, 0.0079, true}, {BUDGET_ENERGY, 8, true},
        {BUDGET_ENERGY, 4, false},      {BUDGET_ENERGY, 1.4, true},
        {BUDGET_POWER, 811, true}, /* latency and energy both grow, and power stays */
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct budget budget = budget_none();
        struct budget_check checks[BUDGET_KINDS];
        budget.max[CASES[i].kind] = CASES[i].max;
        assert_int_equal(budget_evaluate(&budget, &estimate, checks), 1);
        assert_int_equal(checks[0].is_sure, CASES[i].is_sure);
    }
    struct estimate_interval range = workload_estimate_interval(&estimate, UNKNOWN, UNKNOWN);
    assert_false(is_known(range.low) || is_known(range.high));
}

static void getting_closer_to_a_violated_limit_is_no_worse(void **state)
{
    struct workload_estimate now = estimate_of(work_of(4, 4, false)), then = now;
    struct budget budget = budget_none();
    (void)state;
    budget.max[BUDGET_LATENCY] = 0.005; /* violated: 0.010 */
    budget.max[BUDGET_POWER] = 900;     /* met: 800 */
    then.total.latency_s = 0.008;
    assert_true(budget_is_no_worse(&budget, &now, &then));
    then.total.average_w = 901; /* a limit that was met must stay met */
    assert_false(budget_is_no_worse(&budget, &now, &then));
    then.total.average_w = 800;
    then.total.latency_s = 0.011;
    assert_false(budget_is_no_worse(&budget, &now, &then));
    then.total.latency_s = 0.004;
    assert_true(budget_is_no_worse(&budget, &now, &then));
}

static void a_request_is_charged_for_all_its_tokens(void **state)
{
    struct workload_estimate estimate = estimate_of(work_of(2, 200, true));
    struct budget budget = budget_none();
    struct budget_check checks[BUDGET_KINDS];
    (void)state;
    budget.max[BUDGET_ENERGY] = 5;
    assert_int_equal(budget_evaluate(&budget, &estimate, checks), 1);
    assert_near(checks[0].value, 4, 1e-12);
    assert_string_equal(budget_energy_unit(&estimate), "request");
}

static void an_estimate_that_does_not_fit_in_memory_fails(void **state)
{
    struct workload_estimate estimate = estimate_of(work_of(1, 1, false)), smaller = estimate;
    struct budget budget = budget_none();
    struct budget_check checks[BUDGET_KINDS];
    (void)state;
    estimate.memory.capacity = 3e9;
    estimate.memory.fits = false;
    assert_int_equal(budget_evaluate(&budget, &estimate, checks), 0); /* no limit was set */
    budget.max[BUDGET_LATENCY] = 1;
    assert_int_equal(budget_evaluate(&budget, &estimate, checks), 2);
    assert_int_equal(checks[0].verdict, BUDGET_PASS);
    assert_int_equal(checks[1].kind, BUDGET_FIT);
    assert_int_equal(checks[1].verdict, BUDGET_FAIL);
    assert_near(checks[1].left, -1e9, 0);
    assert_near(checks[1].margin, -1.0 / 3, 1e-12);
    assert_false(budget_holds(&budget, &estimate));
    assert_true(budget_is_no_worse(&budget, &estimate, &smaller));
    estimate.memory.capacity = UNKNOWN; /* cannot be violated */
    estimate.memory.fits = true;
    assert_true(budget_holds(&budget, &estimate));
}

static void an_empty_budget_holds_and_an_unknown_figure_does_not(void **state)
{
    struct workload_estimate estimate = estimate_of(work_of(1, 1, false));
    struct budget budget = budget_none();
    (void)state;
    assert_false(budget_has_any(&budget));
    assert_true(budget_holds(&budget, &estimate));
    estimate.total.average_w = UNKNOWN;
    budget.max[BUDGET_POWER] = 1000;
    assert_true(budget_has_any(&budget));
    assert_false(budget_holds(&budget, &estimate));
    assert_int_equal(budget_verdict(&budget, &estimate), BUDGET_UNKNOWN);
    budget.max[BUDGET_LATENCY] = 1;
    assert_int_equal(budget_verdict(&budget, &estimate), BUDGET_UNKNOWN);
    budget.max[BUDGET_LATENCY] = 0.001; /* one violated limit decides */
    assert_int_equal(budget_verdict(&budget, &estimate), BUDGET_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_limit_is_compared_with_its_figure),
        cmocka_unit_test(a_limit_within_the_uncertainty_is_not_certain),
        cmocka_unit_test(getting_closer_to_a_violated_limit_is_no_worse),
        cmocka_unit_test(a_request_is_charged_for_all_its_tokens),
        cmocka_unit_test(an_estimate_that_does_not_fit_in_memory_fails),
        cmocka_unit_test(an_empty_budget_holds_and_an_unknown_figure_does_not),
    };
    return RUN_TESTS(tests);
}
