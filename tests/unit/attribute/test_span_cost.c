/* The cost of an agent's query: each amount once, all of it in its turns. */
#include "attribute/span_cost.h"

#include <math.h>
#include <stdlib.h>

#include "metrics/prices.h"
#include "support/tree.h"
#include "support/unit.h"
#include "trace/trace.h"

/* One span of a case, its events at these milliseconds; NAN: no cost reported. */
struct step {
    enum trace_type type;
    const char *id, *parent;
    int from, to;
    double input, output, cost;
};

enum { STEPS_MAX = 8 };

static void record_step(struct trace_recorder *recorder, const struct step *step)
{
    for (int edge = TRACE_START; edge <= TRACE_END; edge++) {
        struct trace_event event =
            trace_event_new(step->type, (enum trace_edge)edge, "q", step->id);
        event.at = NS_PER_S + (edge == TRACE_START ? step->from : step->to) * NS_PER_MS;
        event.parent = step->parent;
        event.name = step->type == TRACE_INFERENCE ? "m" : "thing";
        event.facts.input_tokens = step->input;
        event.facts.output_tokens = step->output;
        event.facts.cost_usd = step->cost;
        trace_event(recorder, &event);
    }
}

static void build(const struct step *steps, struct trace_tree *tree)
{
    struct trace_recorder *recorder = trace_recorder_new();
    struct trace_events events;
    for (; steps->id; steps++)
        record_step(recorder, steps);
    trace_recorder_take(recorder, "q", &events);
    trace_tree_build(&events, NS_PER_S, 2 * NS_PER_S, tree);
    trace_recorder_free(recorder);
}

/* 2 per million input tokens, 10 per million output tokens; NULL for NULL. */
static struct prices *load_prices(const char *currency)
{
    struct prices *prices = NULL;
    struct tree tree;
    struct error why = {0};
    char path[160];
    if (!currency)
        return NULL;
    tree_new(&tree);
    tree_write(&tree, "/p.json",
               "{\"currency\": \"%s\", \"models\": {\"m\": {\"input_per_million\": 2, "
               "\"output_per_million\": 10}}}",
               currency);
    snprintf(path, sizeof path, "%s/p.json", tree.root);
    assert_int_equal(prices_load(path, &prices, &why), ERR_OK);
    tree_free(&tree);
    return prices;
}

static void assert_cost(double found, double expected)
{
    if (isnan(expected))
        assert_true(isnan(found));
    else
        assert_near(found, expected, 1e-12);
}

static double turns_cost(const struct trace_tree *tree)
{
    double sum = UNKNOWN;
    for (size_t i = 1; i < tree->count; i++)
        if (tree->spans[i].type == TRACE_TURN && tree->spans[i].parent == 0)
            add_known(&sum, span_cost_of_turn(tree, tree->spans[i].turn));
    return sum;
}

#define LM(id, parent, from, to, cost)   {TRACE_INFERENCE, id, parent, from, to, 1000, 100, cost}
#define TOOL(id, parent, from, to, cost) {TRACE_TOOL, id, parent, from, to, NAN, NAN, cost}
#define TURN(id, from, to, cost)         {TRACE_TURN, id, "q", from, to, NAN, NAN, cost}
#define QUERY(cost)                      {TRACE_AGENT, "q", NULL, 0, 1000, NAN, NAN, cost}

/* 1000 x 2 + 100 x 10 per million. */
#define INPUT  0.002
#define OUTPUT 0.001
#define TOKENS (INPUT + OUTPUT)

static const struct cost_case {
    const char *what, *currency;
    struct step steps[STEPS_MAX];
    struct span_cost expected;
} CASES[] = {
    {"tokens and tools add up",
     "USD",
     {QUERY(NAN), TURN("t", 0, 900, NAN), LM("l", "t", 0, 100, NAN), TOOL("a", "t", 100, 200, 0.5),
      TOOL("b", "t", 100, 200, 0.25)},
     {INPUT, OUTPUT, 0.75, TOKENS + 0.75, false}},
    {"without prices only what was reported is known",
     NULL,
     {QUERY(NAN), TURN("t", 0, 900, NAN), LM("l", "t", 0, 100, NAN), TOOL("a", "t", 100, 200, 0.5)},
     {UNKNOWN, UNKNOWN, 0.5, 0.5, false}},
    {"nothing is known",
     NULL,
     {QUERY(NAN), TURN("t", 0, 900, NAN), LM("l", "t", 0, 100, NAN)},
     {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, false}},
    {"a request's reported cost replaces its list price",
     "USD",
     {QUERY(NAN), TURN("t", 0, 900, NAN), LM("l", "t", 0, 100, 0.01), LM("k", "t", 200, 300, NAN)},
     {INPUT, OUTPUT, UNKNOWN, TOKENS + 0.01, false}},
    {"what a turn reports is for all in it",
     "USD",
     {QUERY(NAN), TURN("t", 0, 400, 0.02), LM("l", "t", 0, 100, 0.01),
      TOOL("a", "t", 100, 200, 0.5), TURN("u", 400, 900, NAN), LM("k", "u", 400, 500, NAN)},
     {INPUT, OUTPUT, UNKNOWN, TOKENS + 0.02, false}},
    {"what the query reports counts alone",
     NULL,
     {QUERY(0.03), TURN("t", 0, 900, NAN), LM("l", "t", 0, 100, NAN)},
     {UNKNOWN, UNKNOWN, UNKNOWN, 0.03, false}},
    {"what the query reports is not added to its parts",
     "USD",
     {QUERY(0.03), TURN("t", 0, 900, NAN), LM("l", "t", 0, 100, NAN)},
     {INPUT, OUTPUT, UNKNOWN, TOKENS, false}},
    {"tools outside of turns are included",
     "USD",
     {QUERY(NAN), TOOL("a", "q", 0, 50, 0.125), TURN("t", 100, 300, NAN),
      LM("l", "t", 100, 200, NAN), TOOL("b", "q", 400, 500, 0.5)},
     {INPUT, OUTPUT, 0.625, TOKENS + 0.625, false}},
    {"dollars are not added to another currency",
     "EUR",
     {QUERY(NAN), TURN("t", 0, 900, NAN), LM("l", "t", 0, 100, NAN), TOOL("a", "t", 100, 200, 0.5)},
     {INPUT, OUTPUT, UNKNOWN, TOKENS, true}},
    {"the currency may be in lower case",
     "usd",
     {QUERY(NAN), TURN("t", 0, 900, NAN), TOOL("a", "t", 100, 200, 0.5)},
     {UNKNOWN, UNKNOWN, 0.5, 0.5, false}},
};

static void each_amount_counts_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct cost_case *c = &CASES[i];
        struct prices *prices = load_prices(c->currency);
        struct trace_tree tree;
        struct span_cost found;
        print_message("%s\n", c->what);
        build(c->steps, &tree);
        span_cost_take(&tree, prices, "other", &found);
        assert_cost(found.input, c->expected.input);
        assert_cost(found.output, c->expected.output);
        assert_cost(found.tool, c->expected.tool);
        assert_cost(found.total, c->expected.total);
        assert_cost(turns_cost(&tree), c->expected.total);
        assert_int_equal(found.has_other_currency, c->expected.has_other_currency);
        trace_tree_release(&tree);
        prices_free(prices);
    }
}

static void a_query_without_turns_has_its_total(void **state)
{
    (void)state;
    static const struct step STEPS[] = {QUERY(NAN), TOOL("a", "q", 0, 50, 0.125), {0}};
    struct trace_tree tree;
    struct span_cost found;
    build(STEPS, &tree);
    span_cost_take(&tree, NULL, "m", &found);
    assert_cost(found.total, 0.125);
    assert_cost(found.tool, 0.125);
    trace_tree_release(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_amount_counts_once),
        cmocka_unit_test(a_query_without_turns_has_its_total),
    };
    return RUN_TESTS(tests);
}
