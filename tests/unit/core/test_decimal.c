/* Numbers as digits: the same as by printing and reading back, whatever the number. */
#include "core/decimal.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/unit.h"

/* What decimal_from_double promises, word by word. */
static void print_and_read_back(double value, char out[DECIMAL_SIZE])
{
    static const int PRECISIONS[] = {9, 15, 16, 17};
    for (size_t i = 0; i < sizeof PRECISIONS / sizeof *PRECISIONS; i++) {
        snprintf(out, DECIMAL_SIZE, "%.*g", PRECISIONS[i], value);
        if (strtod(out, NULL) == value)
            return;
    }
}

static void check(double value)
{
    char expected[DECIMAL_SIZE], got[DECIMAL_SIZE];
    print_and_read_back(value, expected);
    size_t length = decimal_from_double(value, got);
    assert_string_equal(got, expected);
    assert_int_equal(length, strlen(expected));
}

static void test_known_numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } CASES[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-42, "-42"},
        {231.6, "231.6"},
        {0.1, "0.1"},
        {-0.001, "-0.001"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {1e9, "1e+09"},
        {1.6e10, "1.6e+10"},
        {999999999, "999999999"},
        {1234567890.125, "1234567890.125"},
        {1e300, "1e+300"},
        {5e-324, "4.94065646e-324"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char got[DECIMAL_SIZE];
        decimal_from_double(CASES[i].value, got);
        assert_string_equal(got, CASES[i].text);
    }
}

static void test_edges_are_as_printed(void **state)
{
    (void)state;
    for (int power = -320; power <= 308; power++) {
        double ten = strtod("1", NULL) * pow(10, power);
        check(ten);
        check(-nextafter(ten, 0));
        check(nextafter(ten, INFINITY));
        check(9.9999999999999995 * ten);
        check(0.5 * ten);
    }
    for (int power = -1074; power <= 1023; power++) {
        double two = ldexp(1, power);
        check(two);
        check(nextafter(two, 0));
        check(nextafter(two, INFINITY));
    }
    check(DBL_MAX);
}

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Of the sizes that a run writes, of few digits and of many; and of any bits at all. */
static void test_random_numbers_are_as_printed(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 20000; i++) {
        double part = (double)(random_bits(&random) >> 11) * 0x1p-53;
        int power = (int)(random_bits(&random) % 30) - 14;
        int digits = (int)(random_bits(&random) % 18);
        double value = part * pow(10, power);
        char few[64];
        check(value);
        snprintf(few, sizeof few, "%.*e", digits, value);
        check(-strtod(few, NULL));
        uint64_t bits = random_bits(&random);
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            check(value);
    }
}

static void test_integers(void **state)
{
    (void)state;
    static const int64_t CASES[] = {0, 1, -1, 9, 10, 1234567890123, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char expected[DECIMAL_SIZE], got[DECIMAL_SIZE];
        snprintf(expected, sizeof expected, "%" PRId64, CASES[i]);
        assert_int_equal(decimal_from_integer(CASES[i], got), strlen(expected));
        assert_string_equal(got, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_numbers),
        cmocka_unit_test(test_edges_are_as_printed),
        cmocka_unit_test(test_random_numbers_are_as_printed),
        cmocka_unit_test(test_integers),
    };
    return RUN_TESTS(tests);
}
