#include "support/rng.h"
#include "support/unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/descriptive.h"

/* Expected values:
 * python3 -c "import statistics as s; v=[412.25,398.5,405.75,421.0,399.125,407.5,403.0,415.875,
 *   400.25,409.625,431.5]; print(s.median(v), s.quantiles(v,n=20,method='inclusive'));
 *   print(s.median(v[:10]), s.quantiles(v[:10],n=4,method='inclusive'))" */
static const double WATTS[] = {412.25, 398.5,   405.75, 421.0,   399.125, 407.5,
                               403.0,  415.875, 400.25, 409.625, 431.5};
static const double TWENTIETHS[] = {
    398.8125, 399.125, 399.6875, 400.25, 401.625,  403.0,   404.375,  405.75, 406.625, 407.5,
    408.5625, 409.625, 410.9375, 412.25, 414.0625, 415.875, 418.4375, 421.0,  426.25};

static void quantiles_match_an_independent_calculation(void **state)
{
    (void)state;
    assert_near(quantile(WATTS, 11, 0.5), 407.5, 0);
    for (size_t i = 0; i < 19; i++)
        assert_near(quantile(WATTS, 11, (double)(i + 1) / 20), TWENTIETHS[i], 1e-10);
    assert_near(quantile(WATTS, 11, 0), 398.5, 0);
    assert_near(quantile(WATTS, 11, 1), 431.5, 0);
    double quartiles[3];
    quantiles(WATTS, 10, (const double[]){0.25, 0.5, 0.75}, 3, quartiles);
    assert_near(quartiles[0], 400.9375, 1e-10);
    assert_near(quartiles[1], 406.625, 1e-10);
    assert_near(quartiles[2], 411.59375, 1e-10);
}

static void input_values_are_not_reordered(void **state)
{
    (void)state;
    double copy[11];
    memcpy(copy, WATTS, sizeof copy);
    (void)quantile(copy, 11, 0.9);
    assert_memory_equal(copy, WATTS, sizeof copy);
}

static void invalid_inputs_give_unknown(void **state)
{
    (void)state;
    static const double NOTHING[] = {NAN, INFINITY, -INFINITY};
    assert_false(is_known(quantile(NULL, 0, 0.5)));
    assert_false(is_known(quantile(NOTHING, 3, 0.5)));
    assert_false(is_known(quantile(WATTS, 11, -0.01)));
    assert_false(is_known(quantile(WATTS, 11, 1.01)));
    assert_false(is_known(quantile(WATTS, 11, NAN)));
    double out[2] = {1, 1};
    quantiles(NULL, 0, (const double[]){0.5, 0.9}, 2, out);
    assert_false(is_known(out[0]) || is_known(out[1]));
}

static void unknown_values_are_ignored(void **state)
{
    (void)state;
    static const double VALUES[] = {3, NAN, 1, INFINITY, 2, NAN};
    assert_near(quantile(VALUES, 6, 0.5), 2, 0);
    assert_near(quantile(VALUES, 6, 1), 3, 0);
}

static void few_and_extreme_values_are_handled(void **state)
{
    (void)state;
    static const double ONE[] = {7}, SAME[] = {0.1, 0.1, 0.1}, WIDE[] = {-DBL_MAX, DBL_MAX};
    assert_near(quantile(ONE, 1, 0), 7, 0);
    assert_near(quantile(ONE, 1, 0.37), 7, 0);
    assert_near(quantile(ONE, 1, 1), 7, 0);
    assert_near(quantile(SAME, 3, 0.3), 0.1, 0);
    assert_near(quantile(WIDE, 2, 0.5), 0, 0);
}

/* The k-th smallest by counting, without sorting. */
static double by_rank(const double *values, size_t count, size_t k)
{
    for (size_t i = 0; i < count; i++) {
        size_t smaller = 0, equal = 0;
        for (size_t j = 0; j < count; j++) {
            smaller += values[j] < values[i];
            equal += values[j] == values[i];
        }
        if (smaller <= k && k < smaller + equal)
            return values[i];
    }
    return NAN;
}

static void random_arrays_match_selection_by_counting(void **state)
{
    (void)state;
    uint64_t seed = 7;
    double values[60];
    for (size_t round = 0; round < 200; round++) {
        size_t count = 1 + (size_t)(rng_uniform_of(&seed) * 59);
        for (size_t i = 0; i < count; i++)
            values[i] = floor(rng_uniform_of(&seed) * 40) / 4; /* with ties */
        double p = rng_uniform_of(&seed), position = p * (double)(count - 1);
        size_t k = (size_t)floor(position);
        double low = by_rank(values, count, k);
        double high = by_rank(values, count, k + 1 < count ? k + 1 : k);
        double expected = low + (position - (double)k) * (high - low);
        assert_near(quantile(values, count, p), expected, 1e-12);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void selection_and_sorting_match_qsort(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static double values[MANY], sorted[MANY], copy[MANY];
    static const double PS[] = {0, 0.1, 0.5, 0.501, 0.99, 1};
    struct random random = random_seeded(9);
    for (size_t count = 1; count <= MANY; count = count * 3 + 1) {
        double found[6];
        for (size_t i = 0; i < count; i++) /* many duplicates */
            values[i] = sorted[i] = copy[i] = (double)random_index(&random, count / 2 + 1);
        qsort(sorted, count, sizeof *sorted, ascending);
        select_quantiles(values, count, PS, 6, found);
        for (size_t i = 0; i < 6; i++)
            assert_near(found[i], quantile_sorted(sorted, count, PS[i]), 1e-12);
        sort_ascending(copy, count);
        assert_memory_equal(copy, sorted, count * sizeof *copy);
    }
    assert_true(isnan(select_median(values, 0)));
}

/* Ranks of published tables: of the median at 95 %, 2 and 9 of 10, 8 and 18 of 25; an upper bound
 * of p95 and p99 at 95 % confidence needs 59 and 299 values. */
static void intervals_have_the_published_ranks(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        double p, level, low, high;
    } CASES[] = {{10, 0.5, 0.95, 2, 9},
                 {25, 0.5, 0.95, 8, 18},
                 {5, 0.5, 0.95, UNKNOWN, UNKNOWN},
                 {6, 0.5, 0.95, 1, 6},
                 {59, 0.95, 0.9, 53, 59},
                 {58, 0.95, 0.9, 52, UNKNOWN},
                 {299, 0.99, 0.9, 293, 299},
                 {0, 0.5, 0.9, UNKNOWN, UNKNOWN},
                 {9, 1, 0.9, UNKNOWN, UNKNOWN}};
    double ranks[299], low, high;
    for (size_t i = 0; i < 299; i++)
        ranks[i] = (double)(i + 1);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        quantile_interval(ranks, CASES[i].count, CASES[i].p, CASES[i].level, &low, &high);
        assert_true(low == CASES[i].low || (!is_known(low) && !is_known(CASES[i].low)));
        assert_true(high == CASES[i].high || (!is_known(high) && !is_known(CASES[i].high)));
    }
    assert_int_equal(quantile_min_count(0.95, 0.9), 59);
    assert_int_equal(quantile_min_count(0.99, 0.9), 299);
    assert_int_equal(quantile_min_count(0.5, 0.95), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_match_an_independent_calculation),
        cmocka_unit_test(input_values_are_not_reordered),
        cmocka_unit_test(invalid_inputs_give_unknown),
        cmocka_unit_test(unknown_values_are_ignored),
        cmocka_unit_test(few_and_extreme_values_are_handled),
        cmocka_unit_test(random_arrays_match_selection_by_counting),
        cmocka_unit_test(selection_and_sorting_match_qsort),
        cmocka_unit_test(intervals_have_the_published_ranks),
    };
    return RUN_TESTS(tests);
}
