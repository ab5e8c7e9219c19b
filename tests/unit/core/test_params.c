/* test: valgrind */
/* User parameters: splitting, replacing, typed access, errors. */
#include "support/unit.h"

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
    struct params params = {0};
    struct error why;
    uint64_t count;
    double number;
    bool truth;
    assert_int_equal(params_add(&params, "n=42,x=2.5,yes=Yes,off=off,one=1,bad=4x,neg=-1"), ERR_OK);
    assert_int_equal(params_count(&params, "n", 7, &count, &why), ERR_OK);
    assert_int_equal(count, 42);
    assert_int_equal(params_count(&params, "none", 7, &count, &why), ERR_OK);
    assert_int_equal(count, 7);
    assert_int_equal(params_number(&params, "x", 0, &number, &why), ERR_OK);
    assert_near(number, 2.5, 0);
    assert_int_equal(params_number(NULL, "x", 1.5, &number, &why), ERR_OK);
    assert_near(number, 1.5, 0);
    static const struct {
        const char *key;
        bool otherwise, expected;
    } TRUTHS[] = {{"yes", false, true},
                  {"off", true, false},
                  {"one", false, true},
                  {"none", true, true},
                  {"none", false, false}};
    for (size_t i = 0; i < sizeof TRUTHS / sizeof *TRUTHS; i++) {
        assert_int_equal(params_bool(&params, TRUTHS[i].key, TRUTHS[i].otherwise, &truth, &why),
                         ERR_OK);
        assert_int_equal(truth, TRUTHS[i].expected);
    }
    assert_int_equal(params_count(&params, "bad", 7, &count, &why), ERR_USAGE);
    assert_string_equal(why.text, "bad=4x: expected a whole number, 0 or more");
    assert_int_equal(params_count(&params, "neg", 7, &count, &why), ERR_USAGE);
    assert_int_equal(params_number(&params, "bad", 0, &number, &why), ERR_USAGE);
    assert_string_equal(why.text, "bad=4x: expected a number");
    assert_int_equal(params_bool(&params, "bad", false, &truth, &why), ERR_USAGE);
    assert_contains(why.text, "expected true or false");
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
        cmocka_unit_test(an_unknown_key_suggests_the_nearest),
    };
    return RUN_TESTS(tests);
}
