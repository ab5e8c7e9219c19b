#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"

enum { DRAWS = 200000 };

/* The mean of values resampled with replacement has the standard error sqrt(sum of squared
 * deviations) / n. */
static void the_standard_error_of_a_mean_matches_theory(void **state)
{
    (void)state;
    static const double VALUES[] = {3, 7, 8, 12, 20};
    static const unsigned STRATA[] = {0, 0, 0, 0, 0};
    struct random draws = random_seeded(1);
    struct online values = {0}, means = {0};
    for (int i = 0; i < 5; i++)
        online_add(&values, VALUES[i]);
    for (int i = 0; i < DRAWS; i++) {
        size_t picked[5];
        double sum = 0;
        bootstrap_pick(&draws, STRATA, 5, picked);
        for (int j = 0; j < 5; j++)
            sum += VALUES[picked[j]];
        online_add(&means, sum / 5);
    }
    assert_near(online_mean(&means), 10, 0.05);
    assert_near(online_stddev(&means), sqrt(values.squares) / 5, 0.02);
}

static void resampling_stays_within_strata(void **state)
{
    (void)state;
    static const unsigned STRATA[] = {4, 9, 4, 2, 9, 9};
    struct random draws = random_seeded(5);
    unsigned seen[6][6] = {{0}};
    for (int i = 0; i < 1000; i++) {
        size_t picked[6];
        bootstrap_pick(&draws, STRATA, 6, picked);
        for (int j = 0; j < 6; j++) {
            assert_int_equal(STRATA[picked[j]], STRATA[j]);
            seen[j][picked[j]]++;
        }
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            if (STRATA[i] == STRATA[j])
                assert_true(seen[i][j] > 200);
}

static void seeds_are_reproducible_and_distinct(void **state)
{
    (void)state;
    struct random a = random_seeded(3), b = random_seeded(3), c = random_seeded(4);
    int same = 0;
    for (int i = 0; i < 100; i++) {
        size_t drawn = random_index(&a, 1000);
        assert_in_range(drawn, 0, 999);
        assert_int_equal(drawn, random_index(&b, 1000));
        same += drawn == random_index(&c, 1000);
    }
    assert_true(same < 5);
    assert_int_equal(random_index(&a, 0), 0);
    assert_int_equal(random_index(&a, 1), 0);
}

static void normal_numbers_have_normal_moments(void **state)
{
    (void)state;
    struct random draws = random_seeded(8);
    struct online drawn = {0};
    int assert_within = 0;
    for (int i = 0; i < DRAWS; i++) {
        double value = random_normal(&draws);
        online_add(&drawn, value);
        assert_within += fabs(value) < 1.959964;
    }
    assert_near(online_mean(&drawn), 0, 0.01);
    assert_near(online_stddev(&drawn), 1, 0.01);
    assert_near((double)assert_within / DRAWS, 0.95, 0.003);
}

static double mean_of_sums(const double *sums)
{
    return sums[1] > 0 ? sums[0] / sums[1] : UNKNOWN;
}

static void intervals_of_a_ratio_are_as_expected(void **state)
{
    (void)state;
    enum { COUNT = 11 };
    static const double Y[COUNT] = {8.04, 6.95, 7.58,  8.81, 8.33, 9.96,
                                    7.24, 4.26, 10.84, 4.82, 5.68};
    double ones[COUNT];
    struct bootstrap_interval found;
    for (size_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    struct bootstrap what = {{Y, ones}, 2, COUNT, mean_of_sums, 2000, 3, 0};
    bootstrap_interval(&what, &found);
    assert_near(found.figure, 7.500909090909091, 1e-12);
    /* Student's t is 6.136 to 8.866: slightly wider, for so few values */
    assert_true(found.low > 5.4 && found.low < 6.136);
    assert_true(found.high > 8.866 && found.high < 9.6);
    what.terms[0] = ones; /* constant values: so is the interval */
    bootstrap_interval(&what, &found);
    assert_near(found.low, 1, 0);
    assert_near(found.high, 1, 0);
    what.count = 0;
    bootstrap_interval(&what, &found);
    assert_true(isnan(found.figure) && isnan(found.low));
}

/* Percentage of data sets with a known mean whose 95 % interval contains it. */
static double coverage(size_t count, bool lognormal, uint64_t seed)
{
    enum { SETS = 2000, VALUES_MAX = 30, RESAMPLES = 400 };
    double values[VALUES_MAX], ones[VALUES_MAX], truth = lognormal ? exp(0.5) : 10;
    struct random draws = random_seeded(seed);
    unsigned held = 0;
    for (unsigned t = 0; t < SETS; t++) {
        struct bootstrap_interval found;
        for (size_t i = 0; i < count; i++) {
            double drawn = random_normal(&draws);
            values[i] = lognormal ? exp(drawn) : 10 + drawn;
            ones[i] = 1;
        }
        struct bootstrap what = {{values, ones}, 2, count, mean_of_sums, RESAMPLES, t, 0};
        bootstrap_interval(&what, &found);
        held += found.low <= truth && truth <= found.high;
    }
    return 100.0 * held / SETS;
}

static void assert_within(double share, double min, double max)
{
    if (!(share >= min && share <= max))
        fail_msg("%.1f %% is not within %g to %g", share, min, max);
}

/* Heavy tails, as of energy per query, must not make intervals too narrow; nor light tails too wide. */
static void intervals_have_their_nominal_coverage(void **state)
{
    (void)state;
    if (test_is_instrumented())
        SKIP("coverage takes minutes under valgrind");
    assert_within(coverage(10, true, 21), 93, 99);
    assert_within(coverage(30, true, 22), 93, 99);
    assert_within(coverage(10, false, 23), 94, 99);
    assert_within(coverage(30, false, 24), 94, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standard_error_of_a_mean_matches_theory),
        cmocka_unit_test(resampling_stays_within_strata),
        cmocka_unit_test(seeds_are_reproducible_and_distinct),
        cmocka_unit_test(normal_numbers_have_normal_moments),
        cmocka_unit_test(intervals_of_a_ratio_are_as_expected),
        cmocka_unit_test(intervals_have_their_nominal_coverage),
    };
    return RUN_TESTS(tests);
}
