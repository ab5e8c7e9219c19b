/* Which of several models are Pareto-optimal in energy, latency and published accuracy. */
#include "support/unit.h"

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "estimate/model_compare.h"

static void add(struct model_comparison *comparison, const char *name, double joules,
                double latency_s, const char *benchmark, double percent)
{
    struct compared_model model = {
        .unit = "token", .joules_each = joules, .latency_s = latency_s, .fits = true};
    chars_copy(model.name, name);
    if (benchmark)
        model.accuracies[model.accuracy_count++] =
            (struct accuracy){.benchmark = benchmark_find(benchmark), .percent = percent};
    comparison->items =
        xreallocarray(comparison->items, comparison->count + 1, sizeof *comparison->items);
    comparison->items[comparison->count++] = model;
}

/* "a b" */
static void frontier(const struct model_comparison *comparison, char *to, size_t size)
{
    struct text names = {0};
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->items[i].on_frontier)
            text_addf(&names, "%s ", comparison->items[i].name);
    (void)!str_copy(to, size, text_get(&names));
    text_release(&names);
}

static void test_more_accurate_models_may_cost_more(void **state)
{
    (void)state;
    struct model_comparison comparison = {0};
    char names[64];
    add(&comparison, "worse", 3, 3, "mmlu-5-shot", 60);
    add(&comparison, "large", 9, 9, "mmlu-5-shot", 80);
    add(&comparison, "quick", 4, 1, "mmlu-5-shot", 50);
    add(&comparison, "small", 1, 2, "mmlu-5-shot", 60);
    add(&comparison, "other", 0.1, 0.1, "gpqa-diamond", 99);
    add(&comparison, "unknown", 0.1, 0.1, NULL, 0);
    model_comparison_finish(&comparison, NULL);
    assert_string_equal(comparison.axis->name, "mmlu-5-shot");
    frontier(&comparison, names, sizeof names);
    assert_string_equal(names, "small quick large ");
    model_comparison_finish(&comparison, benchmark_find("gpqa-diamond"));
    frontier(&comparison, names, sizeof names);
    assert_string_equal(names, "other ");
    model_comparison_release(&comparison);
}

/* A lower error rate is better. */
static void test_errors_are_better_lower(void **state)
{
    (void)state;
    struct model_comparison comparison = {0};
    char names[64];
    add(&comparison, "a", 1, 1, "librispeech-clean-wer", 5);
    add(&comparison, "b", 2, 2, "librispeech-clean-wer", 3);
    add(&comparison, "c", 3, 3, "librispeech-clean-wer", 4);
    model_comparison_finish(&comparison, NULL);
    frontier(&comparison, names, sizeof names);
    assert_string_equal(names, "a b ");
    model_comparison_release(&comparison);
}

/* One that does not fit is no alternative; without figures there is no frontier. */
static void test_models_that_do_not_fit_or_have_no_figure(void **state)
{
    (void)state;
    struct model_comparison comparison = {0};
    char names[64];
    add(&comparison, "huge", 1, 1, "mmlu-5-shot", 90);
    add(&comparison, "small", 2, 2, "mmlu-5-shot", 60);
    comparison.items[0].fits = false;
    model_comparison_finish(&comparison, NULL);
    frontier(&comparison, names, sizeof names);
    assert_string_equal(names, "small ");
    model_comparison_release(&comparison);
    add(&comparison, "x", 1, 1, NULL, 0);
    model_comparison_finish(&comparison, NULL);
    assert_null(comparison.axis);
    assert_false(comparison.items[0].on_frontier);
    model_comparison_release(&comparison);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_accurate_models_may_cost_more),
        cmocka_unit_test(test_errors_are_better_lower),
        cmocka_unit_test(test_models_that_do_not_fit_or_have_no_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
