/* Published accuracies of data/models: each is of a model of the catalog, and found by its names alone. */
#include "support/unit.h"

#include <math.h>
#include <string.h>

#include "catalog/accuracy.h"
#include "catalog/model.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/units.h"
#include "graph/zoo/zoo.h"

static void test_each_is_of_a_known_model_and_given_once(void **state)
{
    (void)state;
    size_t total = 0;
    assert_true(model_accuracy_table_count() > 20);
    for (size_t i = 0; i < model_accuracy_table_count(); i++) {
        const struct accuracy_table *table = model_accuracy_table_at(i);
        JV_EACH (member, jv_first_member(table->percent.value)) {
            struct model_size size;
            struct accuracy found[ACCURACIES_MAX];
            size_t times = 0;
            if (!zoo_find(jv_key(member)) && !model_size_find(jv_key(member), &size))
                fail_msg("%s: %s is not in the catalog", table->benchmark, jv_key(member));
            if (!strchr(jv_key(member), '/'))
                fail_msg("%s: without an owner", jv_key(member));
            size_t count = model_accuracies(jv_key(member), found);
            for (size_t n = 0; n < count; n++)
                times += str_equal(found[n].benchmark->name, table->benchmark);
            if (times != 1)
                fail_msg("%s: %zu figures of %s", jv_key(member), times, table->benchmark);
            total++;
        }
    }
    assert_true(total >= 90);
}

static void test_each_benchmark_is_used_and_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < BENCHMARK_COUNT; i++) {
        size_t used = 0;
        assert_ptr_equal(benchmark_find(BENCHMARKS[i].name), &BENCHMARKS[i]);
        assert_true(BENCHMARKS[i].sign == 1 || BENCHMARKS[i].sign == -1);
        for (size_t n = 0; n < model_accuracy_table_count(); n++)
            used += str_equal(model_accuracy_table_at(n)->benchmark, BENCHMARKS[i].name);
        if (!used)
            fail_msg("%s is not used", BENCHMARKS[i].name);
    }
    assert_null(benchmark_find("mmlu"));
}

/* Names, and the figure of a benchmark; UNKNOWN: none. */
static const struct {
    const char *name, *benchmark;
    double percent;
} NAMES[] = {
    {"llama-3.1-8b", "mmlu-5-shot", 69.4},
    {"meta-llama/Llama-3.1-8B-Instruct", "mmlu-5-shot", 69.4},
    {"llama3.1:8b-instruct-q4_K_M", "mmlu-5-shot", 69.4},
    {"llama-3-8b", "mmlu-5-shot", 68.5},
    {"llama-3.1-8b", "mmlu-5-shot-base", UNKNOWN},
    {"llama-3.3-70b", "mmlu-5-shot", UNKNOWN}, /* other weights of the architecture of 3.1 */
    {"llama-2-7b", "mmlu-5-shot", UNKNOWN},
    {"NousResearch/Hermes-3-Llama-3.1-8B", "mmlu-5-shot", UNKNOWN},
    {"someone/Llama-3.1-8B", "mmlu-5-shot", UNKNOWN},
    {"deepseek-ai/DeepSeek-R1", "mmlu-pass-1", 90.8},
    {"deepseek-v3", "mmlu-pass-1", 88.5},
    {"DeepSeek-R1-0528", "mmlu-pass-1", UNKNOWN},
    {"llama-4-scout", "gpqa-diamond", 57.2},
    {"gpt-oss-120b", "gpqa-diamond", 80.1},
    {"gpt-oss-20b", "gpqa-diamond", UNKNOWN},
    {"resnet50", "imagenet-top-1", 76.15},
    {"resnet-50", "imagenet-top-1", 76.15},
    {"microsoft/resnet-50", "imagenet-top-1", UNKNOWN},
    {"resnet101", "imagenet-top-1", 77.37},
    {"yolov8n", "coco-map", 37.3},
    {"whisper-large-v2", "librispeech-clean-wer", 3.0},
    {"8b", "mmlu-5-shot", UNKNOWN},
    {"", "mmlu-5-shot", UNKNOWN},
};

static void test_only_the_names_of_a_model_find_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        struct accuracy found[ACCURACIES_MAX];
        double percent = UNKNOWN;
        size_t count = model_accuracies(NAMES[i].name, found);
        for (size_t n = 0; n < count; n++)
            if (str_equal(found[n].benchmark->name, NAMES[i].benchmark))
                percent = found[n].percent;
        bool is_right = is_known(NAMES[i].percent) ? fabs(percent - NAMES[i].percent) < 1e-9
                                                   : !is_known(percent);
        if (!is_right)
            fail_msg("%s, %s: %g, not %g", NAMES[i].name, NAMES[i].benchmark, percent,
                     NAMES[i].percent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_of_a_known_model_and_given_once),
        cmocka_unit_test(test_each_benchmark_is_used_and_unique),
        cmocka_unit_test(test_only_the_names_of_a_model_find_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
