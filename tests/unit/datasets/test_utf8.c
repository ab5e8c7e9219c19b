/* What is not valid UTF-8 becomes U+FFFD, and valid text stays as it is. */
#include "support/unit.h"

#include "core/text.h"
#include "datasets/rows/utf8.h"

#define BAD "\xEF\xBF\xBD"

static const struct sample {
    const char *bytes;
    size_t length;
    const char *repaired;
} SAMPLES[] = {
    {"plain", 5, "plain"},
    {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", 14, "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
    {"caf\xE9", 4, "caf" BAD},                                   /* Latin-1 */
    {"a\x80z", 3, "a" BAD "z"},                                  /* a stray continuation */
    {"\xC0\xAF", 2, BAD BAD},                                    /* overlong */
    {"\xE0\x80\xAF", 3, BAD BAD BAD},                            /* overlong */
    {"\xED\xA0\x80", 3, BAD BAD BAD},                            /* a surrogate */
    {"\xF4\x90\x80\x80", 4, BAD BAD BAD BAD},                    /* beyond U+10FFFF */
    {"\xE2\x82", 2, BAD BAD},                                    /* cut off */
    {"a\0z", 3, "a" BAD "z"},                                    /* NUL */
    {"\xF4\x8F\xBF\xBF", 4, "\xF4\x8F\xBF\xBF"},                 /* U+10FFFF itself */
    {"\xED\x9F\xBF\xEE\x80\x80", 6, "\xED\x9F\xBF\xEE\x80\x80"}, /* around the surrogates */
};

static void bad_bytes_are_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SAMPLES / sizeof *SAMPLES; i++) {
        const struct sample *sample = &SAMPLES[i];
        struct text text = {0};
        text_add_bytes(&text, sample->bytes, sample->length);
        utf8_repair_json(&text);
        assert_string_equal(text_get(&text), sample->repaired);
        assert_int_equal(text.length, strlen(sample->repaired));
        text_release(&text);
    }
}

static void escapes_that_no_string_can_hold_are_replaced(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {
        {"\"a\\u0000b\"", "\"a\\ufffdb\""},
        {"\"\\\\u0000\"", "\"\\\\u0000\""}, /* a backslash, and then letters */
        {"\"\\\\\\u0000\"", "\"\\\\\\ufffd\""},
        {"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""},
        {"\"\\ud83d\"", "\"\\ufffd\""},
        {"\"\\ude00x\"", "\"\\ufffdx\""},
        {"\"\\ud83d\\ud83d\\ude00\"", "\"\\ufffd\\ud83d\\ude00\""},
        {"\"\\u00e9\\n\\\"\"", "\"\\u00e9\\n\\\"\""},
        {"\"\\u12\"", "\"\\u12\""},
        {"\\", "\\"},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        struct text text = {0};
        text_add(&text, PAIRS[i][0]);
        utf8_repair_json(&text);
        assert_string_equal(text_get(&text), PAIRS[i][1]);
        text_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_bytes_are_replaced),
        cmocka_unit_test(escapes_that_no_string_can_hold_are_replaced),
    };
    return RUN_TESTS(tests);
}
