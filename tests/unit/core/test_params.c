/* test: valgrind */
/* User parameters: splitting, replacing, typed access, errors. */
#include "support/unit.h"

#include <math.h>
#include <string.h>

#include "core/params.h"

static void arguments_are_split_into_keys_and_values(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        const char *expected; /* "key=value;" in order */
    } CASES[] = {
        {"a=1", "a=1;"},
        {"a=1, b=2", "a=1;b=2;"},
        {" a = 1 ,b = two words ", "a=1;b=two words;"},
        {"a=1=2", "a=1=2;"},
        {"flag", "flag=;"},
        {"a=", "a=;"},
        {"=5,a=1", "a=1;"},
        {",,", ""},
        {"", ""},
        {"a=1,b=2,a=3", "a=3;b=2;"},
        {"stop=[1\\,2],b=1", "stop=[1,2];b=1;"},
        {"path=C:\\dir", "path=C:\\dir;"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct params params = {0};
        char seen[128] = "";
        assert_int_equal(params_add(&params, CASES[i].words), ERR_OK);
        for (size_t k = 0; k < params.count; k++)
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s=%s;", params.items[k].key,
                     params.items[k].value);
        assert_string_equal(seen, CASES[i].expected);
        params_release(&params);
    }
}

static void later_arguments_replace_earlier_ones(void **state)
{
    (void)state;
    struct params one = {0}, two = {0};
    assert_int_equal(params_add(&one, "a=1,b=2"), ERR_OK);
    assert_int_equal(params_add(&two, "b=3,c=4"), ERR_OK);
    assert_int_equal(params_copy(&one, &two), ERR_OK);
    params_release(&two);
    assert_string_equal(params_get(&one, "a"), "1");
    assert_string_equal(params_get(&one, "b"), "3");
    assert_string_equal(params_get(&one, "c"), "4");
    assert_null(params_get(&one, "d"));
    assert_null(params_get(NULL, "a"));
    assert_int_equal(params_copy(&one, NULL), ERR_OK);
    assert_int_equal(one.count, 3);
    params_release(&one);
    assert_int_equal(one.count, 0);
}

static void many_parameters_are_kept(void **state)
{
    (void)state;
    struct params params = {0};
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(params_set(&params, key, key + 1), ERR_OK);
    }
    assert_int_equal(params.count, 100);
    assert_string_equal(params_get(&params, "k77"), "77");
    params_release(&params);
}

static void values_are_read_by_type(void **state)
{
    (void)state;
    static const char *const WORDS[] = {"first", "second", "third", NULL};
    static const struct {
        const char *key;
        bool otherwise, expected;
    } TRUTHS[] = {{"yes", false, true},
                  {"off", true, false},
                  {"one", false, true},
                  {"none", true, true},
                  {"none", false, false}};
    struct params params = {0};
    assert_int_equal(
        params_add(&params, "n=42,x=2.5,yes=Yes,off=off,one=1,word=second,empty=,bad=4x"), ERR_OK);
    struct params_reader read = {&params, NULL, ERR_OK}, none = {0};
    assert_int_equal(params_count(&read, "n", 7, 0, 100), 42);
    assert_int_equal(params_count(&read, "none", 7, 10, 100), 7);
    assert_near(params_number(&read, "x", 0, 0, 10), 2.5, 0);
    assert_near(params_number(&none, "x", 1.5, 0, 10), 1.5, 0);
    assert_int_equal(params_word(&read, "word", WORDS, 0), 1);
    assert_int_equal(params_word(&read, "none", WORDS, 2), 2);
    assert_int_equal(params_word(&read, "empty", WORDS, 2), 2);
    for (size_t i = 0; i < sizeof TRUTHS / sizeof *TRUTHS; i++)
        assert_int_equal(params_bool(&read, TRUTHS[i].key, TRUTHS[i].otherwise),
                         TRUTHS[i].expected);
    assert_int_equal(read.err, ERR_OK);
    params_release(&params);
}

enum value { COUNT, NUMBER, BOOL, WORD };

/* Returns whether the value is the default. */
static bool read_refused(struct params_reader *read, enum value type)
{
    static const char *const WORDS[] = {"auto", "on", "off", NULL};
    switch (type) {
    case COUNT:
        return params_count(read, "k", 7, 2, 9) == 7;
    case NUMBER:
        return params_number(read, "k", 0.5, 0, INFINITY) == 0.5;
    case BOOL:
        return params_bool(read, "k", true);
    default:
        return params_word(read, "k", WORDS, 2) == 2;
    }
}

static void an_invalid_value_says_what_is_expected(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        enum value type;
        const char *message;
    } CASES[] = {
        {"k=4x", COUNT, "k=4x: expected a whole number, 0 or more"},
        {"k=-1", COUNT, "k=-1: expected a whole number, 0 or more"},
        {"k=1", COUNT, "k=1: expected 2 to 9"},
        {"k=10", COUNT, "k=10: expected 2 to 9"},
        {"k=4x", NUMBER, "k=4x: expected a number"},
        {"k=-1", NUMBER, "k=-1: expected 0 or more"},
        {"k=maybe", BOOL, "k=maybe: expected true or false"},
        {"k=no", WORD, "k=no: expected auto, on or off"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct params params = {0};
        struct error why = {0};
        assert_int_equal(params_add(&params, CASES[i].words), ERR_OK);
        struct params_reader read = {&params, &why, ERR_OK};
        assert_true(read_refused(&read, CASES[i].type));
        assert_int_equal(read.err, ERR_USAGE);
        assert_string_equal(why.text, CASES[i].message);
        params_release(&params);
    }
}

static void the_first_invalid_value_is_reported(void **state)
{
    (void)state;
    struct params params = {0};
    struct error why = {0};
    assert_int_equal(params_add(&params, "a=x, b=y"), ERR_OK);
    struct params_reader read = {&params, &why, ERR_OK};
    params_count(&read, "b", 0, 0, 1);
    params_count(&read, "a", 0, 0, 1);
    assert_string_equal(why.text, "b=y: expected a whole number, 0 or more");
    params_release(&params);
}

static void an_unknown_key_suggests_the_nearest(void **state)
{
    (void)state;
    static const struct param_spec SPECS[] = {
        {"endpoint", "NAME", ""}, {"header.*", "VALUE", ""}, {NULL, NULL, NULL}};
    static const struct {
        const char *words;
        enum err expected;
        const char *says;
    } CASES[] = {
        {"endpoint=1", ERR_OK, ""},
        {"header.X-A=1,endpoint=2", ERR_OK, ""},
        {"", ERR_OK, ""},
        {"header.=1", ERR_USAGE, "'header.'"},
        {"header=1", ERR_USAGE, "'header'"},
        {"endpoint2=1", ERR_USAGE, "did you mean 'endpoint'?"},
        {"Endpoint=1", ERR_USAGE, "did you mean 'endpoint'?"},
        {"temperature=1", ERR_USAGE, "client x has no parameter 'temperature'"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct params params = {0};
        struct error why = {0};
        assert_int_equal(params_add(&params, CASES[i].words), ERR_OK);
        assert_int_equal(params_check(&params, SPECS, "client x", &why), CASES[i].expected);
        assert_contains(why.text, CASES[i].says);
        params_release(&params);
    }
    struct params one = {0};
    assert_int_equal(params_check(NULL, SPECS, "client x", NULL), ERR_OK);
    assert_int_equal(params_add(&one, "a=1"), ERR_OK);
    assert_int_equal(params_check(&one, NULL, "client x", NULL), ERR_USAGE);
    params_release(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_split_into_keys_and_values),
        cmocka_unit_test(later_arguments_replace_earlier_ones),
        cmocka_unit_test(many_parameters_are_kept),
        cmocka_unit_test(values_are_read_by_type),
        cmocka_unit_test(an_invalid_value_says_what_is_expected),
        cmocka_unit_test(the_first_invalid_value_is_reported),
        cmocka_unit_test(an_unknown_key_suggests_the_nearest),
    };
    return RUN_TESTS(tests);
}
