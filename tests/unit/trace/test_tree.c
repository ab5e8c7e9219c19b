/* test: real time, tsan */
/* Events of agents and the spans that they form, including faulty events. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/json_read.h"
#include "port/thread.h"
#include "support/unit.h"
#include "trace/trace.h"

#define MS   NS_PER_MS
#define ZERO NS_PER_S /* base of the tests' times: an event at 0 would be timestamped on arrival */

/* One event of a test: its time in ms, its type as on the wire, id, name, parent; the last one has no type. */
struct step {
    double at;
    enum trace_type type;
    enum trace_edge edge;
    const char *id, *name, *parent;
};

#define S TRACE_START
#define E TRACE_END

static struct trace_tree build(const struct step *steps, size_t count)
{
    struct trace_recorder *recorder = trace_recorder_new();
    struct trace_events events;
    struct trace_tree tree;
    for (size_t i = 0; i < count; i++) {
        struct trace_event event =
            trace_event_new(steps[i].type, steps[i].edge, "q000000", steps[i].id);
        event.at = ZERO + (nanos)(steps[i].at * (double)MS);
        event.name = steps[i].name;
        event.parent = steps[i].parent;
        trace_event(recorder, &event);
    }
    trace_recorder_take(recorder, "q000000", &events);
    assert_int_equal(events.count, count);
    trace_tree_build(&events, 0, 0, &tree);
    trace_recorder_free(recorder);
    return tree;
}

#define BUILD(steps) build(steps, sizeof(steps) / sizeof *(steps))

static void add_span(const struct trace_tree *tree, int at, struct text *out)
{
    const struct trace_span *span = &tree->spans[at];
    bool first = true;
    text_addf(out, "%s%s%s[%g-%g]", trace_type_name(span->type), span->name[0] ? ":" : "",
              span->name, (double)(span->from - ZERO) / MS, (double)(span->to - ZERO) / MS);
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->spans[i].parent != at)
            continue;
        text_add(out, first ? "(" : " ");
        add_span(tree, (int)i, out);
        first = false;
    }
    if (!first)
        text_add(out, ")");
}

static void assert_tree(const struct trace_tree *tree, const char *expected)
{
    struct text text = {0};
    add_span(tree, 0, &text);
    assert_string_equal(text_get(&text), expected);
    text_release(&text);
}

static void spans_nest_by_id_and_by_time(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_AGENT, S, "a", "react", NULL},      {1, TRACE_TURN, S, "t0", NULL, NULL},
        {2, TRACE_INFERENCE, S, "i0", "m", NULL},     {2, TRACE_PREFILL, S, "p0", NULL, "i0"},
        {6, TRACE_PREFILL, E, "p0", NULL, NULL},      {6, TRACE_DECODE, S, "d0", NULL, "i0"},
        {20, TRACE_DECODE, E, "d0", NULL, NULL},      {20, TRACE_INFERENCE, E, "i0", NULL, NULL},
        {21, TRACE_TOOL, S, "x", "calculator", NULL}, {30, TRACE_TOOL, E, "x", NULL, NULL},
        {31, TRACE_TURN, E, "t0", NULL, NULL},        {32, TRACE_TURN, S, "t1", NULL, NULL},
        {33, TRACE_INFERENCE, S, "i1", "m", NULL},    {50, TRACE_INFERENCE, E, "i1", NULL, NULL},
        {51, TRACE_TURN, E, "t1", NULL, NULL},        {60, TRACE_AGENT, E, "a", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent:react[0-60](turn[1-31](lm_inference:m[2-20](prefill[2-6] "
                       "decode[6-20]) tool_call:calculator[21-30]) "
                       "turn[32-51](lm_inference:m[33-50]))");
    assert_int_equal(tree.spans[0].turn, -1);
    assert_int_equal(tree.spans[1].turn, 0);
    assert_int_equal(tree.spans[tree.count - 1].turn, 1);
    struct trace_problems none = {.events = 16};
    assert_memory_equal(&tree.problems, &none, sizeof none);
    trace_tree_release(&tree);
}

/* Upstream loses concurrent tools of one name. By its id each has its own end. */
static void concurrent_tools_of_one_name_are_matched_by_id(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_INFERENCE, S, "i", NULL, NULL}, {9, TRACE_INFERENCE, E, "i", NULL, NULL},
        {10, TRACE_TOOL, S, "x", "shell", NULL},  {11, TRACE_TOOL, S, "y", "shell", NULL},
        {20, TRACE_TOOL, E, "y", "shell", NULL},  {40, TRACE_TOOL, E, "x", "shell", NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent[0-40](turn[0-40](lm_inference[0-9] tool_call:shell[10-40] "
                       "tool_call:shell[11-20]))");
    assert_int_equal(tree.problems.ambiguous, 0);
    trace_tree_release(&tree);
}

static void overlapping_tools_without_ids_are_counted_as_ambiguous(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {10, TRACE_TOOL, S, NULL, "shell", NULL},
        {11, TRACE_TOOL, S, NULL, "shell", NULL},
        {20, TRACE_TOOL, E, NULL, "shell", NULL},
        {40, TRACE_TOOL, E, NULL, "shell", NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent[10-40](tool_call:shell[10-20] tool_call:shell[11-40])");
    assert_int_equal(tree.problems.ambiguous, 1);
    assert_int_equal(tree.problems.no_end + tree.problems.no_start, 0);
    trace_tree_release(&tree);
}

static void invalid_events_are_repaired_and_counted(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_TURN, S, "t", NULL, NULL},
        {1, TRACE_TOOL, S, "open", "a", NULL}, /* never ends */
        {2, TRACE_TOOL, E, "lost", "b", NULL}, /* never started */
        {6, TRACE_TOOL, E, "late", "c", NULL}, /* recorded before its start */
        {3, TRACE_TOOL, S, "late", "c", NULL},
        {4, TRACE_TOOL, S, "twice", "d", NULL},
        {4, TRACE_TOOL, S, "twice", "d", NULL},
        {8, TRACE_TOOL, E, "twice", "d", NULL},
        {8, TRACE_TOOL, E, "twice", "d", NULL},
        {9, TRACE_TOOL, S, "back", "e", NULL},
        {7, TRACE_TOOL, E, "back", "e", NULL}, /* a clock that was set back */
        {9, TRACE_OTHER, TRACE_POINT, NULL, NULL, NULL},
        {9, TRACE_RETRY, TRACE_POINT, NULL, NULL, NULL},
        {10, TRACE_TURN, E, "t", NULL, NULL},
        {12, TRACE_INFERENCE, S, "i", NULL, NULL},
        {15, TRACE_INFERENCE, E, "i", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent[0-15](turn[0-10](tool_call:a[1-10] tool_call:c[3-6] "
                       "tool_call:d[4-8] tool_call:e[9-9]) lm_inference[12-15])");
    const struct trace_problems *found = &tree.problems;
    assert_int_equal(found->no_end, 1);
    assert_int_equal(found->no_start, 1);
    assert_int_equal(found->out_of_order, 1);
    assert_int_equal(found->duplicates, 2);
    assert_int_equal(found->skewed, 1);
    assert_int_equal(found->unknown_type, 1);
    assert_int_equal(tree.retries, 1);
    char text[600];
    trace_problems_text(found, text, sizeof text);
    assert_non_null(strstr(text, "1 event without an end"));
    assert_non_null(strstr(text, "2 events duplicated"));
    assert_non_null(strstr(text, "clock skew"));
    trace_tree_release(&tree);
}

/* A tool that is an agent itself, and two of them concurrently, distinguished by their parents. */
static void sub_agents_keep_their_own_turns(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_AGENT, S, "a", "main", NULL},    {1, TRACE_INFERENCE, S, "i", NULL, "a"},
        {5, TRACE_INFERENCE, E, "i", NULL, NULL},  {6, TRACE_TOOL, S, "x", "delegate", NULL},
        {6, TRACE_TOOL, S, "y", "delegate", NULL}, {7, TRACE_AGENT, S, "b", "sub1", "x"},
        {7, TRACE_AGENT, S, "c", "sub2", "y"},     {8, TRACE_INFERENCE, S, "j", NULL, "b"},
        {9, TRACE_INFERENCE, S, "k", NULL, "c"},   {20, TRACE_INFERENCE, E, "k", NULL, NULL},
        {22, TRACE_INFERENCE, E, "j", NULL, NULL}, {23, TRACE_AGENT, E, "b", NULL, NULL},
        {23, TRACE_AGENT, E, "c", NULL, NULL},     {24, TRACE_TOOL, E, "x", NULL, NULL},
        {25, TRACE_TOOL, E, "y", NULL, NULL},      {30, TRACE_AGENT, E, "a", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree,
                "agent:main[0-30](turn[1-25](lm_inference[1-5] "
                "tool_call:delegate[6-24](agent:sub1[7-23](turn[8-22](lm_inference[8-22]))) "
                "tool_call:delegate[6-25](agent:sub2[7-23](turn[9-20](lm_inference[9-20])))))");
    trace_tree_release(&tree);
}

/* An id is unique per type: a request and the tool call that it makes may share it. */
static void ids_are_unique_per_type(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_INFERENCE, S, "1", NULL, NULL},
        {1, TRACE_TOOL, S, "1", "a", NULL},
        {5, TRACE_INFERENCE, E, "1", NULL, NULL},
        {9, TRACE_TOOL, E, "1", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent[0-9](turn[0-9](lm_inference[0-5] tool_call:a[1-9]))");
    assert_int_equal(tree.problems.duplicates, 0);
    trace_tree_release(&tree);
}

/* A cycle of parents loses no events. */
static void parent_cycles_lose_no_events(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_TOOL, S, "x", "x", "y"},
        {1, TRACE_TOOL, S, "y", "y", "x"},
        {2, TRACE_TOOL, E, "x", NULL, NULL},
        {3, TRACE_TOOL, E, "y", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_int_equal(tree.count, 3);
    assert_int_equal(tree.spans[0].parent, -1);
    trace_tree_release(&tree);
}

/* Turns without their own events: an inference and the calls until the next one. */
static void turns_are_inferred_from_inferences(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_INFERENCE, S, "1", NULL, NULL},  {10, TRACE_INFERENCE, E, "1", NULL, NULL},
        {12, TRACE_TOOL, S, "2", "a", NULL},       {14, TRACE_TOOL, E, "2", NULL, NULL},
        {20, TRACE_INFERENCE, S, "3", NULL, NULL}, {30, TRACE_INFERENCE, E, "3", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent[0-30](turn[0-14](lm_inference[0-10] tool_call:a[12-14]) "
                       "turn[20-30](lm_inference[20-30]))");
    assert_true(tree.spans[1].made_up);
    trace_tree_release(&tree);
}

/* An agent may retrieve documents before its first inference. */
static void the_first_turn_includes_spans_before_its_inference(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_AGENT, S, "a", NULL, NULL},      {1, TRACE_TOOL, S, "1", "a", NULL},
        {5, TRACE_TOOL, E, "1", NULL, NULL},       {6, TRACE_INFERENCE, S, "2", NULL, NULL},
        {10, TRACE_INFERENCE, E, "2", NULL, NULL}, {12, TRACE_TOOL, S, "3", "b", NULL},
        {14, TRACE_TOOL, E, "3", NULL, NULL},      {20, TRACE_INFERENCE, S, "4", NULL, NULL},
        {30, TRACE_INFERENCE, E, "4", NULL, NULL}, {30, TRACE_AGENT, E, "a", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent[0-30](turn[1-14](tool_call:a[1-5] lm_inference[6-10] "
                       "tool_call:b[12-14]) turn[20-30](lm_inference[20-30]))");
    trace_tree_release(&tree);
}

/* Two clocks at one moment: the phase begins slightly before its inference, and within the one before. */
static void phases_belong_to_the_inference_with_the_largest_overlap(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_INFERENCE, S, "i", "m", NULL},     {10, TRACE_INFERENCE, E, "i", NULL, NULL},
        {9.999, TRACE_PREFILL, S, "p", NULL, NULL},  {10, TRACE_INFERENCE, S, "k", "m", NULL},
        {15, TRACE_PREFILL, E, "p", NULL, NULL},     {20, TRACE_INFERENCE, E, "k", NULL, NULL},
        {29.999, TRACE_PREFILL, S, "r", NULL, NULL}, {30, TRACE_INFERENCE, S, "l", "m", NULL},
        {35, TRACE_PREFILL, E, "r", NULL, NULL},     {40, TRACE_INFERENCE, E, "l", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent[0-40](turn[0-10](lm_inference:m[0-10]) "
                       "turn[10-20](lm_inference:m[10-20](prefill[10-15] decode[15-20])) "
                       "turn[30-40](lm_inference:m[30-40](prefill[30-35] decode[35-40])))");
    trace_tree_release(&tree);
}

static void a_submodel_call_with_inferences_is_an_agent(void **state)
{
    (void)state;
    static const struct step STEPS[] = {
        {0, TRACE_TOOL, S, "x", "search", NULL},     {1, TRACE_SUBMODEL, S, "s", "small", NULL},
        {2, TRACE_INFERENCE, S, "i", "small", "s"},  {8, TRACE_INFERENCE, E, "i", NULL, NULL},
        {9, TRACE_SUBMODEL, E, "s", NULL, NULL},     {10, TRACE_TOOL, E, "x", NULL, NULL},
        {11, TRACE_SUBMODEL, S, "r", "small", NULL}, {12, TRACE_SUBMODEL, E, "r", NULL, NULL},
    };
    struct trace_tree tree = BUILD(STEPS);
    assert_tree(&tree, "agent[0-12](tool_call:search[0-10](agent:small[1-9](turn[2-8]("
                       "lm_inference:small[2-8]))) submodel_call:small[11-12])");
    trace_tree_release(&tree);
}

static void a_query_without_events_has_no_spans(void **state)
{
    (void)state;
    struct trace_events none = {0};
    struct trace_tree tree;
    trace_tree_build(&none, ZERO + 5 * MS, ZERO + 9 * MS, &tree);
    assert_tree(&tree, "agent[5-9]");
    trace_tree_release(&tree);
}

/* ---- the recorder ---- */

enum { THREADS = 4, EACH = 200 };

static void *record_many(void *context)
{
    struct trace_recorder *recorder = context;
    char id[32];
    for (int i = 0; i < EACH; i++) {
        str_format(id, sizeof id, "%p-%d", (void *)&id, i);
        struct trace_event event = trace_event_new(TRACE_INFERENCE, TRACE_START, "q000007", id);
        trace_event(recorder, &event);
        event.edge = TRACE_END;
        trace_event(recorder, &event);
    }
    return NULL;
}

static void threads_record_concurrently(void **state)
{
    (void)state;
    struct trace_recorder *recorder = trace_recorder_new();
    struct trace_events events;
    struct trace_tree tree;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(thread_start(&threads[i], record_many, recorder), ERR_OK);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    trace_recorder_take(recorder, "q000007", &events);
    for (size_t i = 1; i < events.count; i++)
        assert_true(events.items[i].at >= events.items[i - 1].at);
    trace_tree_build(&events, 0, 0, &tree);
    size_t inferences = 0;
    for (size_t i = 0; i < tree.count; i++)
        inferences += tree.spans[i].type == TRACE_INFERENCE;
    assert_int_equal(inferences, THREADS * EACH);
    assert_int_equal(tree.problems.no_end + tree.problems.no_start + tree.problems.duplicates, 0);
    trace_tree_release(&tree);
    trace_recorder_free(recorder);
}

static void read_line(struct trace_recorder *recorder, const char *line, enum err expected)
{
    struct error why = {0};
    assert_int_equal(trace_event_line(recorder, "q000001", line, strlen(line), &why), expected);
}

/* Lines of another program, with times of the wall clock. */
static void lines_are_parsed_as_events(void **state)
{
    (void)state;
    struct trace_recorder *recorder = trace_recorder_new();
    struct trace_events events;
    struct trace_tree tree;
    char line[300];
    nanos before = clock_now();
    double wall = seconds(clock_wall());
    nanos after = clock_now();
    str_format(line, sizeof line,
               "{\"type\":\"tool_call_start\",\"timestamp\":%.6f,\"correlation_id\":7,"
               "\"metadata\":{\"tool\":\"search\"}}",
               wall - 2);
    read_line(recorder, line, ERR_OK);
    str_format(line, sizeof line,
               "{\"type\":\"tool_call_end\",\"timestamp\":%.6f,\"correlation_id\":7,"
               "\"metadata\":{\"cost_usd\":0.01,\"error\":\"timeout\"}}",
               wall - 1);
    read_line(recorder, line, ERR_OK);
    read_line(recorder, "{\"type\":\"my_own_event\"}", ERR_OK);
    read_line(recorder, "{\"no\":\"type\"}", ERR_BAD_VALUE);
    read_line(recorder, "[1]", ERR_BAD_VALUE);
    read_line(recorder, "hello", ERR_BAD_VALUE);
    trace_recorder_take(recorder, "q000001", &events);
    assert_int_equal(events.count, 3);
    trace_tree_build(&events, 0, 0, &tree);
    const struct trace_span *tool = &tree.spans[1];
    assert_string_equal(tool->name, "search");
    assert_near(seconds(tool->to - tool->from), 1, 0.01);
    assert_true(seconds(before - tool->to) < 1.01 && seconds(after - tool->to) > 0.99);
    assert_near(tool->facts.cost_usd, 0.01, 1e-12);
    assert_string_equal(tool->facts.error, "timeout");
    assert_int_equal(tree.problems.unknown_type, 1);
    trace_tree_release(&tree);
    trace_recorder_free(recorder);
}

/* An event without a query belongs to the query where its id is known; each of two queries gets its own. */
static void queries_are_taken_one_at_a_time(void **state)
{
    (void)state;
    struct trace_recorder *recorder = trace_recorder_new();
    struct trace_events events;
    const char *const queries[] = {"q000001", "q000002"}, *const ids[] = {"x", "y"};
    for (size_t i = 0; i < 2; i++) {
        struct trace_event event = trace_event_new(TRACE_TOOL, TRACE_START, queries[i], ids[i]);
        trace_event(recorder, &event);
    }
    for (size_t i = 0; i < 2; i++) {
        struct trace_event event = trace_event_new(TRACE_TOOL, TRACE_END, NULL, ids[i]);
        trace_event(recorder, &event);
    }
    for (size_t i = 0; i < 2; i++) {
        trace_recorder_take(recorder, queries[i], &events);
        assert_int_equal(events.count, 2);
        assert_string_equal(events.items[1].id, ids[i]);
        trace_events_release(&events);
    }
    trace_recorder_free(recorder);
}

/* CPU time until an event is known if it arrives when it happens, with a timestamp or without. */
static void cpu_time_is_known_for_events_that_arrive_on_time(void **state)
{
    (void)state;
    struct trace_recorder *recorder = trace_recorder_new();
    struct trace_events events;
    const nanos late[] = {0, 10 * NS_PER_S};
    for (size_t i = 0; i < 2; i++) {
        struct trace_event event = trace_event_new(TRACE_TOOL, TRACE_END, "q000001", "x");
        event.at = clock_now() - late[i];
        trace_event(recorder, &event);
    }
    trace_recorder_take(recorder, "q000001", &events);
    assert_true(events.items[0].cpu_busy_s > 0);
    assert_false(is_known(events.items[1].cpu_busy_s));
    trace_events_release(&events);
    trace_recorder_free(recorder);
}

/* The share of the machine's CPU time that a tool's processes used. */
static void tools_have_a_share_of_cpu_time(void **state)
{
    (void)state;
    static const struct {
        double own, before, after, share;
    } ROWS[] = {{0.5, 10, 12, 0.25},
                {3, 10, 12, 1},
                {0, 10, 10, 0},
                {0.002, 10, 10, UNKNOWN}, /* shorter than the clock tick of /proc/stat */
                {0.002, 10, 10.02, UNKNOWN},
                {UNKNOWN, 10, 12, UNKNOWN},
                {0.5, UNKNOWN, 12, UNKNOWN}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct trace_recorder *recorder = trace_recorder_new();
        struct trace_events events;
        struct trace_tree tree;
        struct trace_event event = trace_event_new(TRACE_TOOL, TRACE_START, "q", "x");
        event.at = MS;
        event.cpu_busy_s = ROWS[i].before;
        trace_event(recorder, &event);
        event.edge = TRACE_END;
        event.at = 2 * MS;
        event.cpu_busy_s = ROWS[i].after;
        event.facts.cpu_s = ROWS[i].own;
        trace_event(recorder, &event);
        trace_recorder_take(recorder, "q", &events);
        trace_tree_build(&events, 0, 0, &tree);
        double share = tree.spans[1].cpu_share;
        assert_true(isnan(ROWS[i].share) ? isnan(share) : fabs(share - ROWS[i].share) < 1e-12);
        trace_tree_release(&tree);
        trace_recorder_free(recorder);
    }
}

/* A reply of several tokens that arrived in one chunk has no phases; the time of the last token is optional. */
static void phases_need_a_first_token_before_the_last(void **state)
{
    (void)state;
    static const struct {
        nanos first, last;
        double output;
        const char *expected;
    } ROWS[] = {{4, 8, 20, "(prefill[0-4] decode[4-9])"},
                {8, 8, 20, ""},
                {8, 8, UNKNOWN, ""},
                {8, 8, 1, "(prefill[0-8] decode[8-9])"},
                {4, 0, 20, "(prefill[0-4] decode[4-9])"},
                {0, 0, 20, ""}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        struct trace_recorder *recorder = trace_recorder_new();
        struct trace_events events;
        struct trace_tree tree;
        char expected[120];
        struct trace_event event = trace_event_new(TRACE_INFERENCE, TRACE_START, "q", "x");
        event.at = ZERO;
        trace_event(recorder, &event);
        event.edge = TRACE_END;
        event.at = ZERO + 9 * MS;
        event.facts.first_token = ROWS[i].first ? ZERO + ROWS[i].first * MS : 0;
        event.facts.last_token = ROWS[i].last ? ZERO + ROWS[i].last * MS : 0;
        event.facts.output_tokens = ROWS[i].output;
        trace_event(recorder, &event);
        trace_recorder_take(recorder, "q", &events);
        trace_tree_build(&events, 0, 0, &tree);
        str_format(expected, sizeof expected, "agent[0-9](turn[0-9](lm_inference[0-9]%s))",
                   ROWS[i].expected);
        assert_tree(&tree, expected);
        trace_tree_release(&tree);
        trace_recorder_free(recorder);
    }
}

/* More events than the limit, each nested in the one before it: the rest is counted. */
static void too_many_events_are_dropped_and_counted(void **state)
{
    (void)state;
    enum { SPANS = TRACE_EVENTS_MAX / 2 + 5 };
    if (test_is_instrumented())
        SKIP("so many events of one thread take a quarter of a minute");
    struct trace_recorder *recorder = trace_recorder_new();
    struct trace_events events;
    struct trace_tree tree;
    char id[16], parent[16] = "none";
    for (int i = 0; i < SPANS; i++) {
        str_format(id, sizeof id, "t%d", i);
        struct trace_event event = trace_event_new(TRACE_TOOL, TRACE_START, "q", id);
        event.parent = parent;
        event.at = ZERO + i;
        trace_event(recorder, &event);
        event.edge = TRACE_END;
        event.at = ZERO + MS - i;
        trace_event(recorder, &event);
        str_copy(parent, sizeof parent, id);
    }
    trace_recorder_take(recorder, "q", &events);
    trace_tree_build(&events, 0, 0, &tree);
    assert_int_equal(tree.problems.too_many, 10);
    assert_int_equal(tree.count, TRACE_EVENTS_MAX / 2 + 1);
    for (size_t i = 1; i < tree.count; i++)
        assert_int_equal(tree.spans[i].parent, i - 1);
    trace_tree_release(&tree);
    trace_recorder_free(recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_nest_by_id_and_by_time),
        cmocka_unit_test(concurrent_tools_of_one_name_are_matched_by_id),
        cmocka_unit_test(overlapping_tools_without_ids_are_counted_as_ambiguous),
        cmocka_unit_test(invalid_events_are_repaired_and_counted),
        cmocka_unit_test(sub_agents_keep_their_own_turns),
        cmocka_unit_test(ids_are_unique_per_type),
        cmocka_unit_test(parent_cycles_lose_no_events),
        cmocka_unit_test(turns_are_inferred_from_inferences),
        cmocka_unit_test(the_first_turn_includes_spans_before_its_inference),
        cmocka_unit_test(phases_belong_to_the_inference_with_the_largest_overlap),
        cmocka_unit_test(a_submodel_call_with_inferences_is_an_agent),
        cmocka_unit_test(a_query_without_events_has_no_spans),
        cmocka_unit_test(threads_record_concurrently),
        cmocka_unit_test(lines_are_parsed_as_events),
        cmocka_unit_test(queries_are_taken_one_at_a_time),
        cmocka_unit_test(cpu_time_is_known_for_events_that_arrive_on_time),
        cmocka_unit_test(tools_have_a_share_of_cpu_time),
        cmocka_unit_test(phases_need_a_first_token_before_the_last),
        cmocka_unit_test(too_many_events_are_dropped_and_counted),
    };
    return RUN_TESTS(tests);
}
