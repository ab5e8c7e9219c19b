#include "support/rng.h"
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "stats/descriptive.h"

/* Expected values:
 * python3 -c "import statistics as s; v=[412.25,398.5,405.75,421.0,399.125,407.5,403.0,415.875,
 *   400.25,409.625,431.5]; print(s.mean(v), s.variance(v), s.stdev(v), s.stdev(v)/len(v)**.5)" */
static const double WATTS[] = {412.25, 398.5,   405.75, 421.0,   399.125, 407.5,
                               403.0,  415.875, 400.25, 409.625, 431.5};
enum { WATTS_COUNT = sizeof WATTS / sizeof *WATTS };

/* The textbook two-pass algorithm in a wider type, as an independent calculation. */
static void two_pass(const double *values, size_t count, double *mean, double *variance)
{
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - sum / count) * (values[i] - sum / count);
    *mean = (double)(sum / count);
    *variance = (double)(squares / (count - 1));
}

static double variance_of(const struct online *stats)
{
    return online_stddev(stats) * online_stddev(stats);
}

static void moments_match_an_independent_calculation(void **state)
{
    (void)state;
    struct online stats = {0};
    for (size_t i = 0; i < WATTS_COUNT; i++)
        online_add(&stats, WATTS[i]);
    assert_int_equal(stats.count, 11);
    assert_near(online_mean(&stats), 409.4886363636364, 1e-11);
    assert_near(mean_of(WATTS, WATTS_COUNT), 409.4886363636364, 1e-11);
    assert_false(is_known(mean_of(WATTS, 0)));
    assert_near(variance_of(&stats), 103.89829545454545, 1e-10);
    assert_near(online_stddev(&stats), 10.193051331890047, 1e-11);
    assert_near(online_standard_error(&stats), 3.0733206124283323, 1e-11);
    assert_near(online_min(&stats), 398.5, 0);
    assert_near(online_max(&stats), 431.5, 0);
}

static void without_values_moments_are_unknown_not_zero(void **state)
{
    (void)state;
    struct online stats = {0};
    assert_false(is_known(online_mean(&stats)));
    assert_false(is_known(online_min(&stats)));
    assert_false(is_known(online_max(&stats)));
    assert_false(is_known(variance_of(&stats)));
    assert_false(is_known(online_standard_error(&stats)));
    online_add(&stats, -3.5);
    assert_near(online_mean(&stats), -3.5, 0);
    assert_near(online_min(&stats), -3.5, 0);
    assert_near(online_max(&stats), -3.5, 0);
    assert_false(is_known(variance_of(&stats)));
    assert_false(is_known(online_stddev(&stats)));
    assert_false(is_known(online_standard_error(&stats)));
    online_add(&stats, -3.5);
    assert_near(variance_of(&stats), 0, 0);
}

static void unknown_values_are_ignored(void **state)
{
    (void)state;
    struct online stats = {0};
    online_add(&stats, UNKNOWN);
    online_add(&stats, 2);
    online_add(&stats, INFINITY);
    online_add(&stats, 4);
    online_add(&stats, -INFINITY);
    assert_int_equal(stats.count, 2);
    assert_near(online_mean(&stats), 3, 0);
    assert_near(variance_of(&stats), 2, 1e-15);
}

/* The sum of squares minus the square of the sum gives 0 or garbage here; the true variance is 30. */
static void a_large_offset_causes_no_cancellation(void **state)
{
    (void)state;
    static const double OFFSETS[] = {4, 7, 13, 16};
    struct online stats = {0};
    for (size_t i = 0; i < 4; i++)
        online_add(&stats, 1e9 + OFFSETS[i]);
    assert_near(variance_of(&stats), 30, 1e-6);
}

static void random_streams_match_a_two_pass_calculation(void **state)
{
    (void)state;
    uint64_t seed = 42;
    double values[500];
    for (size_t round = 0; round < 50; round++) {
        size_t count = 2 + (size_t)(rng_uniform_of(&seed) * 498);
        struct online stats = {0};
        for (size_t i = 0; i < count; i++) {
            values[i] = 300 + 400 * rng_uniform_of(&seed);
            online_add(&stats, values[i]);
        }
        double mean, variance;
        two_pass(values, count, &mean, &variance);
        assert_near(online_mean(&stats), mean, 1e-10);
        assert_near(variance_of(&stats), variance, 1e-8);
    }
}

/* ---- sketches ---- */

/* In (0, 1). */
static double next_open(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double uniform(uint64_t *state)
{
    return 3 + 5 * next_open(state);
}

/* Inter-arrival times: from almost 0 to ten times the mean. */
static double exponential(uint64_t *state)
{
    return -0.02 * log(next_open(state));
}

/* Over ten orders of magnitude. */
static double log_uniform(uint64_t *state)
{
    return pow(10, 10 * next_open(state) - 5);
}

static double whole_number(uint64_t *state)
{
    return 1 + floor(40 * next_open(state));
}

static double constant(uint64_t *state)
{
    (void)state;
    return 11;
}

static double (*const SHAPES[])(uint64_t *state) = {uniform, exponential, log_uniform, whole_number,
                                                    constant};
static const double PS[] = {0, 0.01, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 1};

static void check(double (*draw)(uint64_t *state), size_t count, double tolerance)
{
    struct sketch sketch = {0};
    double *values = malloc(count * sizeof *values);
    uint64_t state = 42;
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = draw(&state);
        assert_int_equal(sketch_add(&sketch, values[i]), ERR_OK);
    }
    double exact[sizeof PS / sizeof *PS];
    quantiles(values, count, PS, sizeof PS / sizeof *PS, exact);
    for (size_t i = 0; i < sizeof PS / sizeof *PS; i++)
        assert_near(sketch_quantile(&sketch, PS[i]), exact[i], tolerance * exact[i]);
    assert_int_equal(sketch.moments.count, count);
    sketch_release(&sketch);
    free(values);
}

static void quantiles_of_few_values_are_exact(void **state)
{
    (void)state;
    static const size_t COUNTS[] = {1, 2, 3, 100, 4095, 4096};
    for (size_t shape = 0; shape < sizeof SHAPES / sizeof *SHAPES; shape++)
        for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
            check(SHAPES[shape], COUNTS[i], 1e-15);
}

static void quantiles_of_many_values_are_within_a_bin(void **state)
{
    (void)state;
    /* Half a percent, plus the distance of two neighbors in the order. */
    check(uniform, 4097, 0.006);
    check(uniform, 100000, 0.0051);
    check(exponential, 100000, 0.007);
    check(log_uniform, 200000, 0.006);
    check(whole_number, 50000, 0.0051);
    check(constant, 5000, 1e-12);
}

static void sketches_ignore_unknown_values(void **state)
{
    (void)state;
    struct sketch sketch = {0};
    assert_false(is_known(sketch_quantile(&sketch, 0.5)));
    assert_int_equal(sketch_add(&sketch, UNKNOWN), ERR_OK);
    assert_false(is_known(sketch_quantile(&sketch, 0.5)));
    assert_int_equal(sketch_add(&sketch, 7), ERR_OK);
    assert_int_equal(sketch_add(&sketch, UNKNOWN), ERR_OK);
    assert_int_equal(sketch.moments.count, 1);
    assert_near(sketch_quantile(&sketch, 0.95), 7, 0);
    assert_false(is_known(sketch_quantile(&sketch, -0.1)));
    assert_false(is_known(sketch_quantile(&sketch, 1.1)));
    assert_false(is_known(sketch_quantile(&sketch, UNKNOWN)));
    sketch_release(&sketch);
}

static void values_outside_the_bins_are_clamped(void **state)
{
    (void)state;
    struct sketch sketch = {0};
    for (unsigned i = 0; i < 6000; i++)
        assert_int_equal(sketch_add(&sketch, i % 3 == 0 ? 0 : i % 3 == 1 ? 1e-12 : 1e15), ERR_OK);
    assert_near(sketch_quantile(&sketch, 0), 0, 0);
    assert_near(sketch_quantile(&sketch, 0.5), 0, 1e-9);
    assert_near(sketch_quantile(&sketch, 1), 1e15, 0);
    assert_true(sketch_quantile(&sketch, 0.9) <= 1e15);
    sketch_release(&sketch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_match_an_independent_calculation),
        cmocka_unit_test(without_values_moments_are_unknown_not_zero),
        cmocka_unit_test(unknown_values_are_ignored),
        cmocka_unit_test(a_large_offset_causes_no_cancellation),
        cmocka_unit_test(random_streams_match_a_two_pass_calculation),
        cmocka_unit_test(quantiles_of_few_values_are_exact),
        cmocka_unit_test(quantiles_of_many_values_are_within_a_bin),
        cmocka_unit_test(sketches_ignore_unknown_values),
        cmocka_unit_test(values_outside_the_bins_are_clamped),
    };
    return RUN_TESTS(tests);
}
