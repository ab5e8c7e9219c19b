#include "support/unit.h"

#include <math.h>

#include "core/units.h"
#include "report/text/format.h"

static void si_values_have_four_digits_and_a_prefix(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } CASES[] = {
        {0, "0.000 J"},        {1, "1.000 J"},          {0.01234, "12.34 mJ"},
        {12345, "12.35 kJ"},   {999.94, "999.9 J"},     {999.96, "1.000 kJ"},
        {99.996, "100.0 J"},   {9.9996, "10.00 J"},     {0.99996, "1.000 J"},
        {0.9999, "999.9 mJ"},  {-12345, "-12.35 kJ"},   {1.5e6, "1.500 MJ"},
        {2.5e15, "2500.0 TJ"}, {1e308, "1.000e+308 J"}, {-2e17, "-2.000e+17 J"},
        {9.3e-13, "0.001 nJ"}, {8e-15, "< 0.001 nJ"},   {-8e-15, "> -0.001 nJ"},
        {3e-9, "3.000 nJ"},    {4.2e-5, "42.00 µJ"},    {UNKNOWN, "-"},
        {INFINITY, "-"},
    };
    char text[FORMAT_MAX];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_string_equal(format_si(text, CASES[i].value, "J"), CASES[i].text);
}

static void an_uncertainty_has_two_digits_and_is_never_zero(void **state)
{
    (void)state;
    static const struct {
        double value, error;
        const char *text;
    } CASES[] = {
        {12345, 360, "12.35 ± 0.36 kJ"},
        {12345, 3.6, "12.3450 ± 0.0036 kJ"},
        {412.34, 3.6, "412.3 ± 3.6 J"},
        {412.34, 36, "412 ± 36 J"},
        {412.34, 360, "410 ± 360 J"},
        {430.1, 163, "430 ± 160 J"},
        {47.98, 29.4, "48 ± 29 J"},
        {19.97, 0.998, "20.0 ± 1.0 J"},
        {19.97, 0.994, "19.97 ± 0.99 J"},
        {0.012, 2.34, "0.0 ± 2.3 J"}, /* below its uncertainty */
        {-0.012, 2.34, "0.0 ± 2.3 J"},
        {2.824e-14, 0.06, "0 ± 60 mJ"},
        {0.9, 1.13, "0.9 ± 1.1 J"},
        {5, 0, "5.000 J"},
        {5, UNKNOWN, "5.000 J"},
        {UNKNOWN, 1, "-"},
        {1e308, 2e307, "1.000e+308 ± 2.0e+307 J"},
        {5, 1e18, "5.000e+00 ± 1.0e+18 J"},
        {1e9, 1e-9, "1.000 GJ"}, /* more digits than any sensor has */
    };
    char text[FORMAT_MAX];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_string_equal(format_with_error(text, CASES[i].value, CASES[i].error, "J"),
                            CASES[i].text);
}

static void a_figure_has_the_unit_of_its_metric(void **state)
{
    (void)state;
    static const struct {
        double value, error;
        const char *unit, *text;
    } CASES[] = {
        {13.72, 8.7, "1/J", "13.7 ± 8.7 /J"},
        {0.02206, 0.0131, "1/J", "22 ± 13 /kJ"},
        {0.2426, 0.152, "1/W", "240 ± 150 /kW"},
        {2500, 120, "1/J", "2.50 ± 0.12 /mJ"},
        {3.5e-5, UNKNOWN, "1/W", "35.00 /MW"},
        {3.5, 0, "1/J", "3.500 /J"},
        {0, UNKNOWN, "1/J", "0 /J"},
        {0, 0.012, "1/J", "0 ± 12 /kJ"},
        {0.99996, 0.5, "1/J", "1.00 ± 0.50 /J"},
        {410.6, 12, "1/s", "411 ± 12 /s"},
        {12345, 118, "1/s", "12350 ± 120 /s"},
        {12.5, UNKNOWN, "1/s", "12.5 /s"},
        {0.842, 0.0361, "%", "84.2 ± 3.6 %"},
        {0.842, 0.121, "%", "84 ± 12 %"},
        {0.842, UNKNOWN, "%", "84.2 %"},
        {1.5e10, 2e9, "FLOP/J", "15.0 ± 2.0 GFLOP/J"},
        {47.98, 29.4, "", "48 ± 29"},
        {1234567, UNKNOWN, "", "1234567"},
        {UNKNOWN, 1, "1/J", "-"},
        {12.3456, 0.0278, "J", "12.346 ± 0.028 J"},
    };
    char text[FORMAT_MAX];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_string_equal(format_figure(text, CASES[i].value, CASES[i].error, CASES[i].unit),
                            CASES[i].text);
}

static void a_p_value_at_its_floor_is_a_bound(void **state)
{
    (void)state;
    static const struct {
        double p;
        bool is_bound;
        const char *text;
    } CASES[] = {
        {0.0123, false, "0.012"}, {0.0004, false, "< 0.001"}, {0.005, false, "0.005"},
        {0.005, true, "< 0.01"},  {0.0001, true, "< 0.001"},  {0.0023, true, "< 0.005"},
        {1, true, "1.000"},       {0.7, true, "< 1"},         {UNKNOWN, true, "-"},
    };
    char text[FORMAT_MAX];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_string_equal(format_p(text, CASES[i].p, CASES[i].is_bound), CASES[i].text);
}

static void rough_figures_have_two_digits(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } CASES[] = {
        {5.758, "5.8 W"}, {57.58, "58 W"},   {575.8, "580 W"}, {995, "1.0 kW"},
        {9.96, "10 W"},   {0.0121, "12 mW"}, {0, "0.000 W"},   {UNKNOWN, "-"},
    };
    char text[FORMAT_MAX];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_string_equal(format_rough(text, CASES[i].value, "W"), CASES[i].text);
    assert_string_equal(format_in(text, 10.1, 2, "pJ"), "10.1 ± 2.0 pJ");
    assert_string_equal(format_in(text, 989.4, UNKNOWN, "TFLOPS"), "989.4 TFLOPS");
    assert_string_equal(format_in(text, 30921.4, UNKNOWN, "GB/s"), "30921 GB/s");
    assert_string_equal(format_rough(text, 36.42, "1/J"), "36 /J");
    assert_string_equal(format_rough(text, 6.549, "1/J"), "6.5 /J");
    assert_string_equal(format_rough(text, 0.2388, "1/W"), "240 /kW");
    assert_string_equal(format_rough(text, UNKNOWN, "1/W"), "-");
}

static void percentages_bytes_and_durations_are_formatted(void **state)
{
    (void)state;
    char text[FORMAT_MAX];
    assert_string_equal(format_percent(text, 0.9934), "99.3 %");
    assert_string_equal(format_percent(text, 0.9996), "100 %");
    assert_string_equal(format_percent(text, UNKNOWN), "-");
    assert_string_equal(format_unread(text, 0.05, 0.93), "5.0 % unread: at most 93.0 %");
    assert_string_equal(format_unread(text, 1, 1), "100 % unread: at most 100 %");
    assert_string_equal(format_unread(text, 0, 0.88), "");
    assert_string_equal(format_unread(text, UNKNOWN, UNKNOWN), "");
    assert_string_equal(format_bytes(text, 1023), "1023 B");
    assert_string_equal(format_bytes(text, 1.5 * 1024 * 1024 * 1024), "1.5 GiB");
    assert_string_equal(format_bytes(text, 1023.99 * 1024), "1.0 MiB");
    assert_string_equal(format_bytes(text, UNKNOWN), "-");
    double gib = 1024.0 * 1024 * 1024;
    assert_string_equal(format_bytes_of(text, 12.3 * gib, 139.8 * gib), "12.3/139.8 GiB");
    assert_string_equal(format_bytes_of(text, UNKNOWN, 139.8 * gib), "-/139.8 GiB");
    assert_string_equal(format_bytes_of(text, 12.3 * gib, UNKNOWN), "12.3 GiB");
    assert_string_equal(format_bytes_of(text, UNKNOWN, UNKNOWN), "-");
    assert_string_equal(format_duration(text, 5.25), "5.250 s");
    assert_string_equal(format_duration(text, 125.9), "2 m 05 s");
    assert_string_equal(format_duration(text, 3 * 3600 + 125), "3 h 02 m");
    assert_string_equal(format_duration(text, UNKNOWN), "-");
}

static void every_figure_fits_its_buffer(void **state)
{
    (void)state;
    static const double EXTREMES[] = {1e300, -1e300, 1e-300, 1.7e308, 4e18};
    char text[FORMAT_MAX + 1];
    for (size_t i = 0; i < sizeof EXTREMES / sizeof *EXTREMES; i++) {
        text[FORMAT_MAX] = '#';
        format_si(text, EXTREMES[i], "J");
        format_rough(text, EXTREMES[i], "J");
        format_with_error(text, EXTREMES[i], EXTREMES[i], "J");
        format_figure(text, EXTREMES[i], EXTREMES[i], "1/J");
        format_figure(text, EXTREMES[i], EXTREMES[i], "");
        format_figure(text, EXTREMES[i], EXTREMES[i], "%");
        format_figure(text, EXTREMES[i], UNKNOWN, "1/s");
        format_bytes_of(text, EXTREMES[i], EXTREMES[i]);
        assert_int_equal(text[FORMAT_MAX], '#');
    }
}

static void amounts_of_money_have_no_exponent(void **state)
{
    (void)state;
    static const struct {
        double value, error;
        const char *currency, *text;
    } CASES[] = {
        {12.345, UNKNOWN, "EUR", "12.35 EUR"},
        {2.02e-7, UNKNOWN, "", "0.000000202"},
        {2.02e-7, 4.1e-8, "USD", "0.000000202 ± 0.000000041 USD"},
        {3.9, 1.03, "", "3.9 ± 1.0"},
        {1234.5, 0.1, "", "1234.50"}, /* ± below the last digit of an amount */
        {0, UNKNOWN, "EUR", "0.00 EUR"},
        {UNKNOWN, UNKNOWN, "EUR", "-"},
        {1e300, 1e299, "", "1.000e+300"},
    };
    char text[FORMAT_MAX];
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_string_equal(format_amount(text, CASES[i].value, CASES[i].error, CASES[i].currency),
                            CASES[i].text);
}

/* The value is never outside of the interval beside it, however large its ± is. */
static void value_lies_inside_the_interval_beside_it(void **state)
{
    (void)state;
    char text[FORMAT_MAX];
    format_figure_beside(text, 0.2054, 0.12, 0.2011, 0.2098, "1/W");
    assert_string_equal(text, "205.4 ± 120 /kW");
    format_figure_beside(text, 0.1948, 0.12, 0.1893, 0.2004, "1/W");
    assert_string_equal(text, "194.8 ± 120 /kW");
    format_figure_beside(text, 12.3456, 7.4, 12.31, 12.38, "J");
    assert_string_equal(text, "12.346 ± 7.4 J");
    format_figure_beside(text, 12.3456, 0.01, 11, 13, "J"); /* the ± is the finer one */
    assert_string_equal(text, "12.346 ± 0.010 J");
    format_figure_beside(text, 12.3456, 0.36, UNKNOWN, UNKNOWN, "J");
    assert_string_equal(text, "12.35 ± 0.36 J");
    for (double value = 0.001; value < 1000; value *= 1.37) {
        double half = 0.02 * value;
        format_figure_beside(text, value, 0.6 * value, value - half, value + half, "");
        assert_near(strtod(text, NULL), value, half);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_lies_inside_the_interval_beside_it),
        cmocka_unit_test(si_values_have_four_digits_and_a_prefix),
        cmocka_unit_test(an_uncertainty_has_two_digits_and_is_never_zero),
        cmocka_unit_test(a_figure_has_the_unit_of_its_metric),
        cmocka_unit_test(a_p_value_at_its_floor_is_a_bound),
        cmocka_unit_test(rough_figures_have_two_digits),
        cmocka_unit_test(percentages_bytes_and_durations_are_formatted),
        cmocka_unit_test(every_figure_fits_its_buffer),
        cmocka_unit_test(amounts_of_money_have_no_exponent),
    };
    return RUN_TESTS(tests);
}
