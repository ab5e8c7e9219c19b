#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/random.h"
#include "core/units.h"
#include "stats/contrast.h"

enum { QUERIES_MAX = 6000 };

/* The terms that each query of a run adds to the sums. */
struct run {
    double terms[QUERIES_MAX * CONTRAST_SUMS];
};
static struct run left, right;

static void set_query(struct run *run, size_t i, double numerator, double denominator)
{
    double *terms = run->terms + i * CONTRAST_SUMS;
    terms[0] = numerator;
    terms[1] = denominator;
    terms[2] = terms[3] = 0;
}

static struct contrast compare_runs(size_t a, size_t b, bool paired, uint64_t seed)
{
    struct contrast found;
    struct contrast_question question = {
        .a = {left.terms, a}, .b = {right.terms, b}, .paired = paired, .seed = seed};
    contrast(&question, &found);
    return found;
}

/* Skewed, as latencies and energies are; pairs share the cost of the question. */
static void draw_runs(size_t count, struct random *draws, double spread, double shift, bool paired)
{
    for (size_t i = 0; i < count; i++) {
        double question = exp(spread * random_normal(draws));
        double other = exp(spread * random_normal(draws));
        double a = question * exp(0.2 * random_normal(draws));
        double b = (paired ? question : other) * exp(0.2 * random_normal(draws)) + shift;
        set_query(&left, i, a, 1);
        set_query(&right, i, b, 1);
    }
}

/* Three standard deviations above five percent of that many trials. */
static double false_positive_limit(size_t tries)
{
    return 0.05 * (double)tries + 3 * sqrt((double)tries * 0.05 * 0.95);
}

/* Rates over hundreds of trials take minutes under valgrind, where the other tests cover the same code. */
static void skip_if_slow(void)
{
    if (test_is_instrumented())
        SKIP("rates of hundreds of trials take minutes");
}

static void false_positives_are_at_the_nominal_rate(void **state)
{
    (void)state;
    skip_if_slow();
    enum { TRIES = 400, COUNT = 16 };
    for (int paired = 0; paired < 2; paired++) {
        struct random draws = random_seeded(11 + (uint64_t)paired);
        size_t found = 0;
        for (size_t t = 0; t < TRIES; t++) {
            draw_runs(COUNT, &draws, 1, 0, paired);
            found += compare_runs(COUNT, COUNT, paired, t).p_value < 0.05;
        }
        assert_true((double)found <= false_positive_limit(TRIES));
        assert_true(found > 4); /* and the test has power */
    }
}

static void holm_controls_the_family_wise_error_rate(void **state)
{
    (void)state;
    enum { TRIES = 2000, QUESTIONS = 11 };
    struct random draws = random_seeded(5);
    size_t plain = 0, corrected = 0;
    for (size_t t = 0; t < TRIES; t++) {
        double p[QUESTIONS];
        bool any = false;
        for (size_t i = 0; i < QUESTIONS; i++) {
            p[i] = ((double)random_index(&draws, 1000000) + 0.5) / 1e6;
            any = any || p[i] < 0.05;
        }
        plain += any;
        holm_adjust(p, QUESTIONS);
        any = false;
        for (size_t i = 0; i < QUESTIONS; i++)
            any = any || p[i] < 0.05;
        corrected += any;
    }
    assert_true(plain > TRIES / 3); /* uncorrected, with eleven comparisons */
    assert_true((double)corrected <= false_positive_limit(TRIES));
}

static void intervals_contain_the_true_difference(void **state)
{
    (void)state;
    skip_if_slow();
    enum { TRIES = 400, COUNT = 10 };
    for (int paired = 0; paired < 2; paired++) {
        struct random draws = random_seeded(77 + (uint64_t)paired);
        size_t held = 0;
        for (size_t t = 0; t < TRIES; t++) {
            draw_runs(COUNT, &draws, 1, 0.5, paired);
            struct contrast found = compare_runs(COUNT, COUNT, paired, t);
            held += found.difference.low <= 0.5 && found.difference.high >= 0.5;
        }
        assert_true(held >= TRIES * 93 / 100); /* skewed and few */
        assert_true(held < TRIES);
    }
}

static void a_difference_is_found(void **state)
{
    (void)state;
    struct random draws = random_seeded(3);
    draw_runs(100, &draws, 1, 0.5, true);
    struct contrast found = compare_runs(100, 100, true, 1);
    assert_true(found.p_value < 0.001);
    assert_true(found.difference.low > 0 && found.difference.low < found.difference.value);
    assert_true(found.difference.high > found.difference.value);
    assert_true(found.relative.low > 0);
    assert_near(found.relative.value, found.b / found.a - 1, 1e-12);
}

static void few_pairs_are_permuted_exhaustively(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10; i++) {
        set_query(&left, i, (double)i, 1);
        set_query(&right, i, (double)i + 1, 1);
    }
    struct contrast found = compare_runs(10, 10, true, 0);
    assert_true(found.exact);
    assert_near(found.p_value, 2 / 1024.0, 1e-15); /* all differences of one sign */
    assert_near(found.difference.value, 1, 1e-12);
    assert_near(found.difference.low, 1, 1e-12);
    assert_near(found.difference.high, 1, 1e-12);
}

/* A ratio of sums, not a mean of ratios: long answers have more weight. */
static void ratios_are_ratios_of_sums(void **state)
{
    (void)state;
    set_query(&left, 0, 10, 1);
    set_query(&left, 1, 10, 9);
    set_query(&right, 0, 30, 1);
    set_query(&right, 1, 30, 9);
    struct contrast found = compare_runs(2, 2, true, 0);
    assert_near(found.a, 2, 1e-12);
    assert_near(found.b, 6, 1e-12);
    assert_near(found.relative.value, 2, 1e-12);
}

static void products_of_two_ratios_are_compared(void **state)
{
    (void)state;
    struct contrast found;
    const double a[] = {1, 1, 1, 4, 0, 1, 1, 4}, b[] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct contrast_question question = {
        .a = {a, 2}, .b = {b, 2}, .paired = true, .product = true, .seed = 0};
    contrast(&question, &found);
    assert_near(found.a, 0.5 * 0.25, 1e-12);
    assert_near(found.b, 1, 1e-12);
}

static void results_are_reproducible_by_seed(void **state)
{
    (void)state;
    struct random draws = random_seeded(9);
    draw_runs(50, &draws, 1, 0.1, false);
    struct contrast one = compare_runs(50, 40, false, 7), two = compare_runs(50, 40, false, 7),
                    other = compare_runs(50, 40, false, 8);
    assert_true(one.p_value == two.p_value && one.difference.low == two.difference.low);
    assert_true(one.p_value != other.p_value || one.difference.low != other.difference.low);
}

static void missing_data_is_unknown(void **state)
{
    (void)state;
    set_query(&left, 0, 1, 0);
    set_query(&right, 0, 1, 1);
    struct contrast found = compare_runs(1, 1, true, 0);
    assert_false(is_known(found.a) || is_known(found.p_value) || is_known(found.difference.value));
    found = compare_runs(0, 1, false, 0);
    assert_false(is_known(found.a) || is_known(found.p_value));
    set_query(&left, 0, 1, 1); /* one query: a value, but no test */
    found = compare_runs(1, 1, true, 0);
    assert_near(found.p_value, 1, 0);
    assert_false(is_known(found.difference.low) || is_known(found.a_error));
    set_query(&left, 1, 0, 1); /* division by zero */
    set_query(&left, 0, 0, 1);
    set_query(&right, 1, 1, 1);
    found = compare_runs(2, 2, true, 0);
    assert_near(found.difference.value, 1, 0);
    assert_false(is_known(found.relative.value));
}

static void rounding_is_not_a_difference(void **state)
{
    (void)state;
    for (size_t i = 0; i < 30; i++) {
        set_query(&left, i, 0.1, 1);
        set_query(&right, i, 0.1 + 1e-14, 1);
    }
    struct contrast found = compare_runs(30, 30, true, 0);
    assert_near(found.difference.value, 0, 0);
    assert_near(found.p_value, 1, 0);
}

/* More queries than resampling units: the same values, and nearly the same intervals. */
static void many_queries_are_grouped(void **state)
{
    (void)state;
    struct random draws = random_seeded(21);
    draw_runs(QUERIES_MAX, &draws, 1, 0, false);
    struct contrast found = compare_runs(QUERIES_MAX, QUERIES_MAX, true, 0);
    double mean = 0, squares = 0;
    for (size_t i = 0; i < QUERIES_MAX; i++) {
        double d = right.terms[i * CONTRAST_SUMS] - left.terms[i * CONTRAST_SUMS];
        mean += d / QUERIES_MAX;
        squares += d * d / QUERIES_MAX;
    }
    double error = sqrt((squares - mean * mean) / QUERIES_MAX);
    assert_near(found.difference.value, mean, 1e-9);
    assert_near(found.difference.high - found.difference.low, 2 * 1.96 * error, 0.3 * error);
}

static void the_sign_test_is_exact(void **state)
{
    (void)state;
    assert_near(sign_test(0, 0), 1, 0);
    assert_near(sign_test(3, 3), 1, 0);
    assert_near(sign_test(0, 5), 0.0625, 1e-12);
    assert_near(sign_test(9, 1), 0.021484375, 1e-12);
    /* As balanced as an odd number can be: exactly 1, in any order of summation. */
    for (uint64_t i = 0; i < 400; i++)
        assert_near(sign_test(i, i + 1), 1, 0);
    assert_near(sign_test(540, 460), sign_test(460, 540), 0);
    assert_near(sign_test(540, 460), 0.0124441462772, 1e-12);
}

static void holm_adjustment_matches_the_definition(void **state)
{
    (void)state;
    double p[] = {0.01, 0.04, UNKNOWN, 0.03, 0.005};
    holm_adjust(p, 5);
    assert_near(p[0], 0.03, 1e-12);
    assert_near(p[1], 0.06, 1e-12);
    assert_false(is_known(p[2]));
    assert_near(p[3], 0.06, 1e-12);
    assert_near(p[4], 0.02, 1e-12);
}

/* Queries of one run share its conditions: 5 % between runs, 1 % between queries, and no other difference. */
static void variance_between_runs_is_detected(void **state)
{
    (void)state;
    enum { RUNS = 3, QUERIES = 40 };
    const size_t tries = test_is_instrumented() ? 200 : 2000;
    struct random draws = random_seeded(23);
    size_t by_run = 0, by_query = 0;
    for (size_t i = 0; i < tries; i++) {
        double a[RUNS] = {0}, b[RUNS] = {0};
        for (size_t r = 0; r < RUNS; r++) {
            double of_a = 1 + 0.05 * random_normal(&draws), of_b = 1 + 0.05 * random_normal(&draws);
            for (size_t q = 0; q < QUERIES; q++) {
                double x = of_a + 0.01 * random_normal(&draws),
                       y = of_b + 0.01 * random_normal(&draws);
                a[r] += x / QUERIES;
                b[r] += y / QUERIES;
                set_query(&left, q, x, 1);
                set_query(&right, q, y, 1);
            }
        }
        struct contrast found;
        contrast_runs(a, RUNS, b, RUNS, &found);
        by_run += found.p_value < 0.05;
        assert_true((found.p_value < 0.05) ==
                    (found.difference.low > 0 || found.difference.high < 0));
        if (is_known(found.relative.low))
            assert_true((found.p_value < 0.05) ==
                        (found.relative.low > 0 || found.relative.high < 0));
        if (i < 20) /* of the last runs only */
            by_query += compare_runs(QUERIES, QUERIES, true, i).p_value < 0.05;
    }
    assert_true((double)by_run <= false_positive_limit(tries));
    assert_true(by_query >= 16);
}

/* Computed with NumPy and SciPy: ordinary least squares on the side and the position, Welch's test, and their average by
 * the odds of the Bayesian information criterion; the interval by a search over a grid. */
static void a_trend_in_the_order_of_runs_is_allowed_for(void **state)
{
    (void)state;
    enum { RUNS = 5 };
    static const struct {
        double a[RUNS], b[RUNS], between; /* the step from one time of a side to the next */
        double trend, weight, p, low, high, p_beyond;
    } CASES[] = {
        /* a drift explains the difference */
        {{10.0, 10.1, 10.3, 10.2, 10.4},
         {10.6, 10.5, 10.8, 10.7, 11.0},
         1,
         0.045,
         0.04077765584,
         0.702019996,
         -0.249705,
         0.352740,
         0.95934391},
        /* no drift: blocks lose little */
        {{10.0, 10.3, 10.1, 10.4, 10.0},
         {10.9, 10.6, 11.1, 10.8, 10.7},
         1,
         0.685,
         0.9657619763,
         0.0016090561,
         0.374410,
         0.950200,
         0.021583459},
        /* the same drift, alternating: it explains nothing */
        {{10.0, 10.1, 10.3, 10.2, 10.4},
         {10.6, 10.5, 10.8, 10.7, 11.0},
         2,
         0.4725,
         0.04077765584,
         0.0002047375016,
         0.321000,
         0.633725,
         0.031399892},
    };
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        double a_times[RUNS], b_times[RUNS];
        struct contrast found;
        for (size_t i = 0; i < RUNS; i++) {
            a_times[i] = 1000 + 7 * CASES[c].between * (double)i;
            b_times[i] = a_times[i] + (CASES[c].between > 1 ? 7 : 35);
        }
        contrast_runs(CASES[c].a, RUNS, CASES[c].b, RUNS, &found);
        double welch = found.p_value, low = found.relative.low;
        contrast_allow_trend(CASES[c].a, a_times, RUNS, CASES[c].b, b_times, RUNS, &found);
        assert_near(found.trend.difference, CASES[c].trend, 1e-9);
        assert_near(found.level_weight, CASES[c].weight, 1e-9);
        assert_near(found.p_value, CASES[c].p, 1e-9);
        assert_near(found.difference.low, CASES[c].low, 2e-5);
        assert_near(found.difference.high, CASES[c].high, 2e-5);
        assert_near(contrast_p(&found, -0.1, 0.3), CASES[c].p_beyond, 2e-3 * CASES[c].p_beyond);
        assert_int_equal(found.relative.low > 0, found.difference.low > 0);
        /* An unknown or an equal time: as without an order. */
        b_times[2] = c == 0 ? UNKNOWN : a_times[1];
        contrast_runs(CASES[c].a, RUNS, CASES[c].b, RUNS, &found);
        contrast_allow_trend(CASES[c].a, a_times, RUNS, CASES[c].b, b_times, RUNS, &found);
        assert_true(found.p_value == welch && found.relative.low == low);
    }
}

/* Values of six runs each, of which run i of both sides is a pair. */
static const double PAIR_A[] = {10.0, 12.0, 11.0, 13.0, 12.5, 9.5};
static const double PAIR_B[] = {11.0, 13.5, 11.8, 14.2, 13.1, 10.9};
enum { PAIRS = 6 };

/* By hand: differences 1, 1.5, 0.8, 1.2, 0.6, 1.4. */
static void pairs_are_tested_by_their_differences(void **state)
{
    struct contrast found;
    double mean = 6.5 / PAIRS;
    double variance = (1.0 + 2.25 + 0.64 + 1.44 + 0.36 + 1.96 - PAIRS * mean * mean) / 5;
    double error = sqrt(variance / PAIRS), t_95 = 2.570581835636314;
    (void)state;
    contrast_pairs(PAIR_A, PAIR_B, PAIRS, 1, &found);
    assert_near(found.difference.value, mean, 1e-12);
    assert_near(found.difference.low, mean - t_95 * error, 1e-9);
    assert_near(found.difference.high, mean + t_95 * error, 1e-9);
    assert_near(found.freedom, 5, 0);
    assert_true(found.p_value < 0.001);
    double of_one_look = found.p_value;
    contrast_pairs(PAIR_A, PAIR_B, PAIRS, 0.25, &found);
    assert_near(found.p_value, 4 * of_one_look, 1e-12);
    assert_true(found.difference.low < mean - t_95 * error);
}

/* At an end of the interval of b / a, the differences b - ratio a are just significant. */
static void interval_of_the_ratio_of_pairs_is_fiellers(void **state)
{
    struct contrast found, at_end;
    double ends[2];
    (void)state;
    contrast_pairs(PAIR_A, PAIR_B, PAIRS, 1, &found);
    ends[0] = found.relative.low;
    ends[1] = found.relative.high;
    assert_true(ends[0] > 0 && ends[0] < found.relative.value && found.relative.value < ends[1]);
    for (size_t end = 0; end < 2; end++) {
        double scaled[PAIRS];
        for (size_t i = 0; i < PAIRS; i++)
            scaled[i] = (1 + ends[end]) * PAIR_A[i];
        contrast_pairs(scaled, PAIR_B, PAIRS, 1, &at_end);
        assert_near(at_end.p_value, 0.05, 1e-9);
    }
}

static void pairs_with_an_unknown_value_are_ignored(void **state)
{
    struct contrast found, all;
    double a[PAIRS + 1], b[PAIRS + 1];
    (void)state;
    for (size_t i = 0; i < PAIRS; i++) {
        a[i + (i >= 2)] = PAIR_A[i];
        b[i + (i >= 2)] = PAIR_B[i];
    }
    a[2] = UNKNOWN;
    b[2] = 1000;
    contrast_pairs(a, b, PAIRS + 1, 1, &found);
    contrast_pairs(PAIR_A, PAIR_B, PAIRS, 1, &all);
    assert_near(found.p_value, all.p_value, 1e-15);
    contrast_pairs(PAIR_A, PAIR_B, 1, 1, &found);
    assert_near(found.difference.value, 1, 1e-12);
    assert_false(is_known(found.p_value));
    assert_false(is_known(found.difference.low));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(false_positives_are_at_the_nominal_rate),
        cmocka_unit_test(holm_controls_the_family_wise_error_rate),
        cmocka_unit_test(intervals_contain_the_true_difference),
        cmocka_unit_test(a_difference_is_found),
        cmocka_unit_test(few_pairs_are_permuted_exhaustively),
        cmocka_unit_test(ratios_are_ratios_of_sums),
        cmocka_unit_test(products_of_two_ratios_are_compared),
        cmocka_unit_test(results_are_reproducible_by_seed),
        cmocka_unit_test(missing_data_is_unknown),
        cmocka_unit_test(rounding_is_not_a_difference),
        cmocka_unit_test(many_queries_are_grouped),
        cmocka_unit_test(the_sign_test_is_exact),
        cmocka_unit_test(holm_adjustment_matches_the_definition),
        cmocka_unit_test(variance_between_runs_is_detected),
        cmocka_unit_test(a_trend_in_the_order_of_runs_is_allowed_for),
        cmocka_unit_test(pairs_are_tested_by_their_differences),
        cmocka_unit_test(interval_of_the_ratio_of_pairs_is_fiellers),
        cmocka_unit_test(pairs_with_an_unknown_value_are_ignored),
    };
    return RUN_TESTS(tests);
}
