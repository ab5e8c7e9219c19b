#include "support/unit.h"

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "runner/profile/sums.h"

static void add(struct sums *sums, const char *text)
{
    struct jv *value;
    struct record record;
    assert_int_equal(jv_parse(text, strlen(text), &value, NULL), ERR_OK);
    record_from_json(value, "m", &record);
    sums_add(sums, &record);
    jv_free(value);
}

#define METRICS(more) "\"model_metrics\": {\"m\": {" more "}}"
#define OWN(more)     "\"ipw\": {" more "}"

static const char RIGHT[] = "{" METRICS(
    "\"latency_metrics\": {\"total_query_seconds\": 2, \"time_to_first_token_seconds\": 0.5},"
    "\"token_metrics\": {\"input\": 10, \"output\": 20},"
    "\"energy_metrics\": {\"per_query_joules\": 30, \"cpu_per_query_joules\": 10},"
    "\"phase_metrics\": {\"prefill_energy_j\": 8, \"decode_energy_j\": 32},"
    "\"cost\": {\"total_cost_usd\": 0.25},"
    "\"evaluation\": {\"is_correct\": true}") ", " OWN("\"status\": \"completed\", \"start\": 1, "
                                                       "\"started_at\": 100,"
                                                       "\"energy\": {\"joules\": 40, "
                                                       "\"idle_joules\": 4, \"active_joules\": 36},"
                                                       "\"failed_attempts\": {\"1\": {\"joules\": "
                                                       "3}, \"2\": {\"joules\": null}}") "}";

/* No token counts, no energy, not graded; from the second start. */
static const char BARE[] =
    "{" METRICS("\"latency_metrics\": {\"total_query_seconds\": 1}") ", " OWN(
        "\"status\": \"completed\", \"start\": 2, \"started_at\": 500, \"energy\": {\"joules\": "
        "null}") "}";

static const char FAILED[] =
    "{" METRICS("\"latency_metrics\": {\"total_query_seconds\": 5},"
                "\"token_metrics\": {\"output\": 7}") ", " OWN("\"status\": \"failed\", \"start\": "
                                                               "1, \"started_at\": 101, "
                                                               "\"energy\": {\"joules\": 6}") "}";

static const char WRONG[] = "{" METRICS(
    "\"latency_metrics\": {\"total_query_seconds\": 4},"
    "\"token_metrics\": {\"input\": 1, \"output\": 0},"
    "\"evaluation\": {\"is_correct\": false}") ", " OWN("\"status\": \"completed\", \"start\": 2, "
                                                        "\"started_at\": 499,"
                                                        "\"energy\": {\"joules\": 2}, "
                                                        "\"judge_energy\": {\"joules\": 9}") "}";

static void joules_latencies_and_tokens_are_summed_over_records(void **state)
{
    (void)state;
    struct sums sums;
    sums_init(&sums);
    add(&sums, RIGHT);
    add(&sums, BARE);
    add(&sums, FAILED);
    add(&sums, WRONG);
    assert_int_equal(sums.queries, 4);
    assert_int_equal(sums.completed, 3);
    assert_int_equal(sums.failed, 1);
    assert_int_equal(sums.measured, 2);
    assert_int_equal(sums.tally.correct, 1);
    assert_int_equal(sums.tally.incorrect, 1);
    assert_int_equal(sums.tally.ungraded, 1);
    assert_near(sums.joules, 42, 1e-12);
    assert_near(sums.failed_joules, 3 + 6, 1e-12); /* the repeated attempt, and the failed query */
    assert_near(sums.judge_joules, 9, 1e-12);
    assert_near(sums.gpu_joules, 30, 1e-12);
    assert_near(sums.cpu_joules, 10, 1e-12);
    assert_near(sums.prefill.joules, 8, 1e-12);
    assert_near(sums.cost, 0.25, 1e-12);
    assert_near(sums.output_tokens, 20, 1e-12); /* tokens of a failed query are not output */
    assert_near(sums.input_tokens, 11, 1e-12);
    assert_near(sums.per_output.joules, 42, 1e-12);
    assert_false(is_known(sums.idle_joules)); /* one has no baseline */
    /* 100 to 106 in the first start, 499 to 503 in the second; the pause between them is not counted. */
    assert_near(sums_seconds(&sums), 6 + 4, 1e-9);
    assert_int_equal(sums.rows[STATISTIC_LATENCY].moments.count, 3);
    assert_near(sketch_quantile(&sums.rows[STATISTIC_LATENCY], 0.5), 2, 1e-12);
    assert_int_equal(sums.rows[STATISTIC_TTFT].moments.count, 1);
    assert_near(sketch_quantile(&sums.rows[STATISTIC_POWER], 1), 20, 1e-12);
    sums_release(&sums);
}

#define GRADED(members)                                                                            \
    "{" METRICS("\"evaluation\": {" members "}") ", " OWN("\"status\": \"completed\"") "}"

/* Every query has one outcome. */
static void unread_answers_are_counted_with_their_reason(void **state)
{
    (void)state;
    struct sums sums;
    char reason[200];
    sums_init(&sums);
    sums.repeats = true;
    add(&sums, GRADED("\"is_correct\": true, \"status\": \"graded\", \"metadata\": \"{}\""));
    add(&sums, GRADED("\"is_correct\": false, \"status\": \"graded\", \"metadata\": \"{}\""));
    add(&sums,
        GRADED("\"status\": \"unread\", \"metadata\": \"{\\\"reason\\\": \\\"no letter\\\"}\""));
    add(&sums,
        GRADED("\"status\": \"ungraded\", \"metadata\": \"{\\\"reason\\\": \\\"no judge\\\"}\""));
    add(&sums, BARE);
    add(&sums, FAILED);
    const struct intelligence_tally *tally = &sums.tally;
    assert_int_equal(tally->correct, 1);
    assert_int_equal(tally->incorrect, 1);
    assert_int_equal(tally->unread, 1);
    assert_int_equal(tally->ungraded, 2);
    assert_int_equal(tally->failed, 1);
    assert_int_equal(tally->correct + tally->incorrect + tally->unread + tally->ungraded +
                         tally->failed,
                     sums.queries);
    assert_false(tally->hides_unread);
    assert_true(sums_reason(sums.unread, reason, sizeof reason));
    assert_string_equal(reason, "no letter");
    assert_true(sums_reason(sums.ungraded, reason, sizeof reason));
    assert_contains(reason, "no judge");
    double graded = 0;
    for (size_t i = 0; i < sums.asked_count; i++)
        graded += sums.asked[i].graded;
    assert_near(graded, 3, 0); /* also for intervals over repeats */
    add(&sums, GRADED("\"is_correct\": true, \"metadata\": \"{}\"")); /* of an earlier version */
    assert_true(sums.tally.hides_unread);
    sums_release(&sums);
}

static void every_start_is_counted(void **state)
{
    (void)state;
    enum { STARTS = 80 };
    struct sums sums;
    sums_init(&sums);
    for (int i = 1; i <= STARTS; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "{" METRICS(
                     "\"latency_metrics\": {\"total_query_seconds\": 1},"
                     "\"token_metrics\": {\"output\": 10}") ", " OWN("\"status\": \"completed\", "
                                                                     "\"start\": %d, "
                                                                     "\"started_at\": %d") "}",
                 i, 1000 * i);
        add(&sums, text);
    }
    assert_near(sums_seconds(&sums), STARTS, 1e-9);
    assert_near(sums.output_tokens / sums_seconds(&sums), 10, 1e-9);
    sums_release(&sums);
}

static void failure_reasons_and_unknown_token_reasons_are_counted(void **state)
{
    (void)state;
    struct sums sums;
    char reason[200];
    sums_init(&sums);
    assert_false(sums_reason(sums.failures, reason, sizeof reason));
    for (int i = 0; i < 40; i++) { /* more different reasons than are distinguished */
        char text[200];
        snprintf(text, sizeof text, "{" OWN("\"status\": \"failed\", \"error\": \"%s %d\"") "}",
                 i % 4 ? "odd" : "common", i % 4 ? i : 0);
        add(&sums, text);
    }
    add(&sums, "{" OWN("\"status\": \"completed\", \"finish_reason\": \"length\", \"pieces\": 6,"
                       "\"tokens_note\": \"no usage\", \"energy\": {\"joules\": 3}") "}");
    assert_true(sums_reason(sums.failures, reason, sizeof reason));
    assert_string_equal(reason, "10 times: common 0");
    assert_true(sums_reason(sums.token_notes, reason, sizeof reason));
    assert_string_equal(reason, "no usage");
    assert_int_equal(sums.cut, 1);
    assert_near(sums.chunk_count, 6, 0);
    assert_near(energy_per_of(&sums.chunks), 0.5, 1e-12);
    assert_false(is_known(sums.output_tokens)); /* a chunk is not a token */
    sums_release(&sums);
}

static void sums_without_data_are_unknown_not_0(void **state)
{
    (void)state;
    struct sums sums;
    sums_init(&sums);
    add(&sums, BARE);
    assert_int_equal(sums.measured, 0);
    assert_false(is_known(sums.output_tokens));
    assert_false(is_known(sums.input_tokens));
    assert_false(is_known(sums.gpu_joules));
    assert_false(is_known(sums.cpu_joules));
    assert_false(is_known(sums.judge_joules));
    assert_false(is_known(sums.cost));
    sums_release(&sums);
    sums_init(&sums);
    assert_false(is_known(sums_seconds(&sums)));
    sums_release(&sums);
}

static void statistics_are_over_known_values(void **state)
{
    (void)state;
    struct sums sums;
    sums_init(&sums);
    add(&sums, WRONG);
    struct summary_statistic latency = sums_statistic(&sums, STATISTIC_LATENCY);
    assert_near(latency.avg, 4, 1e-12);
    assert_near(latency.p95, 4, 1e-12);
    assert_false(is_known(latency.std)); /* a single value has none */
    assert_int_equal(latency.count, 1);
    assert_int_equal(sums_statistic(&sums, STATISTIC_TTFT).count, 0);
    assert_int_equal(sums_statistic(&sums, STATISTIC_GPU_ENERGY).count, 0);
    sums_release(&sums);
}

/* Two windows of 4 tokens, 2 and 4 nats: a mean of 3 / 4 per token, whose residuals are -1 and 1. */
static void scores_and_likelihoods_are_averaged(void **state)
{
    (void)state;
    struct sums sums;
    double error;
    sums_init(&sums);
    assert_false(is_known(sums_ratio(&sums.per_token, &error)));
    for (int i = 1; i <= 2; i++) {
        char line[400];
        str_format(
            line, sizeof line,
            "{" METRICS("\"evaluation\": {\"metadata\": \"{\\\"score\\\": 0.%d}\"}") ", " OWN(
                "\"status\": \"completed\", \"start\": 1, \"scored_tokens\": 4, "
                "\"scored_bytes\": 8, \"negative_log_likelihood\": %d") "}",
            2 * i, 2 * i);
        add(&sums, line);
    }
    assert_near(sums_ratio(&sums.per_token, &error), 0.75, 1e-12);
    assert_near(error, sqrt(2 * 2 / 1) / 8, 1e-12);
    assert_near(sums_ratio(&sums.per_byte, &error), 0.375, 1e-12);
    assert_int_equal(sums.scores.count, 2);
    assert_near(online_mean(&sums.scores), 0.3, 1e-12);
    sums_release(&sums);
}

static void an_example_of_each_metadata_key_is_kept(void **state)
{
    (void)state;
    struct sums sums;
    int64_t whole;
    sums_init(&sums);
    add(&sums, "{\"dataset_metadata\": {\"level\": 3, \"name\": null, \"share\": 1}}");
    add(&sums, "{\"dataset_metadata\": {\"level\": 9, \"name\": \"Ada\", \"share\": 0.5}}");
    add(&sums, "{\"dataset_metadata\": {\"level\": \"x\", \"name\": \"Bob\", \"late\": true}}");
    assert_true(jv_integer(jv_get(sums.metadata, "level"), &whole));
    assert_int_equal(whole, 3);
    assert_string_equal(jv_text(jv_get(sums.metadata, "name")), "Ada");
    assert_near(jv_number(jv_get(sums.metadata, "share")), 0.5,
                0); /* a fraction is preferred as an example */
    assert_true(jv_is_bool(jv_get(sums.metadata, "late")));
    sums_release(&sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joules_latencies_and_tokens_are_summed_over_records),
        cmocka_unit_test(unread_answers_are_counted_with_their_reason),
        cmocka_unit_test(every_start_is_counted),
        cmocka_unit_test(failure_reasons_and_unknown_token_reasons_are_counted),
        cmocka_unit_test(sums_without_data_are_unknown_not_0),
        cmocka_unit_test(statistics_are_over_known_values),
        cmocka_unit_test(an_example_of_each_metadata_key_is_kept),
        cmocka_unit_test(scores_and_likelihoods_are_averaged),
    };
    return RUN_TESTS(tests);
}
