/* The model catalog: spellings of names, sizes, architectures. */
#include "support/unit.h"

#include "catalog/model.h"
#include "core/jv.h"
#include "core/units.h"

/* ---- names ---- */

static const struct {
    const char *name, *normal;
} NAMES[] = {
    /* owners, case, instruction tuning */
    {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
    {"meta-llama/Meta-Llama-3-70B", "llama-3-70b"},
    {"/srv/models/google/gemma-2-9b-it", "gemma-2-9b"},
    {"google/gemma-3-12b-it-qat-q4_0-gguf", "gemma-3-12b"},
    {"Qwen/Qwen3-8B-Base", "qwen-3-8b"},
    {"mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b-v-0.2"},
    /* Ollama's spelling */
    {"llama3.2:1b", "llama-3.2-1b"},
    {"llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b"},
    {"phi4:latest", "phi-4"},
    {"mixtral:8x7b", "mixtral-8x7b"},
    {"qwen3:30b-a3b-q8_0", "qwen-3-30b-a-3b"},
    {"hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:IQ3_XXS", "llama-3.2-3b"},
    /* files and quantizations */
    {"llama-2-7b-chat.Q4_K_M.gguf", "llama-2-7b"},
    {"mistral-7b-instruct-v0.2.Q5_K_S.gguf", "mistral-7b-v-0.2"},
    {"Llama_3.1_8B_Instruct_q4_k_m", "llama-3.1-8b"},
    {"Llama-3.1-8B-Instruct-q4f16_1-MLC", "llama-3.1-8b-mlc"},
    {"neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "llama-3.1-8b"},
    {"Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen-2.5-7b"},
    {"unsloth/Qwen3-4B-UD-Q4_K_XL", "qwen-3-4b"},
    {"mlx-community/SmolLM2-360M-Instruct-4bit", "smollm-2-360m"},
    /* words that denote another model are kept */
    {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "deepseek-r-1-distill-llama-8b"},
    {"Qwen2.5-Coder-7B-Instruct", "qwen-2.5-coder-7b"},
    {"meta-llama/Llama-3.2-11B-Vision-Instruct", "llama-3.2-11b-vision"},
    {"Qwen3-4B-Instruct-2507", "qwen-3-4b-2507"},
    {"llama-3.1-8b-m", "llama-3.1-8b-m"},
    {"gpt-4o", "gpt-4o"},
    /* empty */
    {"", ""},
    {"chat", ""},
    {"models/", ""},
    {"-:_", ""},
};

static void spellings_of_a_model_normalize_to_one_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char normal[MODEL_NAME_MAX];
        model_name_normalize(NAMES[i].name, normal, sizeof normal);
        assert_string_equal(normal, NAMES[i].normal);
    }
}

static void normalizing_is_idempotent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char again[MODEL_NAME_MAX];
        model_name_normalize(NAMES[i].normal, again, sizeof again);
        assert_string_equal(again, NAMES[i].normal);
    }
}

static void a_name_longer_than_the_buffer_is_empty(void **state)
{
    (void)state;
    char small[12], huge[4 * MODEL_NAME_MAX];
    model_name_normalize("llama-3.1-8b", small, sizeof small);
    assert_string_equal(small, "");
    model_name_normalize("llama-3.1-8", small, sizeof small);
    assert_string_equal(small, "llama-3.1-8");
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    char normal[MODEL_NAME_MAX];
    model_name_normalize(huge, normal, sizeof normal);
    assert_string_equal(normal, "");
}

/* ---- sizes ---- */

static const struct {
    const char *name;
    double total, active; /* billions, as published */
} KNOWN[] = {
    {"ipw-1m-f16", 0.001066368, 0.001066368},
    {"ipw-6m-q4_0.gguf", 0.006025472, 0.006025472},
    {"tools-2m-q8_0", 0.00200912, 0.00200912},
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

static void published_models_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        struct model_size size;
        if (!model_size_find(KNOWN[i].name, &size))
            fail_msg("%s not found", KNOWN[i].name);
        assert_near(size.total, KNOWN[i].total * 1e9, KNOWN[i].total * 1e9 * 0.006);
        assert_near(size.active, KNOWN[i].active * 1e9, KNOWN[i].active * 1e9 * 0.006);
        assert_non_null(size.source);
    }
}

/* A name that contains a known one, or is contained in one, is a different model. */
static void similar_names_do_not_match(void **state)
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
        "deepseek-r1",        /* in Ollama's registry this is a distilled model */
        "deepseek-r1:latest", /* the same */
        "deepseek-r1:8b",     /* has been used for two models */
        "ollama/deepseek-r1",
        "xdeepseek-ai/DeepSeek-R1",
        "qwen2.5-vl-7b",
        "gpt-4o",
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct model_size size;
        if (model_size_find(OTHERS[i], &size))
            fail_msg("%s matched a known model", OTHERS[i]);
        assert_false(is_known(size.total));
        assert_false(is_known(size.active));
        assert_false(is_known(model_flops_per_token(&size)));
    }
}

static void model_cards_are_valid_and_found_by_each_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < model_card_count(); i++) {
        const struct model_card *card = model_card_at(i);
        const struct model_size *size = &card->size;
        assert_non_null(card->names[0]);
        assert_true(is_known(size->total) == is_known(size->active));
        assert_true(is_known(size->total) || card->architecture);
        if (!is_known(size->total))
            continue;
        assert_true(size->active > 0 && size->active <= size->total);
        assert_non_null(size->source);
        for (const char *const *name = card->names; *name; name++) {
            struct model_size found;
            assert_true(model_size_find(*name, &found));
            if (found.total != size->total || found.active != size->active)
                fail_msg("%s finds another size", *name);
        }
    }
}

static void model_card_names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < model_card_count(); i++)
        for (const char *const *a = model_card_at(i)->names; *a; a++) {
            char name[MODEL_NAME_MAX], other[MODEL_NAME_MAX];
            model_name_normalize(*a, name, sizeof name);
            for (size_t j = i + 1; j < model_card_count(); j++)
                for (const char *const *b = model_card_at(j)->names; *b; b++) {
                    model_name_normalize(*b, other, sizeof other);
                    if (!strcmp(name, other) || model_name_equal(*a, *b))
                        fail_msg("%s and %s are the same name", *a, *b);
                }
        }
}

/* ---- architectures ---- */

static void architectures_have_their_published_config(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t value;
    } PUBLISHED[] = {
        {"num_hidden_layers", 32},   {"hidden_size", 4096},
        {"num_attention_heads", 32}, {"num_key_value_heads", 8},
        {"head_dim", 128},           {"intermediate_size", 14336},
        {"vocab_size", 32000},       {"num_local_experts", 8},
        {"num_experts_per_tok", 2},  {"max_position_embeddings", 32768},
    };
    const struct model_shape *shape = model_shape_find("mixtral-8x7b");
    assert_non_null(shape);
    assert_string_equal(jv_get_text(shape->config, "model_type"), "mixtral");
    for (size_t i = 0; i < COUNT_OF(PUBLISHED); i++) {
        int64_t value;
        assert_true(jv_integer(jv_get(shape->config, PUBLISHED[i].key), &value));
        assert_int_equal(value, PUBLISHED[i].value);
    }
    assert_null(model_shape_find("resnet50"));
}

static void architectures_are_found_by_listed_names(void **state)
{
    (void)state;
    static const char *const LISTED[][2] = {
        {"Llama-3.1-8B-Instruct", "llama-3.1-8b"},   {"llama_3.1_8b", "llama-3.1-8b"},
        {"Llama-3.3-70B", "llama-3.1-70b"},          {"deit-base-patch16-224", "vit_b_16"},
        {"whisper-turbo", "whisper-large-v3-turbo"},
    };
    for (size_t i = 0; i < sizeof LISTED / sizeof *LISTED; i++)
        assert_string_equal(model_architecture(LISTED[i][0]), LISTED[i][1]);
    /* Quantized weights are not estimated under the unquantized name. */
    assert_null(model_architecture("Llama-3.1-8B-Instruct-AWQ"));
    assert_null(model_architecture("llama3.1:8b-instruct-q4_K_M"));
    assert_null(model_architecture(""));
}

/* ---- sizes given by the user ---- */

static void size_can_be_given_by_the_user(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double all, used;
    } GIVEN[] = {
        {"8.03e9", 8.03e9, 8.03e9}, {"8.03B", 8.03e9, 8.03e9},
        {" 360m ", 360e6, 360e6},   {"30.5B,3.3b", 30.5e9, 3.3e9},
        {"1T,32B", 1e12, 32e9},     {"260K,260K", 260e3, 260e3},
        {"7 B", 7e9, 7e9},
    };
    for (size_t i = 0; i < sizeof GIVEN / sizeof *GIVEN; i++) {
        struct model_size size;
        struct error why = {0};
        assert_int_equal(model_size_parse(GIVEN[i].text, &size, &why), ERR_OK);
        assert_near(size.total, GIVEN[i].all, 1);
        assert_near(size.active, GIVEN[i].used, 1);
        assert_near(model_flops_per_token(&size), 2 * GIVEN[i].used, 2);
    }
}

static void invalid_sizes_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } BAD[] = {
        {"", "not a number"},
        {"B", "not a number"},
        {"8.03X", "\"8.03X\" is not a number"},
        {"8BB", "not a number"},
        {"-8B", "not a number"},
        {"0", "not a number"},
        {"nan", "not a number"},
        {"1e308T", "not a number"},
        {"8", "write 8B"},
        {"30B,x", "active parameters \"x\""},
        {"3B,30B", "exceed the total"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct model_size size;
        struct error why = {0};
        assert_int_equal(model_size_parse(BAD[i].text, &size, &why), ERR_BAD_VALUE);
        assert_contains(why.text, BAD[i].says);
        assert_false(is_known(size.total));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings_of_a_model_normalize_to_one_name),
        cmocka_unit_test(normalizing_is_idempotent),
        cmocka_unit_test(a_name_longer_than_the_buffer_is_empty),
        cmocka_unit_test(published_models_are_found),
        cmocka_unit_test(similar_names_do_not_match),
        cmocka_unit_test(model_cards_are_valid_and_found_by_each_name),
        cmocka_unit_test(model_card_names_are_unique),
        cmocka_unit_test(architectures_have_their_published_config),
        cmocka_unit_test(architectures_are_found_by_listed_names),
        cmocka_unit_test(size_can_be_given_by_the_user),
        cmocka_unit_test(invalid_sizes_are_rejected),
    };
    return RUN_TESTS(tests);
}
