#include "support/unit.h"

#include "estimate/precision.h"

static void names_are_found_and_others_get_the_nearest(void **state)
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

static void widths_are_bytes_of_one_number(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        double weight, activation, cache;
        enum precision products;
    } CASES[] = {
        {PRECISION_FP64, 8, 8, 8, PRECISION_FP64},   {PRECISION_FP32, 4, 4, 4, PRECISION_FP32},
        {PRECISION_TF32, 4, 4, 4, PRECISION_TF32},   {PRECISION_FP16, 2, 2, 2, PRECISION_FP16},
        {PRECISION_BF16, 2, 2, 2, PRECISION_BF16},   {PRECISION_FP8, 1, 1, 1, PRECISION_FP8},
        {PRECISION_INT8, 1, 1, 1, PRECISION_INT8},   {PRECISION_FP4, 0.5, 2, 2, PRECISION_FP16},
        {PRECISION_INT4, 0.5, 2, 2, PRECISION_FP16},
    };
    assert_int_equal(sizeof CASES / sizeof *CASES, PRECISION_COUNT);
    for (size_t i = 0; i < PRECISION_COUNT; i++) {
        struct graph_widths widths = precision_widths(CASES[i].precision);
        assert_near(widths.weight, CASES[i].weight, 0);
        assert_near(widths.activation, CASES[i].activation, 0);
        assert_near(widths.cache, CASES[i].cache, 0);
        assert_false(widths.keeps_stored);
        assert_int_equal(precision_of_products(CASES[i].precision), CASES[i].products);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_and_others_get_the_nearest),
        cmocka_unit_test(widths_are_bytes_of_one_number),
    };
    return RUN_TESTS(tests);
}
