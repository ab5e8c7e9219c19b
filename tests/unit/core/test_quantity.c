/* Quantities and scopes: names, units, and which scope's energy contains which. */
#include "core/quantity.h"

#include <string.h>

#include "support/unit.h"

static void test_every_quantity_has_name_and_unit(void **state)
{
    (void)state;
    for (int i = 0; i < QTY_COUNT; i++) {
        assert_true(quantity_name(i)[0] != '\0' && quantity_unit(i)[0] != '\0');
        for (int j = 0; j < i; j++)
            assert_string_not_equal(quantity_name(i), quantity_name(j));
    }
    assert_string_equal(quantity_unit(QTY_ENERGY), "J");
    assert_string_equal(quantity_unit(QTY_POWER), "W");
    assert_string_equal(quantity_name(QTY_COUNT), "unknown");
    assert_string_equal(quantity_unit(QTY_COUNT), "");
}

static void test_scope_containment(void **state)
{
    (void)state;
    static const struct {
        enum scope outer, inner;
        bool contains;
    } CASES[] = {
        {SCOPE_PLATFORM, SCOPE_PACKAGE, true},  {SCOPE_PACKAGE, SCOPE_CORE, true},
        {SCOPE_PLATFORM, SCOPE_CORE, true},     {SCOPE_PLATFORM, SCOPE_DRAM, true},
        {SCOPE_PACKAGE, SCOPE_DRAM, false},     {SCOPE_CORE, SCOPE_PACKAGE, false},
        {SCOPE_CORE, SCOPE_UNCORE, false},      {SCOPE_MODULE, SCOPE_GPU, true},
        {SCOPE_MODULE, SCOPE_GRACE_CPU, true},  {SCOPE_GRACE, SCOPE_GPU, false},
        {SCOPE_GPU, SCOPE_GPU_MEMORY, true},    {SCOPE_PLATFORM, SCOPE_GPU, false},
        {SCOPE_BOARD, SCOPE_RAIL, true},        {SCOPE_BOARD, SCOPE_GPU, false},
        {SCOPE_PLATFORM, SCOPE_PLATFORM, true}, {SCOPE_NONE, SCOPE_CORE, false},
        {SCOPE_NONE, SCOPE_NONE, false},        {SCOPE_NODE, SCOPE_NONE, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(scope_contains(CASES[i].outer, CASES[i].inner), CASES[i].contains);
}

static void test_the_node_contains_every_scope(void **state)
{
    (void)state;
    for (int scope = SCOPE_NONE + 1; scope < SCOPE_COUNT; scope++) {
        assert_true(scope_contains(SCOPE_NODE, scope));
        assert_true(scope_contains(scope, scope));
        assert_true(scope_name(scope)[0] != '\0');
        /* No two contain each other: scopes form a tree. */
        for (int other = SCOPE_NONE + 1; other < SCOPE_COUNT; other++)
            if (other != scope)
                assert_false(scope_contains(scope, other) && scope_contains(other, scope));
    }
    assert_string_equal(scope_name(SCOPE_COUNT), "unknown");
}

static void test_throttle_reason_names(void **state)
{
    (void)state;
    char words[80], small[8];
    throttle_words(0, words, sizeof words);
    assert_string_equal(words, "");
    throttle_words(THROTTLE_POWER | THROTTLE_THERMAL, words, sizeof words);
    assert_string_equal(words, "power thermal");
    throttle_words(~0U, words, sizeof words);
    assert_string_equal(words, "power thermal brake limit sync other");
    throttle_words(~0U, small, sizeof small);
    assert_true(strlen(small) < sizeof small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_quantity_has_name_and_unit),
        cmocka_unit_test(test_scope_containment),
        cmocka_unit_test(test_the_node_contains_every_scope),
        cmocka_unit_test(test_throttle_reason_names),
    };
    return RUN_TESTS(tests);
}
