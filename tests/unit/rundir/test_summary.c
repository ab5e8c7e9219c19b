#include "support/unit.h"

#include <stdlib.h>

#include "core/result.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/summary.h"
#include "core/jv.h"
#include "support/tree.h"

static void fill(struct summary *summary)
{
    summary_init(summary);
    summary->model = "m";
    summary->config_seed = (INT64_C(1) << 53) - 1;
    summary->config_client_params.text = "{\"header.x\":\"(not kept)\"}";
    summary->generated_at = 1.5e9;
    summary->completed = 3;
    summary->energy = (struct record_energy){.joules = 7,
                                             .plus_minus = UNKNOWN,
                                             .statistical = UNKNOWN,
                                             .coverage = 1,
                                             .idle_joules = UNKNOWN,
                                             .active_joules = UNKNOWN,
                                             .method = "counter",
                                             .updates = 4,
                                             .low_confidence = 1};
    summary->interrupted = 0;
    summary->accuracy_interval = (struct summary_interval){0.25, 0.75};
    summary->statistics[STATISTIC_TTFT] = (struct summary_statistic){1, 2, 3, 4, 5, 6, 7};
    summary->conditions.background_cpus = 1.9;
    summary->conditions.cpus = 2;
    summary->conditions.devices[summary->conditions.device_count++] =
        (struct summary_condition){"gpu0", 20.5,  UNKNOWN,
                                   40,     61,    1410,
                                   0.25,   "gpm", {0.5, 0.25, UNKNOWN, 0.125, 0, 0.0625, 0.75, 1}};
    summary->conditions.findings[summary->conditions.finding_count++] =
        (struct finding){.code = "background_cpu",
                         .severity = FINDING_INVALID,
                         .text = "other processes used 1.9 of 2 CPUs"};
    summary->idle.known = true;
    summary->idle.seconds = 2;
    summary->idle.devices = calloc(1, sizeof *summary->idle.devices);
    summary->idle.devices[summary->idle.count++] =
        (struct summary_idle_device){"gpu0", 20.5, UNKNOWN};
    summary->devices = calloc(1, sizeof *summary->devices);
    summary->devices[summary->device_count++] =
        (struct summary_device){"gpu0", true, summary->energy, 30, 40, UNKNOWN};
}

static void test_every_view_has_consecutive_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < SUMMARY_INDEXES; i++) {
        const struct summary_field *column =
            summary_index(summary_index_place((enum summary_index)i));
        for (size_t before = 0; before < i; before++)
            assert_ptr_not_equal(summary_index(i), summary_index(before));
        assert_non_null(column->index_name);
    }
    for (size_t i = 0; i < SUMMARY_GAUGES; i++)
        for (size_t before = 0; before < i; before++)
            assert_ptr_not_equal(summary_gauge(i), summary_gauge(before));
    assert_string_equal(summary_index(0)->index_name, "model");
    assert_string_equal(summary_index(SUMMARY_INDEXES - 1)->index_name, "run_kind");
    assert_string_equal(summary_index(summary_index_place(SUMMARY_INDEX_ipj))->index_name, "ipj");
    assert_string_equal(summary_gauge(0)->gauge_label, "status=completed");
    assert_string_equal(summary_gauge(SUMMARY_GAUGES - 1)->gauge_name,
                        "ipw_run_energy_per_audio_second_joules");
    for (const struct summary_field *field = SUMMARY_FIELDS; field->at.path; field++)
        assert_true(!field->report || strncmp(field->at.path, "ipw.", 4) == 0);
}

static void test_a_summary_round_trips(void **state)
{
    (void)state;
    struct summary summary, again;
    struct tree tree;
    tree_new(&tree);
    fill(&summary);
    assert_int_equal(summary_save(tree.root, &summary, NULL), ERR_OK);
    assert_int_equal(summary_load(tree.root, &again, NULL), ERR_OK);
    assert_string_equal(again.model, "m");
    assert_true(again.config_seed == (INT64_C(1) << 53) - 1);
    assert_string_equal(jv_text(jv_get(again.config_client_params.value, "header.x")),
                        "(not kept)");
    assert_int_equal(again.completed, 3);
    assert_true(again.failed == INTEGER_UNKNOWN);
    assert_true(again.energy.joules == 7 && again.energy.updates == 4);
    assert_int_equal(again.energy.low_confidence, 1);
    assert_int_equal(again.interrupted, 0);
    assert_true(again.accuracy_interval.low == 0.25 && again.accuracy_interval.high == 0.75);
    assert_true(again.statistics[STATISTIC_TTFT].p95 == 6 &&
                again.statistics[STATISTIC_TTFT].count == 7);
    assert_int_equal(again.statistics[STATISTIC_ENERGY].count, 0);
    assert_true(again.idle.known && again.idle.count == 1 && again.idle.devices[0].watts == 20.5);
    assert_true(again.conditions.background_cpus == 1.9 && again.conditions.cpus == 2);
    assert_false(is_known(again.conditions.background_joules));
    assert_int_equal(again.conditions.device_count, 1);
    assert_true(again.conditions.devices[0].clock_mhz == 1410 &&
                !is_known(again.conditions.devices[0].idle_after_w));
    assert_string_equal(again.conditions.devices[0].activity_source, "gpm");
    assert_true(again.conditions.devices[0].activity[SUMMARY_SM_ACTIVE] == 0.5 &&
                again.conditions.devices[0].activity[SUMMARY_UTILIZATION] == 1 &&
                !is_known(again.conditions.devices[0].activity[SUMMARY_DRAM_ACTIVE]));
    assert_int_equal(again.conditions.finding_count, 1);
    assert_int_equal(again.conditions.findings[0].severity, FINDING_INVALID);
    assert_string_equal(again.conditions.findings[0].text, "other processes used 1.9 of 2 CPUs");
    assert_int_equal(again.device_count, 1);
    assert_true(again.devices[0].in_total && again.devices[0].power_max_w == 40);
    assert_string_equal(again.devices[0].energy.method, "counter");

    /* and written again it is the same text */
    struct text first = {0}, second = {0};
    summary_to_json(&summary, true, &first);
    summary_to_json(&again, true, &second);
    assert_string_equal(text_get(&first), text_get(&second));
    assert_non_null(strstr(text_get(&first), "\"gpu_info\": null"));
    assert_non_null(strstr(text_get(&first), "\"client_info\": null"));
    text_release(&first);
    text_release(&second);
    summary_release(&summary);
    summary_release(&again);
    tree_free(&tree);
}

/* Of earlier versions, of a later one, and none. */
static void former_and_unknown_severities_are_read(void **state)
{
    static const struct {
        const char *json;
        enum finding_severity severity;
    } ROWS[] = {{"\"note\"", FINDING_NOTE},       {"\"warning\"", FINDING_WARNING},
                {"\"invalid\"", FINDING_INVALID}, {"\"breaks\"", FINDING_INVALID},
                {"\"void\"", FINDING_INVALID},    {"\"severe\"", FINDING_WARNING},
                {"null", FINDING_WARNING}};
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct text json = {0};
        struct error why = {0};
        struct summary summary;
        text_addf(&json,
                  "{\"ipw\": {\"conditions\": {\"findings\": [{\"code\": \"throttled\", "
                  "\"severity\": %s, \"text\": \"hot\"}]}}}",
                  ROWS[i].json);
        struct jv *tree = NULL;
        assert_int_equal(jv_parse(text_get(&json), json.length, &tree, &why), ERR_OK);
        assert_int_equal(summary_from_json(tree, &summary, &why), ERR_OK);
        assert_int_equal(summary.conditions.finding_count, 1);
        assert_string_equal(summary.conditions.findings[0].code, "throttled");
        assert_int_equal(summary.conditions.findings[0].severity, ROWS[i].severity);
        summary_release(&summary);
        text_release(&json);
    }
}

static void the_most_severe_findings_are_kept(void **state)
{
    (void)state;
    struct summary_conditions conditions;
    struct findings found = {0};
    summary_conditions_init(&conditions);
    for (size_t i = 0; i <= SUMMARY_FINDINGS_MAX; i++)
        finding_raise(&found, FINDING_THROTTLED, "device %zu", i);
    finding_raise_as(&found, FINDING_BACKGROUND_CPU, FINDING_INVALID, "busy");
    summary_conditions_find(&conditions, &found);
    assert_int_equal(conditions.finding_count, SUMMARY_FINDINGS_MAX);
    assert_string_equal(conditions.findings[0].code, "background_cpu");
    assert_string_equal(conditions.findings[1].text, "device 0");
    findings_release(&found);
}

static void test_the_report_is_the_ipw_object(void **state)
{
    (void)state;
    struct summary summary;
    struct result report = {0};
    fill(&summary);
    result_begin(&report, "profile");
    summary_put_report(&summary, &report);
    result_end(&report);
    assert_true(result_number_at(report.items, "energy.joules") == 7);
    assert_true(result_number_at(report.items, "statistics.time_to_first_token_s.p95") == 6);
    assert_string_equal(result_find(&report, "statistics.time_to_first_token_s.p95")->unit, "s");
    assert_int_equal(result_find(&report, "interrupted")->kind, RESULT_FLAG);
    assert_null(result_find(&report, "devices"));
    assert_null(result_find(&report, "model"));
    result_release(&report);
    summary_release(&summary);
}

static void check_charge(const struct charge *found, double cost, double gco2e, double error)
{
    assert_near(found->cost, cost, 1e-9 * cost);
    assert_near(found->gco2e, gco2e, 1e-9 * gco2e);
    assert_near(found->gco2e_plus_minus, error * gco2e, 1e-9 * gco2e);
}

/* 2 GPUs for half an hour, 0.5 kWh ± 4 %, of which the 100 queries are 0.4 kWh. */
static void test_costs_are_per_query_and_token(void **state)
{
    (void)state;
    struct summary run;
    summary_init(&run);
    run.tariff = (struct tariff){0.3, 400, 2};
    run.energy.joules = 1.8e6;
    run.energy.plus_minus = 0.04 * 1.8e6;
    run.completed = 100;
    run.seconds = 1800;
    run.device_seconds = 3600;
    run.joules_per_query = 1.44e4;
    run.joules_per_input_token = 14.4;
    run.joules_per_output_token = 72;
    run.input_tokens = 1e5;
    run.output_tokens = 2e4;
    run.statistics[STATISTIC_INPUT].count = run.statistics[STATISTIC_OUTPUT].count = 100;
    summary_charge(&run);
    assert_near(run.electricity_cost, 0.15, 1e-12);
    check_charge(&run.charge, 0.15 + 2, 200, 0.04);
    assert_near(run.charge.cost_plus_minus, 0.04 * 0.15, 1e-12);
    check_charge(&run.per_query, (0.12 + 2) / 100, 1.6, 0.04);
    check_charge(&run.per_million_input, (0.12 + 2) / 0.1, 1600, 0.04);
    check_charge(&run.per_million_output, (0.12 + 2) / 0.02, 8000, 0.04);
    assert_near(run.per_million_output.cost_plus_minus, 0.04 * 0.12 / 0.02, 1e-9);

    run.statistics[STATISTIC_OUTPUT].count =
        99; /* tokens of one are unknown: so is the cost per token */
    summary_charge(&run);
    assert_false(is_known(run.per_million_output.cost));
    assert_near(run.per_million_output.gco2e, 8000, 1e-6);

    run.energy.joules = run.joules_per_query = UNKNOWN;
    summary_charge(&run);
    assert_false(is_known(run.charge.cost) || is_known(run.charge.gco2e) ||
                 is_known(run.per_query.cost) || is_known(run.electricity_cost));
}

static void test_device_time_of_older_runs(void **state)
{
    (void)state;
    struct summary run;
    struct summary_device devices[] = {{.id = "cpu0"}, {.id = "gpu0"}, {.id = "gpu1"}};
    summary_init(&run);
    assert_false(is_known(summary_device_seconds(&run)));
    run.seconds = 10;
    assert_near(summary_device_seconds(&run), 10, 0);
    run.devices = devices;
    run.device_count = 3;
    assert_near(summary_device_seconds(&run), 20, 0);
}

static void test_invalid_summaries_are_rejected(void **state)
{
    (void)state;
    struct summary summary;
    struct error why = {0};
    struct tree tree;
    tree_new(&tree);
    assert_int_equal(summary_load(tree.root, &summary, &why), ERR_NOT_FOUND);
    tree_write(&tree, "/summary.json", "%s", "[1]");
    assert_int_equal(summary_load(tree.root, &summary, &why), ERR_BAD_VALUE);
    tree_write(&tree, "/summary.json", "%s", "{\"ipw\": {\"devices\": 3, \"energy\": []");
    assert_int_equal(summary_load(tree.root, &summary, &why), ERR_BAD_VALUE);
    tree_write(&tree, "/summary.json", "%s",
               "{\"ipw\": {\"devices\": 3, \"energy\": [], \"idle\": {}}}");
    assert_int_equal(summary_load(tree.root, &summary, &why), ERR_OK);
    assert_int_equal(summary.device_count, 0);
    assert_false(is_known(summary.energy.joules));
    summary_release(&summary);
    tree_free(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_view_has_consecutive_rows),
        cmocka_unit_test(test_a_summary_round_trips),
        cmocka_unit_test(former_and_unknown_severities_are_read),
        cmocka_unit_test(the_most_severe_findings_are_kept),
        cmocka_unit_test(test_the_report_is_the_ipw_object),
        cmocka_unit_test(test_costs_are_per_query_and_token),
        cmocka_unit_test(test_device_time_of_older_runs),
        cmocka_unit_test(test_invalid_summaries_are_rejected),
    };
    return RUN_TESTS(tests);
}
