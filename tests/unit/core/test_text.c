#include "support/unit.h"

#include <string.h>

#include "core/text.h"

static void numbers_are_parsed_strictly(void **state)
{
    (void)state;
    uint64_t u = 7;
    assert_int_equal(parse_u64(" 42\n", &u), ERR_OK);
    assert_int_equal(u, 42);
    static const char *const BAD[] = {"",   " ", "-1", "+1", "12x", "0x10", "18446744073709551616",
                                      "nan"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_equal(parse_u64(BAD[i], &u), ERR_BAD_VALUE);
        assert_int_equal(u, 42);
    }
    int64_t s;
    assert_int_equal(parse_i64("-5\n", &s), ERR_OK);
    assert_int_equal(s, -5);
    assert_int_equal(parse_i64("-", &s), ERR_BAD_VALUE);
    double d = 1;
    assert_int_equal(parse_double("2.5", &d), ERR_OK);
    assert_near(d, 2.5, 0);
    assert_int_equal(parse_double("inf", &d), ERR_BAD_VALUE);
    assert_int_equal(parse_double("nan", &d), ERR_BAD_VALUE);
    assert_int_equal(parse_double("1.5W", &d), ERR_BAD_VALUE);
    assert_int_equal(parse_double("0x10", &d), ERR_BAD_VALUE);
    assert_int_equal(parse_double("-0X1p3", &d), ERR_BAD_VALUE);
}

static void text_grows_and_formats(void **state)
{
    (void)state;
    struct text text = {0};
    assert_string_equal(text_get(&text), "");
    for (int i = 0; i < 1000; i++)
        text_addf(&text, "%d,", i);
    assert_int_equal(text.length, 10 * 2 + 90 * 3 + 900 * 4);
    assert_memory_equal(text_get(&text) + text.length - 4, "999,", 4);
    text_clear(&text);
    assert_string_equal(text_get(&text), "");
    text_release(&text);
}

static void fixed_buffers_are_cut_not_overrun(void **state)
{
    (void)state;
    char small[4];
    assert_false(str_copy(small, sizeof small, "abcdef"));
    assert_string_equal(small, "abc");
    assert_true(str_copy(small, sizeof small, "abc"));
    assert_false(str_format(small, sizeof small, "%d", 123456));
    assert_string_equal(small, "123");
    assert_true(str_join(small, sizeof small, "a", "b", "c"));
    assert_string_equal(small, "abc");
    assert_true(str_join(small, sizeof small, "", "ab", ""));
    assert_string_equal(small, "ab");
    assert_false(str_join(small, sizeof small, "ab", "cd", "e"));
    assert_string_equal(small, "abc");
    assert_false(str_join(small, sizeof small, "abc", "", "d"));
    assert_string_equal(small, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_parsed_strictly),
        cmocka_unit_test(text_grows_and_formats),
        cmocka_unit_test(fixed_buffers_are_cut_not_overrun),
    };
    return RUN_TESTS(tests);
}
