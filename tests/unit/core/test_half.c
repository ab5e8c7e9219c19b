/* 16-bit floating-point numbers. */
#include "support/unit.h"

#include <math.h>

#include "core/half.h"

static void every_number_is_read_and_written(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = half_to_float((uint16_t)bits);
        uint16_t back = half_from_float(value);
        if (isnan(value) ? !isnan(half_to_float(back)) : back != bits)
            fail_msg("%04x is %g, which is %04x", bits, (double)value, back);
        int exponent = (int)(bits >> 10 & 31);
        if (exponent > 0 && exponent < 31) {
            double expected = (1 + (bits & 1023) / 1024.0) * pow(2, exponent - 15);
            assert_true(value == (bits >> 15 ? -expected : expected));
        }
    }
}

static void numbers_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    static const struct {
        float value;
        uint16_t bits;
    } CASES[] = {
        {1 + 0x1p-11F, 0x3C00},     /* halfway: to even */
        {1 + 3 * 0x1p-11F, 0x3C02}, /* halfway: to even */
        {1 + 0x1.002p-11F, 0x3C01}, /* just above */
        {2 - 0x1p-12F, 0x4000},     /* carries into the exponent */
        {65504, 0x7BFF},            /* the largest */
        {65519.996F, 0x7BFF},
        {65520, 0x7C00},
        {-1e10F, 0xFC00},
        {0x1p-24F, 0x0001}, /* the smallest */
        {0x1p-25F, 0x0000}, /* halfway to it */
        {0x1.8p-25F, 0x0001},
        {0x1.FFFp-15F, 0x0400}, /* a subnormal that rounds up to a normal number */
        {-0.0F, 0x8000},
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        if (half_from_float(CASES[i].value) != CASES[i].bits)
            fail_msg("%a is %04x, not %04x", (double)CASES[i].value,
                     half_from_float(CASES[i].value), CASES[i].bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_read_and_written),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest),
    };
    return RUN_TESTS(tests);
}
