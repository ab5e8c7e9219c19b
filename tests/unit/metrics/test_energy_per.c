/* Energy per query, token and second. */
#include "metrics/energy_per.h"

#include <math.h>

#include "core/units.h"
#include "support/unit.h"

static void a_query_counts_if_both_are_known(void **state)
{
    (void)state;
    struct energy_per sum = {0};
    assert_false(is_known(energy_per_of(&sum)));
    energy_per_add(&sum, 10, 4);
    energy_per_add(&sum, UNKNOWN, 100);
    energy_per_add(&sum, 100, UNKNOWN);
    energy_per_add(&sum, 20, 2);
    assert_int_equal(sum.queries, 2);
    assert_true(energy_per_of(&sum) == 5); /* of the sums, not the mean of the ratios */
}

static void nothing_to_divide_by_is_unknown(void **state)
{
    (void)state;
    struct energy_per sum = {0};
    energy_per_add(&sum, 10, 0);
    assert_false(is_known(energy_per_of(&sum)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_counts_if_both_are_known),
        cmocka_unit_test(nothing_to_divide_by_is_unknown),
    };
    return RUN_TESTS(tests);
}
