#include "support/unit.h"

#include <math.h>

#include "core/units.h"
#include "stats/online.h"

/* Expected values:
 * python3 -c "import statistics as s; v=[412.25,398.5,405.75,421.0,399.125,407.5,403.0,415.875,
 *   400.25,409.625,431.5]; print(s.mean(v), s.variance(v), s.stdev(v), s.stdev(v)/len(v)**.5)" */
static const double WATTS[] = {412.25, 398.5,   405.75, 421.0,   399.125, 407.5,
                               403.0,  415.875, 400.25, 409.625, 431.5};
enum { WATTS_COUNT = sizeof WATTS / sizeof *WATTS };

static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* The textbook's two passes, in a wider type: an independent way to the same figures. */
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

static void moments_match_an_independent_calculation(void **state)
{
    (void)state;
    struct online stats = {0};
    for (size_t i = 0; i < WATTS_COUNT; i++)
        online_add(&stats, WATTS[i]);
    assert_int_equal(stats.count, 11);
    assert_near(online_mean(&stats), 409.4886363636364, 1e-11);
    assert_near(online_variance(&stats), 103.89829545454545, 1e-10);
    assert_near(online_stddev(&stats), 10.193051331890047, 1e-11);
    assert_near(online_standard_error(&stats), 3.0733206124283323, 1e-11);
    assert_near(online_min(&stats), 398.5, 0);
    assert_near(online_max(&stats), 431.5, 0);
}

static void nothing_known_is_unknown_not_zero(void **state)
{
    (void)state;
    struct online stats = {0};
    assert_false(is_known(online_mean(&stats)));
    assert_false(is_known(online_min(&stats)));
    assert_false(is_known(online_max(&stats)));
    assert_false(is_known(online_variance(&stats)));
    assert_false(is_known(online_standard_error(&stats)));
    online_add(&stats, -3.5);
    assert_near(online_mean(&stats), -3.5, 0);
    assert_near(online_min(&stats), -3.5, 0);
    assert_near(online_max(&stats), -3.5, 0);
    assert_false(is_known(online_variance(&stats)));
    assert_false(is_known(online_stddev(&stats)));
    assert_false(is_known(online_standard_error(&stats)));
    online_add(&stats, -3.5);
    assert_near(online_variance(&stats), 0, 0);
}

static void unknown_values_are_left_out(void **state)
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
    assert_near(online_variance(&stats), 2, 0);
}

/* Sum of squares minus square of sum gives 0 or nonsense here; the true variance is 30. */
static void a_large_offset_does_not_cancel(void **state)
{
    (void)state;
    static const double OFFSETS[] = {4, 7, 13, 16};
    struct online stats = {0};
    for (size_t i = 0; i < 4; i++)
        online_add(&stats, 1e9 + OFFSETS[i]);
    assert_near(online_variance(&stats), 30, 1e-6);
}

static void random_streams_match_two_passes(void **state)
{
    (void)state;
    uint64_t seed = 42;
    double values[500];
    for (size_t round = 0; round < 50; round++) {
        size_t count = 2 + (size_t)(next_random(&seed) * 498);
        struct online stats = {0};
        for (size_t i = 0; i < count; i++) {
            values[i] = 300 + 400 * next_random(&seed);
            online_add(&stats, values[i]);
        }
        double mean, variance;
        two_pass(values, count, &mean, &variance);
        assert_near(online_mean(&stats), mean, 1e-10);
        assert_near(online_variance(&stats), variance, 1e-8);
    }
}

/* However a stream is cut, the parts merge to the whole. */
static void parts_merge_to_the_whole(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= WATTS_COUNT; cut++) {
        struct online left = {0}, right = {0};
        for (size_t i = 0; i < WATTS_COUNT; i++)
            online_add(i < cut ? &left : &right, WATTS[i]);
        online_merge(&left, &right);
        assert_int_equal(left.count, 11);
        assert_near(online_mean(&left), 409.4886363636364, 1e-11);
        assert_near(online_variance(&left), 103.89829545454545, 1e-10);
        assert_near(online_min(&left), 398.5, 0);
        assert_near(online_max(&left), 431.5, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_match_an_independent_calculation),
        cmocka_unit_test(nothing_known_is_unknown_not_zero),
        cmocka_unit_test(unknown_values_are_left_out),
        cmocka_unit_test(a_large_offset_does_not_cancel),
        cmocka_unit_test(random_streams_match_two_passes),
        cmocka_unit_test(parts_merge_to_the_whole),
    };
    return RUN_TESTS(tests);
}
