#include "support/unit.h"

#include "core/units.h"
#include "catalog/model.h"

static const struct {
    const char *name;
    double total, active; /* billions, as published */
} KNOWN[] = {
    {"ipw-1m-f16", 0.001066368, 0.001066368},
    {"ipw-6m-q4_0.gguf", 0.006025472, 0.006025472},
    {"llama3.1:8b", 8.03, 8.03},
    {"meta-llama/Meta-Llama-3.1-8B-Instruct", 8.03, 8.03},
    {"meta-llama/Llama-3.1-405B-Instruct-FP8", 405.9, 405.9},
    {"llama3.2:1b", 1.24, 1.24},
    {"Llama-2-7b-chat-hf", 6.74, 6.74},
    {"Qwen/Qwen2.5-7B-Instruct-AWQ", 7.62, 7.62},
    {"qwen2.5:0.5b", 0.494, 0.494},
    {"Qwen/Qwen3-30B-A3B", 30.5, 3.3},
    {"qwen3:30b-a3b", 30.5, 3.3},
    {"Qwen/Qwen3-235B-A22B-Thinking-2507", 235, 22},
    {"mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7, 12.9},
    {"mistralai/Mistral-7B-Instruct-v0.3", 7.25, 7.25},
    {"google/gemma-2-27b-it", 27.2, 27.2},
    {"gemma3:27b", 27.4, 27.0},
    {"microsoft/phi-4", 14.7, 14.7},
    {"microsoft/Phi-3-mini-4k-instruct", 3.82, 3.82},
    {"deepseek-ai/DeepSeek-V3", 671, 37},
    {"deepseek-ai/DeepSeek-R1", 671, 37},
    {"DEEPSEEK-AI/deepseek-r1", 671, 37},
    {"deepseek-r1:671b", 671, 37},
    {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", 8.03, 8.03},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1.78, 1.78},
    {"deepseek-r1:70b", 70.6, 70.6},
    {"openai/gpt-oss-20b", 20.9, 3.6},
    {"gpt-oss:120b", 116.8, 5.1},
    {"smollm2:135m", 0.135, 0.135},
    {"allenai/OLMo-2-1124-7B-Instruct", 7.3, 7.3},
    {"zai-org/GLM-4.5-Air-FP8", 106, 12},
    {"ibm-granite/granite-3.3-8b-instruct", 8.17, 8.17},
    {"moonshotai/Kimi-K2-Instruct", 1000, 32},
};

static void published_models_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        struct model_size size;
        if (!model_size_find(KNOWN[i].name, &size))
            fail_msg("%s is not known", KNOWN[i].name);
        assert_near(size.total, KNOWN[i].total * 1e9, KNOWN[i].total * 1e9 * 0.006);
        assert_near(size.active, KNOWN[i].active * 1e9, KNOWN[i].active * 1e9 * 0.006);
        assert_non_null(size.source);
    }
}

/* A name that contains a known one, or is contained in one, is another model. */
static void nothing_is_guessed(void **state)
{
    (void)state;
    static const char *const OTHERS[] = {
        "",
        "llama",
        "llama-3.1",
        "8b",
        "llama-3.1-8b-vision",
        "my-llama-3.1-8b",
        "llama-3.1-80b",
        "DeepSeek-R1-Distill-Llama-9B",
        "deepseek-r1-distill",
        "deepseek-r1",        /* the registry of Ollama means a distillate by it */
        "deepseek-r1:latest", /* the same */
        "deepseek-r1:8b",     /* has meant two models */
        "ollama/deepseek-r1",
        "xdeepseek-ai/DeepSeek-R1",
        "qwen2.5-vl-7b",
        "gpt-4o",
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct model_size size;
        if (model_size_find(OTHERS[i], &size))
            fail_msg("%s was taken for a known model", OTHERS[i]);
        assert_false(is_known(size.total));
        assert_false(is_known(size.active));
        assert_false(is_known(model_flops_per_token(&size)));
    }
}

static const struct {
    const char *name;
    double total, active;
} ROWS[] = {
#define MODEL(name, billions, source)           {name, billions, billions},
#define MIXTURE(name, billions, active, source) {name, billions, active},
#include "catalog/models.def"
};

static void rows_are_sound_and_none_hides_another(void **state)
{
    (void)state;
    size_t count = sizeof ROWS / sizeof *ROWS;
    for (size_t i = 0; i < count; i++) {
        char name[MODEL_NAME_MAX], other[MODEL_NAME_MAX];
        struct model_size size;
        assert_true(ROWS[i].active > 0 && ROWS[i].active <= ROWS[i].total);
        model_name_normalise(ROWS[i].name, name, sizeof name);
        for (size_t j = i + 1; j < count; j++) {
            model_name_normalise(ROWS[j].name, other, sizeof other);
            if (!strcmp(name, other))
                fail_msg("%s and %s are one name", ROWS[i].name, ROWS[j].name);
        }
        assert_true(model_size_find(ROWS[i].name, &size));
        assert_near(size.total, ROWS[i].total * 1e9, 1);
        assert_near(size.active, ROWS[i].active * 1e9, 1);
    }
}

static void the_user_may_give_the_size(void **state)
{
    (void)state;
    static const struct {
        const char *total, *active;
        double all, used;
    } GIVEN[] = {
        {"8.03e9", NULL, 8.03e9, 8.03e9}, {"8.03B", NULL, 8.03e9, 8.03e9},
        {" 360m ", NULL, 360e6, 360e6},   {"30.5B", "3.3b", 30.5e9, 3.3e9},
        {"1T", "32B", 1e12, 32e9},        {"260K", "260K", 260e3, 260e3},
        {"7 B", NULL, 7e9, 7e9},
    };
    for (size_t i = 0; i < sizeof GIVEN / sizeof *GIVEN; i++) {
        struct model_size size;
        struct error why = {0};
        assert_int_equal(model_size_given(GIVEN[i].total, GIVEN[i].active, &size, &why), ERR_OK);
        assert_near(size.total, GIVEN[i].all, 1);
        assert_near(size.active, GIVEN[i].used, 1);
        assert_near(model_flops_per_token(&size), 2 * GIVEN[i].used, 2);
    }
}

static void a_wrong_size_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *total, *active, *says;
    } BAD[] = {
        {"", NULL, "no number"},
        {"B", NULL, "no number"},
        {"8.03X", NULL, "\"8.03X\" is no number"},
        {"8BB", NULL, "no number"},
        {"-8B", NULL, "no number"},
        {"0", NULL, "no number"},
        {"nan", NULL, "no number"},
        {"1e308T", NULL, "no number"},
        {"8", NULL, "write 8B"},
        {"30B", "x", "active parameters \"x\""},
        {"3B", "30B", "more than all"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct model_size size;
        struct error why = {0};
        assert_int_equal(model_size_given(BAD[i].total, BAD[i].active, &size, &why), ERR_BAD_VALUE);
        assert_contains(why.text, BAD[i].says);
        assert_false(is_known(size.total));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_models_are_known),
        cmocka_unit_test(nothing_is_guessed),
        cmocka_unit_test(rows_are_sound_and_none_hides_another),
        cmocka_unit_test(the_user_may_give_the_size),
        cmocka_unit_test(a_wrong_size_is_refused),
    };
    return RUN_TESTS(tests);
}
