#include "support/unit.h"

#include "core/random.h"
#include "report/export/lanes.h"
#include "stats/bootstrap.h"

enum { SPANS = 2000 };

static int64_t from[SPANS], to[SPANS];
static size_t lane[SPANS];

static void spans_one_after_the_other_share_a_lane(void **state)
{
    (void)state;
    struct lanes lanes = {0};
    for (int64_t i = 0; i < 10; i++) {
        assert_int_equal(lanes_take(&lanes, 10 * i, 10 * i + 10, &lane[0]), ERR_OK);
        assert_int_equal(lane[0], 0);
    }
    lanes_release(&lanes);
}

/* By as many workers: never more lanes than that, and no two spans at a time on one. */
static void spans_at_a_time_never_share_one(void **state)
{
    (void)state;
    enum { WORKERS = 7 };
    struct random draws = random_seeded(4);
    struct lanes lanes = {0};
    int64_t free_at[WORKERS] = {0}, begun[WORKERS];
    for (size_t w = 0; w < WORKERS; w++) {
        begun[w] = (int64_t)random_index(&draws, 50);
        free_at[w] = begun[w] + 1 + (int64_t)random_index(&draws, 100);
    }
    for (size_t i = 0; i < SPANS; i++) { /* in the order of their ends */
        size_t next = 0;
        for (size_t w = 1; w < WORKERS; w++)
            next = free_at[w] < free_at[next] ? w : next;
        from[i] = begun[next];
        to[i] = free_at[next];
        begun[next] = to[i] + (int64_t)random_index(&draws, 3);
        free_at[next] = begun[next] + 1 + (int64_t)random_index(&draws, 100);
        assert_int_equal(lanes_take(&lanes, from[i], to[i], &lane[i]), ERR_OK);
    }
    assert_int_equal(lanes.count, WORKERS);
    for (size_t i = 0; i < SPANS; i++)
        for (size_t j = i + 1; j < SPANS && j < i + 200; j++)
            assert_true(lane[i] != lane[j] || from[j] >= to[i]);
    lanes_release(&lanes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_one_after_the_other_share_a_lane),
        cmocka_unit_test(spans_at_a_time_never_share_one),
    };
    return RUN_TESTS(tests);
}
