#include "support/unit.h"

#include <math.h>

#include "core/units.h"
#include "stats/pareto.h"

enum { POINTS_MAX = 60 };

/* The definition, pair by pair. */
static bool is_dominated(const double *cost, const double *worth, size_t count, size_t i)
{
    for (size_t k = 0; k < count; k++)
        if (cost[k] <= cost[i] && worth[k] >= worth[i] &&
            (cost[k] < cost[i] || worth[k] > worth[i]))
            return true;
    return false;
}

static void marked_points_are_not_dominated(void **state)
{
    (void)state;
    uint64_t seed = 7;
    size_t marked = 0;
    for (int round = 0; round < 2000; round++) {
        double cost[POINTS_MAX], worth[POINTS_MAX];
        bool on[POINTS_MAX];
        size_t count = (size_t)round % POINTS_MAX;
        for (size_t i = 0; i < count; i++) { /* few distinct values, so that many are equal */
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            cost[i] = (double)(seed >> 60);
            worth[i] = (double)(seed >> 56 & 15);
        }
        pareto_mark(cost, worth, count, on);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(on[i], !is_dominated(cost, worth, count, i));
            marked += on[i];
        }
    }
    assert_true(marked > 2000);
}

static void unknown_points_are_not_optimal_and_dominate_none(void **state)
{
    (void)state;
    const double cost[] = {1, UNKNOWN, 3}, worth[] = {UNKNOWN, 9, 1};
    bool on[3];
    pareto_mark(cost, worth, 3, on);
    assert_false(on[0]);
    assert_false(on[1]);
    assert_true(on[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marked_points_are_not_dominated),
        cmocka_unit_test(unknown_points_are_not_optimal_and_dominate_none),
    };
    return RUN_TESTS(tests);
}
