/* test: valgrind */
/* The JSON writer: exact output, null for unknown values, valid UTF-8 for any input. */
#include "core/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "support/unit.h"

static void nested_values_are_separated_by_commas(void **state)
{
    (void)state;
    struct text text = {0};
    struct json json;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    json_array(&json, "empty");
    json_array_end(&json);
    json_array(&json, "a");
    json_integer(&json, NULL, 1);
    json_object(&json, NULL);
    json_bool(&json, "t", true);
    json_bool(&json, "f", false);
    json_object_end(&json);
    json_null(&json, NULL);
    json_array_end(&json);
    json_string(&json, "s", "x");
    json_string(&json, "none", NULL);
    json_object_end(&json);
    assert_string_equal(text_get(&text),
                        "{\"empty\":[],\"a\":[1,{\"t\":true,\"f\":false},null],\"s\":\"x\","
                        "\"none\":null}");
    text_release(&text);
}

static void pretty_output_is_indented(void **state)
{
    (void)state;
    struct text text = {0};
    struct json json;
    json_init(&json, &text, true);
    json_object(&json, NULL);
    json_integer(&json, "n", -3);
    json_array(&json, "a");
    json_integer(&json, NULL, 1);
    json_integer(&json, NULL, 2);
    json_array_end(&json);
    json_object(&json, "o");
    json_object_end(&json);
    json_object_end(&json);
    assert_string_equal(text_get(&text),
                        "{\n  \"n\": -3,\n  \"a\": [\n    1,\n    2\n  ],\n  \"o\": {}\n}\n");
    text_release(&text);
}

static void numbers_are_formatted(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } CASES[] = {
        {0, "0"},
        {1.5, "1.5"},
        {-2, "-2"},
        {1e-12, "1e-12"},
        {1e300, "1e+300"},
        {231.6, "231.6"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
        {1763176562.27664, "1763176562.27664"}, /* a time stamp keeps its digits */
        {115.62271679880291, "115.62271679880291"},
        {0.1 + 0.2, "0.30000000000000004"},
        {9007199254740991, "9007199254740991"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text text = {0};
        struct json json;
        json_init(&json, &text, false);
        json_number(&json, NULL, CASES[i].value);
        assert_string_equal(text_get(&text), CASES[i].text);
        text_release(&text);
    }
}

/* Each of these characters alone among plain ones, at each place. */
static void escapes_are_found_at_every_place(void **state)
{
    (void)state;
    static const char PLAIN[] = "abcdefghijklmnopqrs";
    struct text text = {0};
    for (int c = 1; c < 0x80; c++)
        for (size_t place = 0; place < strlen(PLAIN); place++) {
            char given[sizeof PLAIN], escape[8], wanted[64];
            struct json json;
            memcpy(given, PLAIN, sizeof PLAIN);
            given[place] = (char)c;
            snprintf(escape, sizeof escape,
                     c == '"' || c == '\\'   ? "\\%c"
                     : c == '\n'             ? "\\n"
                     : c == '\t'             ? "\\t"
                     : c < 0x20 || c == 0x7F ? "\\u%04x"
                                             : "%c",
                     c);
            snprintf(wanted, sizeof wanted, "\"%.*s%s%s\"", (int)place, PLAIN, escape,
                     PLAIN + place + 1);
            text_clear(&text);
            json_init(&json, &text, false);
            json_string(&json, NULL, given);
            assert_string_equal(text_get(&text), wanted);
        }
    text_release(&text);
}

static void integers_are_formatted(void **state)
{
    (void)state;
    struct text text = {0};
    struct json json;
    json_init(&json, &text, false);
    json_array(&json, NULL);
    json_integer(&json, NULL, INT64_MIN);
    json_integer(&json, NULL, INT64_MAX);
    json_array_end(&json);
    assert_string_equal(text_get(&text), "[-9223372036854775808,9223372036854775807]");
    text_release(&text);
}

#define BAD "\xEF\xBF\xBD"

static void strings_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *raw, *quoted;
    } CASES[] = {
        {"", "\"\""},
        {"a \"b\" \\c", "\"a \\\"b\\\" \\\\c\""},
        {"\n\t\r\x01\x1f\x7f", "\"\\n\\t\\u000d\\u0001\\u001f\\u007f\""},
        {"µ €  \xF0\x9F\x94\x8B", "\"µ €  \xF0\x9F\x94\x8B\""},
        {"a\x80z", "\"a" BAD "z\""},                     /* a continuation byte alone */
        {"\xC3", "\"" BAD "\""},                         /* cut short by the end */
        {"\xE2\x82", "\"" BAD BAD "\""},                 /* the same */
        {"\xC0\xAF", "\"" BAD BAD "\""},                 /* overlong */
        {"\xE0\x80\x80", "\"" BAD BAD BAD "\""},         /* overlong */
        {"\xED\xA0\x80", "\"" BAD BAD BAD "\""},         /* a surrogate */
        {"\xF4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""}, /* beyond Unicode */
        {"\xFF\xFE", "\"" BAD BAD "\""},
        {"\xED\x9F\xBF\xF4\x8F\xBF\xBF", "\"\xED\x9F\xBF\xF4\x8F\xBF\xBF\""}, /* the last valid */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text text = {0};
        struct json json;
        json_init(&json, &text, false);
        json_object(&json, NULL);
        json_integer(&json, CASES[i].raw, 1); /* keys are quoted the same way */
        json_string(&json, "v", CASES[i].raw);
        json_object_end(&json);
        char expected[256];
        snprintf(expected, sizeof expected, "{%s:1,\"v\":%s}", CASES[i].quoted, CASES[i].quoted);
        assert_string_equal(text_get(&text), expected);
        text_release(&text);
    }
}

static void end_of_a_value_is_found(void **state)
{
    (void)state;
    const struct {
        const char *text;
        long length; /* length of the value; -1: incomplete */
    } CASES[] = {
        {"\"a\\\"b\",1", 6}, {"\"a", -1},  {"\"a\\\"", -1}, {"\"a\\", -1}, {"{\"a\":[1,{}]}x", 12},
        {"{\"}\":1}", 7},    {"[[1]", -1}, {"12,3", 2},     {"true}", 4},  {"null", 4},
        {"[\"]", -1},        {"{}{}", 2},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        size_t length = strlen(CASES[i].text);
        char *bytes = malloc(length); /* without a NUL, so that reading beyond it is detected */
        assert_non_null(bytes);
        memcpy(bytes, CASES[i].text, length);
        const char *end = json_skip_value(bytes, bytes + length);
        assert_int_equal(end ? end - bytes : -1, CASES[i].length);
        free(bytes);
    }
}

static void escaped_code_units_are_decoded(void **state)
{
    (void)state;
    const struct {
        const char *text;
        long unit;
    } CASES[] = {{"\\u0041", 0x41}, {"\\uD83d!", 0xD83D}, {"\\u004", -1}, {"\\u00 4", -1},
                 {"\\u+041", -1},   {"\\n00410", -1},     {"u00410", -1}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(json_escaped_unit(CASES[i].text, CASES[i].text + strlen(CASES[i].text)),
                         CASES[i].unit);
    assert_true(json_is_high_surrogate(0xD83D) && !json_is_low_surrogate(0xD83D));
    assert_true(json_is_low_surrogate(0xDC00) && !json_is_high_surrogate(0xDC00));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_values_are_separated_by_commas),
        cmocka_unit_test(pretty_output_is_indented),
        cmocka_unit_test(numbers_are_formatted),
        cmocka_unit_test(escapes_are_found_at_every_place),
        cmocka_unit_test(integers_are_formatted),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(end_of_a_value_is_found),
        cmocka_unit_test(escaped_code_units_are_decoded),
    };
    return RUN_TESTS(tests);
}
