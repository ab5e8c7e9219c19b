#include "support/unit.h"

#include <math.h>

#include "catalog/precision.h"

static void names_are_found_and_unknown_names_get_a_suggestion(void **state)
{
    (void)state;
    enum precision precision = PRECISION_FP64;
    struct error why = {0};
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        assert_int_equal(precision_find(precision_name((enum precision)i), &precision, &why),
                         ERR_OK);
        assert_int_equal(precision, i);
    }
    assert_int_equal(precision_find("BF16", &precision, &why), ERR_OK);
    assert_int_equal(precision, PRECISION_BF16);
    assert_int_equal(precision_find("bf17", &precision, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "did you mean 'bf16'");
    assert_int_equal(precision_find("quarter", &precision, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "fp64, fp32, tf32");
    assert_int_equal(precision_find("", &precision, &why), ERR_BAD_VALUE);
}

static void widths_are_bytes_per_element(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        double weight, activation, cache;
    } CASES[] = {
        {PRECISION_FP64, 8, 8, 8}, {PRECISION_FP32, 4, 4, 4},  {PRECISION_TF32, 4, 4, 4},
        {PRECISION_FP16, 2, 2, 2}, {PRECISION_BF16, 2, 2, 2},  {PRECISION_FP8, 1, 1, 1},
        {PRECISION_INT8, 1, 1, 1}, {PRECISION_FP4, 0.5, 2, 2}, {PRECISION_INT4, 0.5, 2, 2},
    };
    assert_int_equal(sizeof CASES / sizeof *CASES, PRECISION_COUNT);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        struct precision_widths widths = precision_widths(CASES[i].precision);
        assert_near(widths.weight, CASES[i].weight, 0);
        assert_near(widths.activation, CASES[i].activation, 0);
        assert_near(widths.cache, CASES[i].cache, 0);
        assert_false(widths.keeps_stored);
        assert_int_equal(precision_is_weight_only(CASES[i].precision),
                         CASES[i].weight < CASES[i].activation);
    }
}

/* Bits of the significand, and whether there is an exponent: what a precision needs to represent
 * another. The range of fp16 and bf16 is ignored: models are run in either. */
static void a_precision_is_represented_by_wider_ones(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int significand; /* with the implicit bit, or the bits of an integer without its sign */
        bool is_integer;
    } CASES[] = {
        {PRECISION_FP64, 53, false}, {PRECISION_FP32, 24, false}, {PRECISION_TF32, 11, false},
        {PRECISION_FP16, 11, false}, {PRECISION_BF16, 8, false},  {PRECISION_FP8, 4, false},
        {PRECISION_INT8, 7, true},   {PRECISION_FP4, 2, false},   {PRECISION_INT4, 3, true},
    };
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        const enum precision *holder = precision_holders(CASES[i].precision);
        assert_int_equal(*holder, CASES[i].precision);
        for (size_t count = 0; *holder != PRECISION_COUNT; holder++) {
            bool is_integer = CASES[*holder].is_integer;
            bool stands_in = CASES[i].precision == PRECISION_FP16 && *holder == PRECISION_BF16;
            assert_true(count++ < PRECISION_COUNT);
            assert_int_equal(CASES[*holder].precision, *holder);
            assert_true(CASES[*holder].significand >= CASES[i].significand || stands_in);
            assert_false(is_integer && !CASES[i].is_integer);
        }
    }
}

static void bits_per_weight_follow_from_the_name_of_a_model(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double bits;
    } CASES[] = {
        {"llama3.2:1b-instruct-q4_K_M", 4},
        {"Meta-Llama-3.1-8B-Instruct-FP8", 8},
        {"Qwen2.5-7B-AWQ", 4},
        {"gemma-2-9b-bf16", 16},
        {"phi-3.Q6_K.gguf", 6},
        {"llama-3.1-8b", NAN},
        {"seq8", NAN},
        {"q45", NAN},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double bits = bits_in_name(CASES[i].model);
        assert_true(isnan(CASES[i].bits) ? isnan(bits) : bits == CASES[i].bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_and_unknown_names_get_a_suggestion),
        cmocka_unit_test(widths_are_bytes_per_element),
        cmocka_unit_test(a_precision_is_represented_by_wider_ones),
        cmocka_unit_test(bits_per_weight_follow_from_the_name_of_a_model),
    };
    return RUN_TESTS(tests);
}
