/* test: valgrind */
/* Reading JSON: what is accepted and rejected, paths, types, merging. */
#include "support/unit.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "core/jv.h"

static struct jv *parse(const char *text)
{
    struct jv *value;
    struct error why;
    if (jv_parse(text, strlen(text), &value, &why))
        fail_msg("%s: %s", text, why.text);
    return value;
}

static void exactly_one_value_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *says; /* NULL: accepted */
    } CASES[] = {
        {"{}", 2, NULL},
        {" \t\r\n[1] \n", 8, NULL},
        {"null", 4, NULL},
        {"\"a\"xyz", 3, NULL}, /* the length counts, not a NUL */
        {"", 0, "not JSON"},
        {"  ", 2, "not JSON"},
        {"{", 1, "not JSON"},
        {"{\"a\":1,}", 8, "not JSON at byte 7"},
        {"[1,]", 4, "not JSON at byte 3"},
        {"{\"a\" 1}", 7, "not JSON"},
        {"{\n\n\"a\": x}", 10, "not JSON at byte 8, line 3"},
        {"{} {}", 5, "text after the JSON value at byte 2"},
        {"1 2", 3, "text after"},
        {"[DONE]", 6, "not JSON"},
        {"\"a\0b\"", 5, "a NUL at byte 2"},
        {"{}\0", 3, "a NUL at byte 2"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct jv *value = NULL;
        struct error why = {0};
        enum err err = jv_parse(CASES[i].bytes, CASES[i].length, &value, &why);
        assert_int_equal(err, CASES[i].says ? ERR_BAD_VALUE : ERR_OK);
        assert_contains(why.text, CASES[i].says ? CASES[i].says : "");
        assert_int_equal(value == NULL, CASES[i].says != NULL);
        jv_free(value);
    }
}

static void truncated_text_is_rejected(void **state)
{
    (void)state;
    static const char WHOLE[] = "{\"a\":[1,2.5e3,\"x\\u00e9\\n\"],\"b\":{\"c\":null,\"d\":true}}";
    for (size_t length = 0; length < sizeof WHOLE - 1; length++) {
        struct jv *value;
        assert_int_equal(jv_parse(WHOLE, length, &value, NULL), ERR_BAD_VALUE);
        assert_null(value);
    }
}

static void strings_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *json, *expected;
    } CASES[] = {
        {"\"\"", ""},
        {"\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "a\"\\/\b\f\n\r\t"},
        {"\"\\u00e9\\u20ac\\ud83c\\udf89\"", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\x89"},
        {"\"\xC3\xA9\"", "\xC3\xA9"},
        /* a NUL would end a C string: it is replaced by U+FFFD */
        {"\"a\\u0000b\"", "a\xEF\xBF\xBD"
                          "b"},
        {"\"\\u0000\\u0000\"", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\"\\ud83d\"", "\xEF\xBF\xBD"}, /* half of a surrogate pair */
        {"\"\\ude00\\ud83d!\"", "\xEF\xBF\xBD\xEF\xBF\xBD!"},
        {"\"\\ud83d\\ude00\\ud83d\\ud83d\\ude00\"", "\xF0\x9F\x98\x80\xEF\xBF\xBD\xF0\x9F\x98\x80"},
        {"\"\\\\ud83d\"", "\\ud83d"},
        {"\"\\\\u0000\"", "\\u0000"}, /* an escaped backslash, then letters */
        {"\"\\\\\\u0000\"", "\\\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct jv *value = parse(CASES[i].json);
        assert_string_equal(jv_text(value), CASES[i].expected);
        jv_free(value);
    }
}

static void accessors_check_the_type(void **state)
{
    (void)state;
    struct jv *v = parse("{\"s\":\"1\",\"n\":1.5,\"i\":-3,\"t\":true,\"z\":null,\"a\":[],"
                         "\"o\":{},\"big\":9007199254740992,\"huge\":1e300}");
    int64_t integer = 7;
    assert_string_equal(jv_text(jv_get(v, "s")), "1");
    assert_null(jv_text(jv_get(v, "n")));
    assert_near(jv_number(jv_get(v, "n")), 1.5, 0);
    assert_false(is_known(jv_number(jv_get(v, "s"))));
    assert_false(is_known(jv_number(NULL)));
    assert_false(jv_integer(jv_get(v, "n"), &integer));
    assert_false(jv_integer(jv_get(v, "s"), &integer));
    assert_false(jv_integer(jv_get(v, "huge"), &integer));
    assert_int_equal(integer, 7);
    assert_true(jv_integer(jv_get(v, "i"), &integer));
    assert_int_equal(integer, -3);
    assert_true(jv_integer(jv_get(v, "big"), &integer));
    assert_true(integer == INT64_C(9007199254740992));
    assert_true(jv_bool(jv_get(v, "t"), false));
    assert_true(jv_bool(jv_get(v, "i"), true));
    assert_false(jv_bool(NULL, false));
    assert_true(jv_is_bool(jv_get(v, "t")) && !jv_is_bool(jv_get(v, "i")));
    assert_true(jv_is_null(jv_get(v, "z")) && jv_is_null(jv_get(v, "none")) && jv_is_null(NULL));
    assert_false(jv_is_null(jv_get(v, "a")));
    assert_true(jv_is_array(jv_get(v, "a")) && !jv_is_array(jv_get(v, "o")));
    assert_true(jv_is_object(jv_get(v, "o")) && !jv_is_object(NULL));
    assert_null(jv_get(jv_get(v, "a"), "x"));
    assert_null(jv_get(v, "S"));
    jv_free(v);
}

static void paths_traverse_objects_and_arrays(void **state)
{
    (void)state;
    struct jv *v = parse("{\"choices\":[{\"delta\":{\"content\":\"hi\"}},{\"x\":[[],[5]]}]}");
    static const char *const MISSING[] = {
        "choices.2", "choices.x", "choices.0.delta.none", "choices.0.delta.content.x",
        "none.0",    "choices.-1"};
    assert_string_equal(jv_text(jv_path(v, "choices.0.delta.content")), "hi");
    assert_near(jv_number(jv_path(v, "choices.1.x.1.0")), 5, 0);
    assert_ptr_equal(jv_path(v, ""), v);
    for (size_t i = 0; i < sizeof MISSING / sizeof *MISSING; i++)
        assert_null(jv_path(v, MISSING[i]));
    assert_null(jv_path(NULL, "a"));
    jv_free(v);
}

static void children_are_in_order(void **state)
{
    (void)state;
    struct jv *v = parse("{\"b\":1,\"a\":2,\"c\":[7,8]}");
    char keys[8] = "";
    for (const struct jv *c = jv_first(v); c; c = jv_next(c))
        strncat(keys, jv_key(c), sizeof keys - strlen(keys) - 1);
    assert_string_equal(keys, "bac");
    assert_int_equal(jv_count(v), 3);
    const struct jv *list = jv_get(v, "c");
    assert_int_equal(jv_count(list), 2);
    assert_null(jv_key(jv_first(list)));
    assert_near(jv_number(jv_next(jv_first(list))), 8, 0);
    assert_null(jv_next(jv_next(jv_first(list))));
    assert_null(jv_first(jv_get(v, "a")));
    assert_int_equal(jv_count(NULL), 0);
    assert_null(jv_next(NULL));
    assert_null(jv_key(NULL));
    jv_free(v);
}

static void objects_are_merged_by_key(void **state)
{
    (void)state;
    static const struct {
        const char *into, *from, *expected;
    } CASES[] = {
        {"{}", "{\"a\":1}", "{\"a\":1}"},
        {"{\"a\":1,\"b\":2}", "{\"b\":3}", "{\"a\":1,\"b\":3}"},
        {"{\"o\":{\"x\":1,\"y\":2}}", "{\"o\":{\"y\":5,\"z\":6}}",
         "{\"o\":{\"x\":1,\"y\":5,\"z\":6}}"},
        {"{\"o\":{\"x\":1}}", "{\"o\":[1]}", "{\"o\":[1]}"},
        {"{\"o\":[1,2]}", "{\"o\":{\"x\":1}}", "{\"o\":{\"x\":1}}"},
        {"{\"a\":1}", "{\"a\":null}", "{\"a\":null}"},
        {"{\"a\":1}", "{\"A\":2}", "{\"a\":1,\"A\":2}"},
        {"{\"a\":1}", "{}", "{\"a\":1}"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct jv *into = parse(CASES[i].into), *from = parse(CASES[i].from);
        struct text out = {0};
        assert_int_equal(jv_merge(into, from), ERR_OK);
        jv_free(from); /* nothing of it is still referenced */
        assert_int_equal(jv_print(into, &out), ERR_OK);
        assert_string_equal(text_get(&out), CASES[i].expected);
        jv_free(into);
        text_release(&out);
    }
}

static void setting_a_member_keeps_its_position(void **state)
{
    (void)state;
    struct jv *object = parse("{\"a\":1,\"b\":[2],\"c\":{\"d\":3}}");
    struct text out = {0};
    assert_int_equal(jv_put_text(object, "b", "x\n"), ERR_OK);
    assert_int_equal(jv_put_number(object, "a", 0.1), ERR_OK);
    assert_int_equal(jv_put_bool(object, "e", true), ERR_OK);
    assert_int_equal(jv_put_number(jv_put_object(object, "c"), "f", UNKNOWN), ERR_OK);
    assert_int_equal(jv_put_text(jv_put_object(object, "e"), "g", NULL), ERR_OK);
    assert_int_equal(jv_print(object, &out), ERR_OK);
    assert_string_equal(text_get(&out), "{\"a\":0.1,\"b\":\"x\\n\",\"c\":{\"d\":3,\"f\":null},"
                                        "\"e\":{\"g\":null}}");
    jv_free(object);
    text_release(&out);
}

static void an_index_finds_every_member(void **state)
{
    (void)state;
    struct jv *object = parse("{\"a\":1,\"\":2,\"a\":3}"), *one = parse("[7]"), *two = parse("8");
    struct jv_index index;
    assert_int_equal(jv_index_init(&index, object), ERR_OK);
    assert_ptr_equal(jv_index_get(&index, "a"), jv_get(object, "a")); /* the first of duplicates */
    assert_ptr_equal(jv_index_get(&index, ""), jv_get(object, ""));
    assert_null(jv_index_get(&index, "A"));
    char key[16];
    for (unsigned i = 0; i < 1000; i++) { /* more than its initial capacity */
        str_format(key, sizeof key, "key%u", i);
        assert_int_equal(jv_index_put(&index, object, key, one), ERR_OK);
    }
    for (unsigned i = 0; i < 1000; i += 2) {
        str_format(key, sizeof key, "key%u", i);
        assert_int_equal(jv_index_put(&index, object, key, two), ERR_OK);
    }
    assert_int_equal(jv_count(object), 1003);
    for (unsigned i = 0; i < 1000; i++) {
        str_format(key, sizeof key, "key%u", i);
        const struct jv *member = jv_index_get(&index, key);
        assert_ptr_equal(member, jv_get(object, key));
        assert_true(i % 2 ? jv_number(jv_first(member)) == 7 : jv_number(member) == 8);
    }
    jv_index_release(&index);
    assert_int_equal(jv_index_init(&index, NULL), ERR_OK);
    assert_null(jv_index_get(&index, "a"));
    jv_index_release(&index);
    jv_free(object);
    jv_free(one);
    jv_free(two);
}

/* Every digit is kept where a double has fewer; the double is the nearest one. */
static void long_integers_keep_their_digits(void **state)
{
    (void)state;
    static const char TEXT[] =
        "{\"12345678901234567\":[9007199254740993,-9007199254740993,\"\\\"98765432109876543\"],"
        "\"a\":{\"b\":9223372036854775807,\"c\":-9223372036854775808,\"d\":9223372036854775808},"
        "\"e\":18446744073709551615,\"f\":123456789012345678901234567890,"
        "\"g\":[0.12345678901234566,1.2345678901234566e+25,1e+300,5]}";
    struct jv *value = parse(TEXT), *copy = jv_copy(value);
    struct text out = {0};
    int64_t integer = 0;
    assert_int_equal(jv_print(copy, &out), ERR_OK);
    assert_string_equal(text_get(&out), TEXT);
    assert_true(jv_integer(jv_path(value, "12345678901234567.1"), &integer));
    assert_true(integer == INT64_C(-9007199254740993));
    assert_true(jv_integer(jv_path(value, "a.b"), &integer) && integer == INT64_MAX);
    assert_true(jv_integer(jv_path(value, "a.c"), &integer) && integer == INT64_MIN);
    assert_false(jv_integer(jv_path(value, "a.d"), &integer));
    assert_true(integer == INT64_MIN);
    assert_true(jv_number(jv_path(value, "a.d")) == 9223372036854775808.0);
    assert_false(jv_integer(jv_path(value, "g.1"), &integer));
    jv_free(value);
    jv_free(copy);
    text_release(&out);
}

static void values_are_built(void **state)
{
    (void)state;
    struct jv *object = jv_new_object(), *list = jv_new_array();
    struct jv *const VALUES[] = {
        jv_new_text(NULL),
        jv_new_text(""),
        jv_new_bytes("a\0\xFF\"b", 4),
        jv_new_number(0.1),
        jv_new_number(UNKNOWN),
        jv_new_number(INFINITY),
        jv_new_integer(-7),
        jv_new_integer(INT64_MIN),
        jv_new_unsigned(UINT64_MAX),
        jv_new_unsigned((UINT64_C(1) << 53) + 1),
        jv_new_bool(true),
    };
    struct text out = {0};
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++)
        assert_int_equal(jv_add(list, NULL, VALUES[i]), ERR_OK);
    assert_int_equal(jv_add(object, "caf\xE9", list), ERR_OK);
    assert_int_equal(jv_add(object, "none", NULL), ERR_NO_MEMORY);
    assert_int_equal(jv_add(NULL, "none", jv_new_bool(false)), ERR_NO_MEMORY);
    assert_int_equal(jv_print(object, &out), ERR_OK);
    assert_string_equal(
        text_get(&out),
        "{\"caf\xEF\xBF\xBD\":[null,\"\",\"a\xEF\xBF\xBD\xEF\xBF\xBD\\\"\",0.1,null,"
        "null,-7,-9223372036854775808,18446744073709551615,9007199254740993,true]}");
    jv_free(object);
    text_release(&out);
}

static void printed_values_round_trip(void **state)
{
    (void)state;
    static const char *const CASES[] = {
        "{}",
        "[]",
        "null",
        "true",
        "\"\"",
        "0",
        "-0",
        "0.1",
        "8.398400000331208e-06", /* 15 digits would not round-trip */
        "9.170000000000001e-07",
        "1.7976931348623157e+308",
        "-12",
        "1000000000000",
        "9007199254740992",
        "[1,[2,[]],{\"a\":{}}]",
        "{\"a b\":\"\\\"x\\\\\\n\",\"\xC3\xA9\":[null,false]}",
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct jv *value = parse(CASES[i]);
        struct text out = {0};
        assert_int_equal(jv_print(value, &out), ERR_OK);
        assert_string_equal(text_get(&out), CASES[i]);
        jv_free(value);
        text_release(&out);
    }
}

static void printing_supports_the_depth_of_parsing(void **state)
{
    (void)state;
    enum { DEPTH = 500 };
    char nested[2 * DEPTH + 1];
    memset(nested, '[', DEPTH);
    memset(nested + DEPTH, ']', DEPTH);
    nested[sizeof nested - 1] = '\0';
    struct jv *value = parse(nested);
    struct text out = {0};
    assert_int_equal(jv_print(value, &out), ERR_OK);
    assert_string_equal(text_get(&out), nested);
    jv_free(value);
    text_release(&out);
}

static void freeing_null_is_harmless(void **state)
{
    (void)state;
    jv_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_one_value_is_accepted),
        cmocka_unit_test(truncated_text_is_rejected),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(accessors_check_the_type),
        cmocka_unit_test(paths_traverse_objects_and_arrays),
        cmocka_unit_test(children_are_in_order),
        cmocka_unit_test(objects_are_merged_by_key),
        cmocka_unit_test(setting_a_member_keeps_its_position),
        cmocka_unit_test(an_index_finds_every_member),
        cmocka_unit_test(long_integers_keep_their_digits),
        cmocka_unit_test(values_are_built),
        cmocka_unit_test(printed_values_round_trip),
        cmocka_unit_test(printing_supports_the_depth_of_parsing),
        cmocka_unit_test(freeing_null_is_harmless),
    };
    return RUN_TESTS(tests);
}
