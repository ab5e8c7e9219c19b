#include "support/unit.h"

#include <math.h>

#include "core/finding.h"
#include "core/units.h"
#include "metrics/intelligence.h"

static const struct busy_energy BUSY = {.joules = 100, .plus_minus = 5, .seconds = 10};

static void add(struct intelligence_tally *tally, enum query_outcome outcome, double joules,
                double active)
{
    struct intelligence_query query = {
        .outcome = outcome,
        .joules = joules,
        .active_joules = active,
        .seconds = 2,
        .gpu_joules = UNKNOWN,
        .gpu_watts = UNKNOWN,
    };
    intelligence_add(tally, &query);
}

static struct intelligence_tally example(void)
{
    struct intelligence_tally tally = {0};
    add(&tally, OUTCOME_CORRECT, 10, 4);
    add(&tally, OUTCOME_CORRECT, 20, 8);
    add(&tally, OUTCOME_INCORRECT, 30, 12);
    add(&tally, OUTCOME_UNGRADED, 40, 16);
    add(&tally, OUTCOME_FAILED, 1000, 400);
    return tally;
}

static void figures_match_a_calculation_by_hand(void **state)
{
    (void)state;
    struct intelligence_tally tally = example();
    struct intelligence is;
    intelligence_of(&tally, &BUSY, 0.03, &is);
    assert_int_equal(is.energy_queries, 4);
    assert_near(is.accuracy, 2. / 3, 1e-12); /* ungraded and failed queries are separate */
    assert_near(is.joules_per_query, 25, 1e-12);
    assert_near(is.active_joules_per_query, 10, 1e-12);
    assert_near(is.ipj, 2. / 75, 1e-12);
    assert_near(is.ipj_active, 2. / 30, 1e-12);
    assert_near(is.busy_watts, 10, 1e-12);
    assert_near(is.ipw, 2. / 30, 1e-12);
    /* Variance of the accuracy 2/3 x 1/3 / 2; of the mean joules 500/3 / 4; covariance of the three
     * graded -10 / 2, so of the means -5 x 3 / (3 x 4). */
    double slope = 2. / 75;
    double variance = 1. / 9 + slope * slope * 125 / 3 + 2 * slope * 1.25;
    assert_near(is.ipj_statistical, sqrt(variance) / 25, 1e-12);
    assert_near(is.ipj_plus_minus, hypot(sqrt(variance) / 25, 0.03 * 2 / 75), 1e-12);
    assert_near(is.ipw_plus_minus, hypot(1. / 30, 2. / 30 * 0.05), 1e-12);
}

static void a_query_with_unknown_energy_counts_for_accuracy(void **state)
{
    (void)state;
    struct intelligence_tally tally = example();
    struct intelligence is;
    add(&tally, OUTCOME_INCORRECT, UNKNOWN, UNKNOWN);
    intelligence_of(&tally, &BUSY, 0, &is);
    assert_near(is.accuracy, 0.5, 1e-12);
    assert_int_equal(is.energy_queries, 4);
    assert_near(is.ipj, 0.02, 1e-12);
    /* As above, with four graded queries of which three have an energy. */
    double variance = 0.25 / 3 + 0.02 * 0.02 * 125 / 3 + 2 * 0.02 * 5 * 3 / (4 * 4);
    assert_near(is.ipj_statistical, sqrt(variance) / 25, 1e-12);
}

/* Wilson's interval, against published values. */
static void accuracy_interval_matches_published_values(void **state)
{
    (void)state;
    static const struct {
        unsigned correct, incorrect;
        double low, high;
    } CASES[] = {
        {81, 182, 0.2553, 0.3662}, /* Newcombe 1998, table I */
        {15, 133, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 28, 0.0061, 0.1718}, {20, 0, 0.8389, 1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct intelligence_tally tally = {0};
        struct intelligence is;
        for (unsigned n = 0; n < CASES[i].correct; n++)
            add(&tally, OUTCOME_CORRECT, 1, 1);
        for (unsigned n = 0; n < CASES[i].incorrect; n++)
            add(&tally, OUTCOME_INCORRECT, 1, 1);
        intelligence_of(&tally, &BUSY, 0, &is);
        assert_near(is.accuracy_low, CASES[i].low, 6e-5);
        assert_near(is.accuracy_high, CASES[i].high, 6e-5);
    }
}

static struct intelligence with_unread(unsigned correct, unsigned incorrect, unsigned unread,
                                       struct intelligence_tally *tally)
{
    struct intelligence is;
    *tally = (struct intelligence_tally){0};
    for (unsigned i = 0; i < correct + incorrect + unread; i++)
        add(tally,
            i < correct               ? OUTCOME_CORRECT
            : i < correct + incorrect ? OUTCOME_INCORRECT
                                      : OUTCOME_UNREAD,
            1, 1);
    intelligence_of(tally, &BUSY, 0, &is);
    return is;
}

/* The published value of 1 of 29, as above: one incorrect and 27 unread answers are 28 that are not correct. */
static void an_unread_answer_is_graded_and_not_correct(void **state)
{
    (void)state;
    struct intelligence_tally tally;
    struct intelligence is = with_unread(1, 1, 27, &tally);
    assert_int_equal(is.graded, 29);
    assert_near(is.accuracy, 1. / 29, 1e-12);
    assert_near(is.accuracy_low, 0.0061, 6e-5);
    assert_near(is.accuracy_high, 0.1718, 6e-5);
    assert_near(is.unread, 27, 0);
    assert_near(is.unread_share, 27. / 29, 1e-12);
    assert_near(is.accuracy_at_most, 28. / 29, 1e-12);
    assert_int_equal(tally.correct + tally.incorrect + tally.unread, 29);

    struct intelligence all_read = with_unread(1, 28, 0, &tally);
    assert_near(all_read.accuracy_error, is.accuracy_error, 0); /* also the errors are those */
    assert_near(all_read.ipj_statistical, is.ipj_statistical, 1e-15);
    assert_near(all_read.accuracy_at_most, all_read.accuracy, 0);
}

/* An earlier version graded a query, and did not say whether it could read the answer. */
static void the_number_of_unread_answers_may_be_unknown(void **state)
{
    (void)state;
    struct intelligence_tally tally;
    struct intelligence is = with_unread(3, 1, 0, &tally);
    struct intelligence_query older = {.outcome = OUTCOME_CORRECT, .hides_unread = true};
    intelligence_add(&tally, &older);
    intelligence_of(&tally, &BUSY, 0, &is);
    assert_near(is.accuracy, 4. / 5, 1e-12);
    assert_false(is_known(is.unread) || is_known(is.unread_share));
    assert_false(is_known(is.accuracy_at_most));
}

static void more_than_a_tenth_unread_is_a_finding(void **state)
{
    (void)state;
    struct intelligence_tally tally;
    struct findings found = {0};
    char text[320];
    struct intelligence is = with_unread(60, 30, 10, &tally);
    assert_false(intelligence_check(&is, &found)); /* not more than a tenth */
    assert_int_equal(found.count, 0);
    intelligence_unread(&is, text, sizeof text);
    assert_string_equal(text,
                        "10 of 100 graded answers (10.0 %) could not be read by the grader and "
                        "count as not correct: the accuracy is 60.0 %, and at most 70.0 %");
    is = with_unread(60, 29, 11, &tally);
    assert_true(intelligence_check(&is, &found));
    assert_string_equal(found.items[0].code, "unread_answers");
    assert_string_equal(found.items[0].text,
                        "11 of 100 graded answers (11.0 %) could not be read by the grader and "
                        "count as not correct: the accuracy is 60.0 %, and at most 71.0 %");
    is = with_unread(60, 40, 0, &tally);
    intelligence_unread(&is, text, sizeof text);
    assert_string_equal(text, "");
    findings_release(&found);
}

static void figures_without_data_are_unknown(void **state)
{
    (void)state;
    struct intelligence_tally tally = {0};
    struct intelligence is;
    intelligence_of(&tally, &BUSY, 0.03, &is);
    assert_false(is_known(is.accuracy) || is_known(is.accuracy_low) || is_known(is.accuracy_high));
    assert_false(is_known(is.ipj) || is_known(is.ipw) || is_known(is.ipj_active));
    assert_false(is_known(is.ipj_statistical) || is_known(is.ipw_plus_minus));
    assert_false(is_known(is.upstream_ipj_mean_query) || is_known(is.upstream_ipj_total));
    assert_false(is_known(is.upstream_ipw_mean_query) || is_known(is.upstream_ipw_total));

    add(&tally, OUTCOME_UNGRADED, 5, 5); /* energy, but no graded answer */
    intelligence_of(&tally, &BUSY, 0.03, &is);
    assert_near(is.joules_per_query, 5, 0);
    assert_false(is_known(is.ipj) || is_known(is.ipw));

    add(&tally, OUTCOME_INCORRECT, UNKNOWN, UNKNOWN); /* all wrong: 0 */
    intelligence_of(&tally, &BUSY, 0.03, &is);
    assert_near(is.ipj, 0, 0);
    assert_int_equal(is.energy_queries, 1);

    struct busy_energy dark = {UNKNOWN, UNKNOWN, 10};
    tally = example();
    intelligence_of(&tally, &dark, UNKNOWN, &is);
    assert_false(is_known(is.ipw) || is_known(is.ipw_plus_minus));
    assert_true(is_known(is.ipj) && is_known(is.ipj_statistical));
    assert_false(is_known(is.ipj_plus_minus)); /* the calibration uncertainty is unknown */
}

/* The two upstream IPJ values differ by a factor of the number of queries; ours does not depend on it. */
static void upstream_figures_follow_upstream_rules(void **state)
{
    (void)state;
    static const struct intelligence_query QUERIES[] = {
        {OUTCOME_CORRECT, 50, 40, 2, 8, 3, false}, /* 8 J, 4 W */
        {OUTCOME_CORRECT, 50, 40, 2, 0, 6, false}, /* upstream treats 0 J as missing: 6 W x 2 s */
        {OUTCOME_INCORRECT, 50, 40, 4, 4, UNKNOWN, false}, /* 4 J, 1 W */
        {OUTCOME_CORRECT, 50, 40, 2, UNKNOWN, NAN, false}, /* only the answer is known */
        {OUTCOME_UNGRADED, 50, 40, 2, 6, 3, false},        /* in the totals, not in the analysis */
        {OUTCOME_FAILED, 50, 40, 2, 1000, 500, false},     /* not counted */
    };
    struct intelligence_tally tally = {0};
    struct intelligence is;
    for (size_t i = 0; i < sizeof QUERIES / sizeof *QUERIES; i++)
        intelligence_add(&tally, &QUERIES[i]);
    intelligence_of(&tally, &BUSY, 0, &is);
    assert_near(is.upstream_ipj_mean_query, 3. / 4 / 8, 1e-12);         /* 24 J / 3 */
    assert_near(is.upstream_ipj_total, 3. / 4 / 30, 1e-12);             /* 24 J and 6 */
    assert_near(is.upstream_ipw_mean_query, 3. / 4 / (11. / 3), 1e-12); /* 4, 6, 1 W */
    assert_near(is.upstream_ipw_total, 3. / 4 / 3, 1e-12);              /* 30 J / 10 s */
    assert_near(is.ipj, 3. / 4 / 50, 1e-12);
}

/* A small generator: the same on every machine. */
static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

/* The spread of random runs matches their ±, although long answers are wrong more often. */
static void ipj_uncertainty_matches_the_spread_of_runs(void **state)
{
    (void)state;
    enum { RUNS = 600, QUERIES = 200 };
    uint64_t seed = 7;
    struct online ipj = {0}, error = {0};
    for (int run = 0; run < RUNS; run++) {
        struct intelligence_tally tally = {0};
        struct intelligence is;
        for (int i = 0; i < QUERIES; i++) {
            double joules = 10 + 90 * uniform(&seed);
            bool right = uniform(&seed) < 1 - joules / 110;
            add(&tally, right ? OUTCOME_CORRECT : OUTCOME_INCORRECT, joules, 0);
        }
        intelligence_of(&tally, &BUSY, 0, &is);
        online_add(&ipj, is.ipj);
        online_add(&error, is.ipj_statistical);
    }
    assert_near(online_mean(&error) / online_stddev(&ipj), 1, 0.1);
}

/* Ten questions, six of them correct, in every round. */
static struct intelligence_tally tally_of_rounds(unsigned rounds)
{
    struct intelligence_tally tally = {0};
    struct question answers[100];
    size_t count = 0;
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned q = 0; q < 10; q++) {
            double joules = 10 + q * q;
            add(&tally, q < 6 ? OUTCOME_CORRECT : OUTCOME_INCORRECT, joules, 0);
            answers[count++] = (struct question){q, q < 6, 1, joules, 1};
        }
    if (rounds > 1) {
        count = questions_merge(answers, count);
        assert_int_equal(count, 10);
        tally.repeats = repeats_of(answers, count);
        assert_near(tally.repeats.effective, 10, 1e-9);
    }
    return tally;
}

static void repeated_questions_do_not_reduce_the_uncertainty(void **state)
{
    (void)state;
    struct intelligence once, seven;
    struct intelligence_tally a = tally_of_rounds(1), b = tally_of_rounds(7);
    intelligence_of(&a, &BUSY, 0.03, &once);
    intelligence_of(&b, &BUSY, 0.03, &seven);
    assert_near(seven.ipj, once.ipj, 1e-12);
    assert_near(seven.accuracy_low, once.accuracy_low, 1e-12);
    assert_near(seven.accuracy_high, once.accuracy_high, 1e-12);
    assert_near(seven.accuracy_error, once.accuracy_error, 1e-12);
    assert_near(seven.ipj_statistical, once.ipj_statistical, 1e-12);
    assert_near(seven.ipw_plus_minus, once.ipw_plus_minus, 1e-12);
}

/* Of 20 right answers of 20 Wilson's interval begins at 20 / (20 + 3.8415). */
static void an_accuracy_of_one_has_an_uncertainty(void **state)
{
    (void)state;
    struct intelligence_tally tally = {0};
    struct intelligence is;
    for (int i = 0; i < 20; i++)
        add(&tally, OUTCOME_CORRECT, 8 + 4 * (i % 2), 0);
    intelligence_of(&tally, &BUSY, 0, &is);
    double error = (1 - 20 / 23.841459) / (2 * 1.959964);
    assert_near(is.accuracy_error, error, 1e-6);
    assert_near(is.ipw_plus_minus, hypot(error / 10, 0.1 * 0.05), 1e-6);
    double scatter = 2 * sqrt(20. / 19) / sqrt(20); /* of the mean joules, 10 */
    assert_near(is.ipj_statistical, hypot(error / 10, 0.01 * scatter), 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_match_a_calculation_by_hand),
        cmocka_unit_test(a_query_with_unknown_energy_counts_for_accuracy),
        cmocka_unit_test(accuracy_interval_matches_published_values),
        cmocka_unit_test(an_unread_answer_is_graded_and_not_correct),
        cmocka_unit_test(the_number_of_unread_answers_may_be_unknown),
        cmocka_unit_test(more_than_a_tenth_unread_is_a_finding),
        cmocka_unit_test(figures_without_data_are_unknown),
        cmocka_unit_test(upstream_figures_follow_upstream_rules),
        cmocka_unit_test(ipj_uncertainty_matches_the_spread_of_runs),
        cmocka_unit_test(repeated_questions_do_not_reduce_the_uncertainty),
        cmocka_unit_test(an_accuracy_of_one_has_an_uncertainty),
    };
    return RUN_TESTS(tests);
}
