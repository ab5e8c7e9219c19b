/* test: valgrind */
/* traces.jsonl: files of the Python IPW, old and new; what ipw writes; the figures of upstream's
 * exporter; the dataset. */
#include "rundir/traces.h"

#include <math.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/summary.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

#define OLD IPW_FIXTURES "/traces/old"
#define NEW IPW_FIXTURES "/traces/new"

static struct traces load_traces(const char *directory)
{
    struct traces traces;
    struct error why = {0};
    assert_int_equal(traces_load(directory, &traces, &why), ERR_OK);
    assert_int_equal(traces.damaged, 0);
    return traces;
}

static void files_of_old_versions_are_read(void **state)
{
    (void)state;
    struct traces traces = load_traces(OLD);
    const struct query_trace *first = &traces.items[0];
    assert_int_equal(traces.count, 3);
    assert_string_equal(first->query_id, "q0000");
    assert_int_equal(first->turn_count, 2);
    assert_near(first->total_input_tokens, 201, 0);
    assert_near(first->total_tokens, 242, 0);
    assert_near(first->total_tool_calls, 1, 0);
    assert_near(query_trace_gpu_joules(first), 150, 1e-12);
    assert_near(query_trace_gpu_watts(first), 150, 1e-12);
    assert_near(first->energy_per_output_token_joules, 150.0 / 41, 1e-12);
    assert_near(first->throughput_tokens_per_sec, 41.0 / 3, 1e-12);
    assert_int_equal(first->lm_energy_measurable, 1);
    assert_int_equal(first->is_resolved, -1);
    assert_true(isnan(first->turns[0].peak_watts));
    /* Tokens of one turn are unknown: so are the query's. */
    assert_true(isnan(traces.items[1].total_input_tokens));
    assert_near(traces.items[1].total_output_tokens, 20, 0);
    assert_true(isnan(query_trace_gpu_joules(&traces.items[1])));
    assert_int_equal(traces.items[2].turn_count, 0);
    traces_release(&traces);
}

static void files_of_new_versions_are_read(void **state)
{
    (void)state;
    struct traces traces = load_traces(NEW);
    assert_int_equal(traces.count, 5);
    const struct query_trace *first = &traces.items[0];
    assert_near(first->total_task_gpu_energy_joules, 55, 1e-12);
    assert_near(first->total_task_cpu_energy_joules, 5, 1e-12);
    assert_near(first->total_cost_usd, 0.001, 1e-15);
    assert_near(first->total_tool_calls, 2, 0);
    assert_int_equal(first->turns[0].has_parallel_tools, 1);
    assert_near(first->turns[0].cached_tokens, 5, 0);
    assert_near(traces.items[4].n_retries, 4, 0);
    /* Only the query's energy is known: its turns share it by time, which is noted. */
    assert_string_equal(first->ipw.energy_split, "wall_clock_share");
    assert_near(first->turns[0].gpu_energy_joules, 12.5, 1e-12);
    assert_near(first->turns[1].gpu_energy_joules, 37.5, 1e-12);
    assert_near(traces.items[1].turns[0].gpu_energy_joules, 30, 1e-12);
    assert_near(query_trace_gpu_watts(&traces.items[1]), 40, 1e-12); /* mean of its turns */
    traces_release(&traces);
}

/* The keys of an object of the fixtures, in their order, followed by ours. */
static void assert_keys(const struct jv *written, const struct jv *theirs, bool has_ours)
{
    const struct jv *mine = jv_first_member(written);
    for (const struct jv *member = jv_first_member(theirs); member; member = jv_next(member)) {
        assert_non_null(mine);
        assert_string_equal(jv_key(mine), jv_key(member));
        mine = jv_next(mine);
    }
    if (has_ours)
        assert_string_equal(jv_key(mine), "ipw");
    else
        assert_null(mine);
}

static void keys_are_written_in_the_order_of_upstream(void **state)
{
    (void)state;
    struct traces traces = load_traces(NEW);
    struct text line = {0};
    struct jv *parsed;
    struct error why;
    query_trace_to_json(&traces.items[0], &line);
    assert_int_equal(jv_parse(line.bytes, line.length, &parsed, &why), ERR_OK);
    assert_keys(parsed, traces.items[0].tree, true);
    assert_keys(jv_path(parsed, "turns.0"), jv_path(traces.items[0].tree, "turns.0"), false);
    assert_near(jv_number(jv_path(parsed, "turns.0.tool_latencies_s.shell")), 0.5, 0);
    jv_free(parsed);
    text_release(&line);
    traces_release(&traces);
}

/* Written traces are read back, including spans; of duplicate queries, the last counts. */
static void written_traces_round_trip(void **state)
{
    (void)state;
    struct turn_trace turn;
    struct span_trace spans[2];
    struct query_trace trace;
    struct text line = {0}, file = {0};
    turn_trace_init(&turn);
    turn.turn_index = 0;
    turn.input_tokens = 10;
    turn.output_tokens = 2;
    turn.tools_called.text = "[\"a\"]";
    memset(spans, 0, sizeof spans);
    spans[0] = (struct span_trace){.type = "agent",
                                   .parent = UNKNOWN,
                                   .turn = UNKNOWN,
                                   .to_s = 2,
                                   .joules = 9,
                                   .no_end = -1,
                                   .made_up = -1};
    spans[1] = (struct span_trace){.type = "tool_call",
                                   .name = "a",
                                   .turn = 0,
                                   .from_s = 1,
                                   .to_s = 2,
                                   .joules = 4,
                                   .no_end = 1,
                                   .made_up = -1};
    query_trace_init(&trace);
    trace.query_id = "q0000";
    trace.ipw.key = "q000000";
    trace.ipw.events = 7;
    trace.ipw.no_end = 1;
    trace.turns = &turn;
    trace.turn_count = 1;
    trace.spans = spans;
    trace.span_count = 2;
    for (int i = 0; i < 2; i++) {
        trace.response_text = i ? "last" : "first";
        query_trace_to_json(&trace, &line);
        text_addf(&file, "%s\n", text_get(&line));
    }
    text_add(&file, "{\"query_id\":\"q0001\"}\n{\"workload_type\":\"x\",\"query_id\":\"q2\","
                    "\"turns\":[{}]}\n{broken\n");
    tree_write_bytes(&tree, "/traces.jsonl", 0, file.bytes, file.length);
    struct traces traces;
    struct error why = {0};
    assert_int_equal(traces_load(tree.root, &traces, &why), ERR_OK);
    assert_int_equal(traces.count, 1);
    assert_int_equal(traces.damaged, 3);
    const struct query_trace *read = &traces.items[0];
    assert_string_equal(read->response_text, "last");
    assert_int_equal(read->span_count, 2);
    assert_true(isnan(read->spans[0].parent));
    assert_near(read->spans[1].parent, 0, 0);
    assert_near(read->spans[1].joules, 4, 0);
    assert_int_equal(read->spans[1].no_end, 1);
    assert_near(read->tool_call_count, 1, 0);
    struct text summary = {0};
    struct json json;
    json_init(&json, &summary, false);
    json_object(&json, NULL);
    traces_summary_to_json(&traces, &json);
    json_object_end(&json);
    assert_non_null(strstr(text_get(&summary), "\"trace_events\":{\"events\":7,\"errors\":null,"
                                               "\"no_end\":1,"));
    text_release(&summary);
    traces_release(&traces);
    text_release(&line);
    text_release(&file);
}

static void a_missing_file_is_not_found(void **state)
{
    (void)state;
    struct traces traces;
    struct error why = {0};
    assert_int_equal(traces_load(IPW_FIXTURES, &traces, &why), ERR_NOT_FOUND);
}

/* ---- summary.json ---- */

static const struct {
    const char *path;
    double value;
} FIGURES[] = {
    {"totals.queries", 5},
    {"totals.completed", 5},
    {"totals.resolved", 3},
    {"totals.unresolved", 1},
    {"totals.turns", 10},
    {"totals.tool_calls", 10},
    {"totals.input_tokens", 5 * 201},
    {"totals.wall_clock_s", 50},
    {"totals.gpu_energy_joules", 2450},
    {"totals.cpu_energy_joules", 245},
    {"totals.cost_usd", 0.005},
    {"totals.accuracy", 0.75},
    {"efficiency.total_gpu_energy_joules", 2450},
    {"efficiency.ipj", 0.75 / 2450}, /* over the energy of all queries, as upstream defines it */
    {"efficiency.avg_gpu_power_watts", (50 + 40 + 40 + 50 + 50) / 5.0},
    {"efficiency.ipw", 0.75 / 46},
    {"averages.turns_per_query", 2},
    {"averages.wall_clock_per_query_s", 10},
    {"averages.gpu_energy_per_query_joules", 490},
    {"statistics.wall_clock_s.avg", 10},
    {"statistics.wall_clock_s.median", 3},
    {"statistics.wall_clock_s.max", 40},
    {"statistics.wall_clock_s.std", 16.8077363},
    {"statistics.mbu_avg_pct.avg", 32},
    {"statistics.tool_calls.std", 0},
    {"normalized_statistics.wall_clock_s.avg", 3},
    {"normalized_statistics._outliers_removed.queries_before", 5},
    {"normalized_statistics._outliers_removed.queries_after", 3},
    {"normalized_efficiency.accuracy", 0.5},
    {"normalized_efficiency.ipj", 0.5 / 400},
};

static void summary_figures_match_the_upstream_exporter(void **state)
{
    (void)state;
    struct traces traces = load_traces(NEW);
    struct summary summary;
    struct text text = {0};
    struct jv *parsed;
    struct error why;
    summary_init(&summary);
    summary.traces = &traces;
    struct jv *config = jv_new_members(&(struct jv_member){"agent", jv_new_text("react")}, 1);
    traces.config = config;
    summary_to_json(&summary, true, &text);
    assert_int_equal(jv_parse(text.bytes, text.length, &parsed, &why), ERR_OK);
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        if (fabs(jv_number(jv_path(parsed, FIGURES[i].path)) - FIGURES[i].value) > 1e-6)
            fail_msg("%s: %g", FIGURES[i].path, jv_number(jv_path(parsed, FIGURES[i].path)));
    assert_int_equal(jv_count(jv_get(parsed, "statistics")), 14);
    assert_int_equal(jv_count(jv_get(parsed, "totals")), 14);
    assert_string_equal(jv_text(jv_path(parsed, "config.agent")), "react");
    assert_non_null(jv_text(jv_path(parsed, "normalized_efficiency._description")));
    jv_free(parsed);
    jv_free(config);
    text_release(&text);
    traces_release(&traces);
}

/* One query: the deviation is 0, and nothing is left without outliers. */
static void few_queries_have_no_outliers(void **state)
{
    (void)state;
    struct traces traces = load_traces(OLD), one = {.items = traces.items, .count = 1};
    struct text text = {0};
    struct json json;
    struct jv *parsed;
    struct error why;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    traces_summary_to_json(&one, &json);
    json_object_end(&json);
    assert_int_equal(jv_parse(text.bytes, text.length, &parsed, &why), ERR_OK);
    assert_true(jv_is_null(jv_get(parsed, "normalized_statistics")));
    assert_true(jv_is_null(jv_get(parsed, "normalized_efficiency")));
    assert_near(jv_number(jv_path(parsed, "statistics.turns.std")), 0, 0);
    assert_true(jv_is_null(jv_path(parsed, "totals.accuracy")));
    assert_true(jv_is_null(jv_path(parsed, "efficiency.ipj")));
    jv_free(parsed);
    text_release(&text);
    traces_release(&traces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_old_versions_are_read),
        cmocka_unit_test(files_of_new_versions_are_read),
        cmocka_unit_test(keys_are_written_in_the_order_of_upstream),
        cmocka_unit_test_setup_teardown(written_traces_round_trip, tree_set_up, tree_tear_down),
        cmocka_unit_test(a_missing_file_is_not_found),
        cmocka_unit_test(summary_figures_match_the_upstream_exporter),
        cmocka_unit_test(few_queries_have_no_outliers),
    };
    return RUN_TESTS(tests);
}
