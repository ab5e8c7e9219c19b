/* Models of which only the number of parameters is known. */
#include "support/unit.h"

#include <math.h>

#include "core/units.h"
#include "graph/count.h"
#include "graph/reader.h"

static struct graph build(const char *source, enum graph_phase phase, bool *has_phases)
{
    struct model model;
    struct graph graph;
    struct graph_options options = {.phase = phase, .context = phase == GRAPH_DECODE ? 2 : 0};
    struct error why = {0};
    if (model_open_with(&graph_reader_assumed, source, &model, &why) != ERR_OK)
        fail_msg("%s", why.text);
    assert_int_equal(model_graph(&model, &options, &graph, &why), ERR_OK);
    *has_phases = model.has_phases;
    model_close(&model);
    return graph;
}

static void parameters_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        double total, active;
    } CASES[] = {
        {"100M", 1e8, 1e8},
        {"0.5B", 5e8, 5e8},
        {"1.1B", 1.1e9, 1.1e9},
        {"8.03B", 8.03e9, 8.03e9},
        {"70B", 7e10, 7e10},
        {"405B", 4.05e11, 4.05e11},
        {"46.7B,12.9B", 46.7e9, 12.9e9},
        {"30.5B,3.3B", 30.5e9, 3.3e9},
        {"671B,37B", 671e9, 37e9},
        {"1T,32B", 1e12, 32e9},
        {"24B,23.6B", 24e9, 24e9}, /* nearly all are active: the rest is no experts */
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        bool has_phases;
        struct graph graph = build(CASES[i].source, GRAPH_DECODE, &has_phases);
        assert_true(has_phases && graph.is_guessed && graph.notes.count == 1);
        assert_near(graph_parameters(&graph), CASES[i].total, 0.02 * CASES[i].total);
        /* One token multiplies by each active weight; its row of the table is read instead. */
        double macs = graph_cost_total(&graph).macs;
        assert_true(macs < 1.02 * CASES[i].active && macs > 0.8 * CASES[i].active - 5e7);
        graph_release(&graph);
    }
}

static void more_parameters_cost_more(void **state)
{
    (void)state;
    double last = 0;
    for (double billions = 0.25; billions < 600; billions *= 1.5) {
        char source[32];
        bool has_phases;
        snprintf(source, sizeof source, "%.6gB", billions);
        struct graph graph = build(source, GRAPH_PREFILL, &has_phases);
        double macs = graph_cost_total(&graph).macs;
        assert_true(macs > last);
        last = macs;
        graph_release(&graph);
    }
}

static void other_numbers_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *source, *says;
    } BAD[] = {
        {"8", "write 8B for billions"},
        {"abc", "not a number of parameters"},
        {"37B,671B", "exceed the total"},
        {"671B,", "not a number"},
        {"50M", "too few to assume an architecture"},
        {"1e16", "more parameters than any model"},
    };
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        struct model model;
        struct error why = {0};
        assert_int_not_equal(model_open_with(&graph_reader_assumed, BAD[i].source, &model, &why),
                             ERR_OK);
        assert_contains(why.text, BAD[i].says);
    }
}

/* A number is never taken for a name, and a listed model without an architecture is assumed. */
static void only_listed_names_are_opened_by_name(void **state)
{
    (void)state;
    struct model model;
    struct error why = {0};
    assert_int_equal(model_open("8.03B", &model, &why), ERR_NOT_FOUND);
    assert_int_equal(model_open("Kimi-K3", &model, &why), ERR_NOT_FOUND);
    assert_int_equal(model_open("moonshotai/Kimi-K2", &model, &why), ERR_OK);
    assert_string_equal(model.reader->name, "assumed");
    model_close(&model);
    assert_int_equal(model_open("gpt-oss-20b", &model, &why), ERR_OK); /* it has one */
    assert_string_equal(model.reader->name, "zoo");
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_kept),
        cmocka_unit_test(more_parameters_cost_more),
        cmocka_unit_test(other_numbers_are_rejected),
        cmocka_unit_test(only_listed_names_are_opened_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
