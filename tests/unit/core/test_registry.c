#include "core/registry.h"

#include "support/unit.h"

static void the_nearest_name_is_suggested(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"doctor", "energy", "run", "demo"};
    assert_string_equal(nearest_name("docter", NAMES, 4), "doctor");
    assert_string_equal(nearest_name("enrgy", NAMES, 4), "energy");
    assert_string_equal(nearest_name("doc", NAMES, 4), "doctor");
    assert_null(nearest_name("frobnicate", NAMES, 4));
}

static const struct driver {
    const char *name;
    int more;
} OPENAI = {"openai", 1}, OLLAMA = {"ollama", 2}, NOTHING = {"null", 3};
static const struct driver *const DRIVERS[] = {&OPENAI, &OLLAMA, &NOTHING, NULL};

static void entries_are_found_by_name(void **state)
{
    (void)state;
    struct error why = {0};
    assert_ptr_equal(registry_find("client", DRIVERS, "null", ERR_USAGE, &why), &NOTHING);
    assert_null(registry_find("client", DRIVERS, "olama", ERR_USAGE, NULL));
    assert_null(registry_find("client", DRIVERS, "olama", ERR_USAGE, &why));
    assert_int_equal(why.code, ERR_USAGE);
    assert_string_equal(why.text, "unknown client 'olama': did you mean 'ollama'?");
    assert_null(registry_find("client", DRIVERS, "frobnicate", ERR_NOT_FOUND, &why));
    assert_int_equal(why.code, ERR_NOT_FOUND);
    assert_string_equal(why.text, "unknown client 'frobnicate' (known: openai, ollama, null)");
}

static void a_long_list_of_names_is_not_printed(void **state)
{
    (void)state;
    const char *names[60];
    struct error why = {0};
    for (size_t i = 0; i < 60; i++)
        names[i] = "something-else";
    assert_int_equal(registry_unknown("model", "x", names, 60, ERR_NOT_FOUND, &why), ERR_NOT_FOUND);
    assert_string_equal(why.text, "unknown model 'x': see `ipw list`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_name_is_suggested),
        cmocka_unit_test(entries_are_found_by_name),
        cmocka_unit_test(a_long_list_of_names_is_not_printed),
    };
    return RUN_TESTS(tests);
}
