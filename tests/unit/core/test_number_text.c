/* Numbers as text: the fewest digits that round-trip, as printf and strtod find them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/text.h"
#include "support/unit.h"

static struct text found;

/* The reference prints with 15, 16 and 17 digits and parses each. */
static void check(double value)
{
    char wanted[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(wanted, sizeof wanted, "%.*g", precision, value);
        if (strtod(wanted, NULL) == value)
            break;
    }
    text_clear(&found);
    text_add(&found, "x");
    text_add_number(&found, value);
    assert_string_equal(text_get(&found) + 1, wanted);
    assert_int_equal(found.length, 1 + strlen(wanted));
}

static void limits_of_the_ranges(void **state)
{
    (void)state;
    static const double LIMITS[] = {0,     1e-6, 1e-5,      1e-4,      1e-3,     0.1,    0.5,  1,
                                    9.995, 10,   1e15,      1e16,      1e17,     1e21,   1e22, 1e23,
                                    231.6, 1e-9, 0x1p-1074, 0x1p-1022, 0x1p1023, 0x1p53, 0.3};
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        const double values[] = {LIMITS[i], nextafter(LIMITS[i], 0),
                                 nextafter(LIMITS[i], INFINITY)};
        for (size_t k = 0; k < 3; k++) {
            check(values[k]);
            check(-values[k]);
        }
    }
}

/* Below a power of two the next number is only half as far away. */
static void powers_of_two(void **state)
{
    (void)state;
    for (int power = -80; power < 80; power++) {
        check(ldexp(1, power));
        check(nextafter(ldexp(1, power), 0));
        check(nextafter(ldexp(1, power), INFINITY));
        check(ldexp(3, power));
    }
}

static void random_numbers(void **state)
{
    (void)state;
    struct random random = {.state = 7};
    for (int i = 0, max = test_is_instrumented() ? 20000 : 200000; i < max; i++) {
        uint64_t bits = random_below(&random, UINT64_MAX);
        double ten = pow(10, (double)(bits % 27) - 8);
        double values[] = {0,
                           (double)(bits >> 40) / 1000,
                           (double)(bits >> 11) * 1e-16,
                           (double)(bits >> 30),
                           (double)(bits % 100000) * -1.1e-5,
                           bits & 1024 ? ten : nextafter(ten, bits & 2048 ? 0 : INFINITY),
                           ten * (double)(bits >> 11) * 0x1p-53,
                           ldexp((double)(bits >> (bits & 31)), -(int)(bits % 75)),
                           (double)(bits >> 12) / pow(10, (double)(bits % 17))};
        memcpy(&values[0], &bits, sizeof bits);
        double value = values[(size_t)i % (sizeof values / sizeof *values)];
        if (isfinite(value))
            check(value);
    }
    text_release(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_of_the_ranges),
        cmocka_unit_test(powers_of_two),
        cmocka_unit_test(random_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
