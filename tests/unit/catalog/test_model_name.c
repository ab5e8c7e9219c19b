#include "support/unit.h"

#include "catalog/model.h"

static const struct {
    const char *name, *normal;
} NAMES[] = {
    /* owners, case, tuning */
    {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
    {"meta-llama/Meta-Llama-3-70B", "llama-3-70b"},
    {"/srv/models/google/gemma-2-9b-it", "gemma-2-9b"},
    {"google/gemma-3-12b-it-qat-q4_0-gguf", "gemma-3-12b"},
    {"Qwen/Qwen3-8B-Base", "qwen-3-8b"},
    {"mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b-v-0.2"},
    /* as Ollama writes them */
    {"llama3.2:1b", "llama-3.2-1b"},
    {"llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b"},
    {"phi4:latest", "phi-4"},
    {"mixtral:8x7b", "mixtral-8x7b"},
    {"qwen3:30b-a3b-q8_0", "qwen-3-30b-a-3b"},
    {"hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:IQ3_XXS", "llama-3.2-3b"},
    /* files and formats */
    {"llama-2-7b-chat.Q4_K_M.gguf", "llama-2-7b"},
    {"mistral-7b-instruct-v0.2.Q5_K_S.gguf", "mistral-7b-v-0.2"},
    {"Llama_3.1_8B_Instruct_q4_k_m", "llama-3.1-8b"},
    {"Llama-3.1-8B-Instruct-q4f16_1-MLC", "llama-3.1-8b-mlc"},
    {"neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "llama-3.1-8b"},
    {"Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen-2.5-7b"},
    {"unsloth/Qwen3-4B-UD-Q4_K_XL", "qwen-3-4b"},
    {"mlx-community/SmolLM2-360M-Instruct-4bit", "smollm-2-360m"},
    /* what makes another model stays */
    {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "deepseek-r-1-distill-llama-8b"},
    {"Qwen2.5-Coder-7B-Instruct", "qwen-2.5-coder-7b"},
    {"meta-llama/Llama-3.2-11B-Vision-Instruct", "llama-3.2-11b-vision"},
    {"Qwen3-4B-Instruct-2507", "qwen-3-4b-2507"},
    {"llama-3.1-8b-m", "llama-3.1-8b-m"},
    {"gpt-4o", "gpt-4o"},
    /* nothing to say */
    {"", ""},
    {"chat", ""},
    {"models/", ""},
    {"-:_", ""},
};

static void names_of_one_model_become_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char normal[MODEL_NAME_MAX];
        model_name_normalise(NAMES[i].name, normal, sizeof normal);
        assert_string_equal(normal, NAMES[i].normal);
    }
}

static void normal_names_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char again[MODEL_NAME_MAX];
        model_name_normalise(NAMES[i].normal, again, sizeof again);
        assert_string_equal(again, NAMES[i].normal);
    }
}

static void a_name_that_does_not_fit_is_none(void **state)
{
    (void)state;
    char small[12], huge[4 * MODEL_NAME_MAX];
    model_name_normalise("llama-3.1-8b", small, sizeof small);
    assert_string_equal(small, "");
    model_name_normalise("llama-3.1-8", small, sizeof small);
    assert_string_equal(small, "llama-3.1-8");
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    char normal[MODEL_NAME_MAX];
    model_name_normalise(huge, normal, sizeof normal);
    assert_string_equal(normal, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_one_model_become_one),
        cmocka_unit_test(normal_names_stay),
        cmocka_unit_test(a_name_that_does_not_fit_is_none),
    };
    return RUN_TESTS(tests);
}
