#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"

enum { DRAWS = 200000 };

/* The mean of values drawn with replacement scatters by sqrt(sum of squared distances) / n: known
 * without drawing. */
static void the_scatter_of_a_mean_is_the_known_one(void **state)
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

static void every_stratum_keeps_its_own(void **state)
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

static void a_seed_is_a_sequence(void **state)
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

static void normal_draws_are_normal(void **state)
{
    (void)state;
    struct random draws = random_seeded(8);
    struct online drawn = {0};
    int within = 0;
    for (int i = 0; i < DRAWS; i++) {
        double value = random_normal(&draws);
        online_add(&drawn, value);
        within += fabs(value) < 1.959964;
    }
    assert_near(online_mean(&drawn), 0, 0.01);
    assert_near(online_stddev(&drawn), 1, 0.01);
    assert_near((double)within / DRAWS, 0.95, 0.003);
}

static double mean_of(const double *sums)
{
    return sums[1] > 0 ? sums[0] / sums[1] : UNKNOWN;
}

static void intervals_of_a_ratio(void **state)
{
    (void)state;
    enum { COUNT = 11 };
    static const double Y[COUNT] = {8.04, 6.95, 7.58,  8.81, 8.33, 9.96,
                                    7.24, 4.26, 10.84, 4.82, 5.68};
    double ones[COUNT];
    struct bootstrap_interval found;
    for (size_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    struct bootstrap what = {{Y, ones}, 2, COUNT, mean_of, 2000, 3, 0};
    assert_int_equal(bootstrap_interval(&what, &found), ERR_OK);
    assert_near(found.figure, 7.500909090909091, 1e-12);
    /* Student's t is 6.136 to 8.866: a little more, for so few */
    assert_true(found.low > 5.4 && found.low < 6.136);
    assert_true(found.high > 8.866 && found.high < 9.6);
    what.terms[0] = ones; /* nothing differs: neither does what is drawn */
    assert_int_equal(bootstrap_interval(&what, &found), ERR_OK);
    assert_near(found.low, 1, 0);
    assert_near(found.high, 1, 0);
    what.count = 0;
    assert_int_equal(bootstrap_interval(&what, &found), ERR_OK);
    assert_true(isnan(found.figure) && isnan(found.low));
}

/* Means of so many data sets of known mean that their 95 % intervals hold, in per cent. */
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
        struct bootstrap what = {{values, ones}, 2, count, mean_of, RESAMPLES, t, 0};
        assert_int_equal(bootstrap_interval(&what, &found), ERR_OK);
        held += found.low <= truth && truth <= found.high;
    }
    return 100.0 * held / SETS;
}

static void within(double share, double least, double most)
{
    if (!(share >= least && share <= most))
        fail_msg("%.1f %% is not within %g to %g", share, least, most);
}

/* Heavy tails, as energies of queries have, must not make intervals too narrow; nor light ones useless. */
static void intervals_cover_what_they_claim(void **state)
{
    (void)state;
    if (getenv("IPW_SLOW"))
        SKIP("coverage takes minutes under valgrind");
    within(coverage(10, true, 21), 93, 99);
    within(coverage(30, true, 22), 93, 99);
    within(coverage(10, false, 23), 94, 99);
    within(coverage(30, false, 24), 94, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scatter_of_a_mean_is_the_known_one),
        cmocka_unit_test(every_stratum_keeps_its_own),
        cmocka_unit_test(a_seed_is_a_sequence),
        cmocka_unit_test(normal_draws_are_normal),
        cmocka_unit_test(intervals_of_a_ratio),
        cmocka_unit_test(intervals_cover_what_they_claim),
    };
    return RUN_TESTS(tests);
}
