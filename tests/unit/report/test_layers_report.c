#include "support/unit.h"

#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/reports.h"
#include "rundir/layers_result.h"
#include "support/tree_fixture.h"

#define OLD IPW_FIXTURES "/runs/layers/layers-1m.json"

/* A model with attributed joules, at this idle and busy-waiting power. */
static struct layers_result model_at(double idle_w, double awake_w)
{
    struct layers_result model;
    layers_result_init(&model);
    model.model = "tiny.gguf";
    model.granularity = "component";
    model.attribution = "nnls";
    model.rounds = 3;
    model.components_j = 10;
    model.awake_j = 4;
    model.energy.joules = 13;
    model.energy.plus_minus = 0.5;
    model.idle.seconds = model.awake.seconds = 5;
    model.idle.power_w = idle_w;
    model.idle.plus_minus = 0.5;
    model.awake.power_w = awake_w;
    return model;
}

static void print(const struct layers_results *results, enum print_format format, struct text *out)
{
    struct result result = {0};
    layers_results_fill(results, results->count > 1, &result);
    result_print(&result, format, &LAYERS_VIEWS, false, out);
    result_release(&result);
}

static void idle_and_busy_waiting_power_are_one_line(void **state)
{
    (void)state;
    const struct {
        double idle_w, awake_w;
        const char *line;
    } CASES[] = {
        {20, 25,
         "\n   idle 20.00 ± 0.50 W, busy-waiting 25.00 W: 40.0 % of the components' joules\n"},
        {20, UNKNOWN, "\n   idle 20.00 ± 0.50 W\n"},
        {UNKNOWN, 25, "\n   busy-waiting 25.00 W: 40.0 % of the components' joules\n"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct layers_result model = model_at(CASES[i].idle_w, CASES[i].awake_w);
        struct layers_results results = {.models = &model, .count = 1};
        struct text text = {0};
        print(&results, PRINT_TABLE, &text);
        if (!strstr(text_get(&text), CASES[i].line))
            fail_msg("case %zu: no line %s in %s", i, CASES[i].line, text_get(&text));
        assert_null(strstr(text_get(&text), "closure")); /* which is unknown here */
        text_release(&text);
    }
}

static void an_undetermined_closure_has_its_reason_and_no_verdict(void **state)
{
    (void)state;
    struct layers_result model = model_at(UNKNOWN, UNKNOWN);
    struct layers_results results = {.models = &model, .count = 1};
    struct text text = {0};
    model.closure_unknown = "idle power is unknown";
    print(&results, PRINT_TABLE, &text);
    assert_non_null(
        strstr(text_get(&text), "\n   closure not determined: idle power is unknown\n"));
    assert_null(strstr(text_get(&text), "passed"));
    text_release(&text);
}

static void models_are_compared(void **state)
{
    (void)state;
    struct layers_result models[] = {model_at(20, 25), model_at(20, 25)};
    struct layers_results results = {.models = models, .count = 2};
    struct text text = {0};
    models[1].energy.joules = 26;
    print(&results, PRINT_TABLE, &text);
    assert_non_null(strstr(text_get(&text), "bits per weight"));
    assert_non_null(strstr(text_get(&text), "per pass"));
    assert_non_null(strstr(text_get(&text), "vs. first"));
    assert_non_null(strstr(text_get(&text), "x 2\n"));
    text_release(&text);
}

/* "models", and the measurement's own members once, after them. */
static void results_of_several_models_are_read_back(void **state)
{
    (void)state;
    struct layers_results results = {0};
    struct text once = {0}, again = {0};
    char path[300];
    assert_int_equal(layers_results_load(OLD, &results, NULL), ERR_OK);
    assert_int_equal(layers_results_load(OLD, &results, NULL), ERR_OK);
    results.models[1].model = "models/other.gguf";
    print(&results, PRINT_JSON, &once);
    layers_results_release(&results);
    tree_write_bytes(&tree, "/layers-two.json", 0, text_get(&once), once.length);
    str_format(path, sizeof path, "%s/layers-two.json", tree.root);
    assert_int_equal(layers_results_load(path, &results, NULL), ERR_OK);
    assert_int_equal(results.count, 2);
    assert_string_equal(layers_result_name(&results.models[0]), "ipw-1m-f16.gguf");
    assert_string_equal(layers_result_name(&results.models[1]), "other.gguf");
    assert_string_equal(results.models[1].hardware_label, results.models[0].hardware_label);
    print(&results, PRINT_JSON, &again);
    assert_string_equal(text_get(&again), text_get(&once));
    layers_results_release(&results);
    text_release(&once);
    text_release(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_and_busy_waiting_power_are_one_line),
        cmocka_unit_test(an_undetermined_closure_has_its_reason_and_no_verdict),
        cmocka_unit_test(models_are_compared),
        cmocka_unit_test_setup_teardown(results_of_several_models_are_read_back, tree_set_up,
                                        tree_tear_down),
    };
    return RUN_TESTS(tests);
}
