/* Suggestions for unknown names: never of another generation or size. */
#include "support/unit.h"

#include "catalog/hardware.h"
#include "catalog/near_names.h"

static const struct {
    const char *word, *listed;
    bool is_near;
} PAIRS[] = {
    /* versions */
    {"llama-3", "llama-3-8b", true},
    {"llama-3", "llama-2-7b", false},
    {"llama-3", "llama-3.1-8b", false},
    {"llama-3", "llama-3.2-3b", false},
    {"llama-3.1", "llama-3.1-8b", true},
    {"llama3_1:8b", "llama-3.1-8b", true},
    {"qwen2.5-7b", "qwen3-8b", false},
    {"qwen2.5-7b", "qwen2-7b", false},
    {"phi-3", "phi-4", false},
    {"gemma-3-27b", "gemma-2-27b", false},
    {"stable-diffusion-1.5", "stable-diffusion-2.1", false},
    {"stable-diffusion-xl", "stable-diffusion-xl-unet", true},
    {"yolov8n", "yolov8s", true},
    {"yolov11n", "yolov8n", false},
    {"h100", "h100-pcie", true},
    {"h100", "h200", false},
    {"h200", "b200", false},
    {"h2OO", "h200", true},
    {"resnet5o", "resnet50", true},
    {"b200", "gb200", false},
    {"rtx-4090", "rtx-5090", false},
    {"rtx4090", "rtx-4090", true},
    {"rtx 4080", "rtx-4090", false},
    {"a100", "a10", false},
    {"l4", "l40s", false},
    {"l40", "l40s", true},
    {"mi300", "mi300x", true},
    {"mi325x", "mi300x", false},
    {"m4-max", "apple-m4-max", true},
    {"m5-max", "apple-m4-max", false},
    {"tpu-v6e", "tpu-v5e", false},
    {"xeon-8480", "xeon-8490h", false},
    /* sizes */
    {"llama-8b", "llama-3.1-8b", true},
    {"llama-7b", "llama-3.1-8b", false},
    {"llama-3.1-8b", "llama-3.1-80b", false},
    {"qwen3-30b", "qwen3-30b-a3b", true},
    {"mixtral-8x7b", "mixtral-8x22b", false},
    {"a100-80gb", "a100-sxm-80gb", true},
    {"a100-80gb", "a100-sxm-40gb", false},
    /* no numbers */
    {"llama", "llama-3.1-8b", true},
    {"lama-3.1-8b", "llama-3.1-8b", true},
    {"mixtral", "mixtral-8x7b", true},
};

static void numbers_of_a_near_name_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        char near[160];
        const char *const *listed = &PAIRS[i].listed;
        if (near_names(PAIRS[i].word, listed, 1, near, sizeof near) != PAIRS[i].is_near)
            fail_msg("%s and %s: expected %d", PAIRS[i].word, *listed, PAIRS[i].is_near);
    }
}

static void the_nearest_names_come_first(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"h100-nvl", "h100-pcie", "h100-sxm",     "h200",
                                        "l40s",     "rtx-4090",  "apple-m4-max", "a100-sxm-80gb"};
    static const struct {
        const char *word, *near;
    } CASES[] = {
        {"h100", "h100-nvl, h100-pcie or h100-sxm"},
        {"H100-SMX", "h100-sxm"},
        {"h300", ""},
        {"l40", "l40s"},
        {"rtx-5090", ""},
        {"m4-max", "apple-m4-max"},
        {"", ""},
        {"a100-sxm-80gb-of-a-name-that-is-longer-than-any-name-of-the-catalog-may-be", ""},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        char near[160];
        bool is_near = near_names(CASES[i].word, NAMES, COUNT_OF(NAMES), near, sizeof near);
        assert_string_equal(near, CASES[i].near);
        assert_int_equal(is_near, near[0] != '\0');
    }
    char small[12];
    assert_true(near_names("h100", NAMES, COUNT_OF(NAMES), small, sizeof small));
    assert_string_equal(small, "h100-nvl"); /* whole names only */
}

/* Of every device of the catalog, the next and the last generation are not suggested. */
static void devices_are_suggested_within_a_generation(void **state)
{
    (void)state;
    static const struct {
        const char *word, *expected, *never;
    } CASES[] = {
        {"h101", "see `ipw list hardware`", "h100"},
        {"rtx-4080", "see `ipw list hardware`", "4090"},
        {"b100", "see `ipw list hardware`", "h100"},
        {"mi300", "did you mean mi300x?", "mi250x"},
        {"a100-40gb", "a100-pcie-40gb", "80gb"},
        {"xeon-8481", "see `ipw list hardware`", "8480"},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct hardware unused;
        struct error why = {0};
        assert_int_equal(hardware_find(CASES[i].word, &unused, &why), ERR_NOT_FOUND);
        assert_contains(why.text, CASES[i].expected);
        assert_null(strstr(why.text, CASES[i].never));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_a_near_name_agree),
        cmocka_unit_test(the_nearest_names_come_first),
        cmocka_unit_test(devices_are_suggested_within_a_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
