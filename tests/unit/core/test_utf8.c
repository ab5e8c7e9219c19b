#include "core/text.h"

#include "support/unit.h"

static void every_code_point_round_trips(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < UTF8_INVALID; code++) {
        char bytes[UTF8_BYTES_MAX];
        size_t length;
        if (code >= 0xD800 && code < 0xE000)
            continue;
        size_t written = utf8_encode(code, bytes);
        assert_int_equal(utf8_length(bytes, written), written);
        assert_int_equal(utf8_decode(bytes, written, &length), code);
        assert_int_equal(length, written);
        if (written > 1)
            assert_int_equal(utf8_length(bytes, written - 1), 0);
    }
}

static void invalid_bytes_are_preserved(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "\x80",             /* a continuation byte alone */
        "\xC0\x80",         /* overlong */
        "\xC1\xBF",         /* overlong */
        "\xE0\x9F\xBF",     /* overlong */
        "\xF0\x8F\xBF\xBF", /* overlong */
        "\xED\xA0\x80",     /* a surrogate */
        "\xF4\x90\x80\x80", /* beyond U+10FFFF */
        "\xF5\x80\x80\x80", /* beyond U+10FFFF */
        "\xC3(",            /* not continued */
        "\xE2\x82",         /* truncated */
        "\xFF",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        char bytes[UTF8_BYTES_MAX];
        size_t length, left = strlen(BAD[i]);
        assert_int_equal(utf8_length(BAD[i], left), 0);
        uint32_t code = utf8_decode(BAD[i], left, &length);
        assert_int_equal(length, 1);
        assert_int_equal(code, UTF8_INVALID + (unsigned char)BAD[i][0]);
        assert_int_equal(utf8_encode(code, bytes), 1);
        assert_int_equal(bytes[0], BAD[i][0]);
    }
    assert_int_equal(utf8_length("a", 0), 0);
}

static void text_is_validated(void **state)
{
    (void)state;
    assert_int_equal(utf8_valid_prefix("caf\xC3\xA9", 5), 5);
    assert_int_equal(utf8_valid_prefix("caf\xE9 x", 6), 3);
    assert_int_equal(utf8_valid_prefix("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_round_trips),
        cmocka_unit_test(invalid_bytes_are_preserved),
        cmocka_unit_test(text_is_validated),
    };
    return RUN_TESTS(tests);
}
