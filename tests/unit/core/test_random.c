/* Hashes and random numbers: both must never change, since runs and datasets are named by them. */
#include "core/random.h"

#include <math.h>

#include "core/hash.h"
#include "support/unit.h"

static void hashes_match_fnv_1a(void **state)
{
    (void)state;
    assert_true(hash_string(HASH_START, "") == UINT64_C(0xCBF29CE484222325));
    assert_true(hash_string(HASH_START, "a") == UINT64_C(0xAF63DC4C8601EC8C));
    assert_true(hash_string(HASH_START, "foobar") == UINT64_C(0x85944171F73967E8));
    assert_true(hash_bytes(hash_string(HASH_START, "foo"), "bar", 3) ==
                UINT64_C(0x85944171F73967E8));
    assert_true(hash_bytes(HASH_START, "\xFF", 1) == hash_string(HASH_START, "\xFF"));
}

static void numbers_match_splitmix64(void **state)
{
    (void)state;
    struct random random = {.state = 1234567};
    assert_true(random_below(&random, UINT64_MAX) == UINT64_C(6457827717110365317));
    assert_true(random_below(&random, UINT64_MAX) == UINT64_C(3203168211198807973));
    assert_true(random_below(&random, UINT64_MAX) == UINT64_C(9817491932198370423));
}

static void seeds_and_streams_give_different_numbers(void **state)
{
    (void)state;
    struct random a = random_from(1, 0), b = random_from(1, 1), c = random_from(2, 0);
    uint64_t first = random_below(&a, UINT64_MAX);
    assert_true(first != random_below(&b, UINT64_MAX) && first != random_below(&c, UINT64_MAX));
    a = random_from(1, 0);
    assert_true(first == random_below(&a, UINT64_MAX));
}

static void numbers_stay_within_their_limits(void **state)
{
    (void)state;
    struct random random = random_seeded(7);
    unsigned seen[5] = {0};
    double sum = 0, squares = 0;
    for (int i = 0; i < 20000; i++) {
        double unit = random_unit(&random);
        assert_true(unit > 0 && unit < 1);
        assert_true(random_index(&random, 3) < 3);
        int64_t between = random_between(&random, -2, 2);
        assert_in_range(between + 2, 0, 4);
        seen[between + 2]++;
        double normal = random_normal(&random);
        sum += normal;
        squares += normal * normal;
    }
    assert_true(random_below(&random, 0) == 0 && random_below(&random, 1) == 0);
    for (size_t i = 0; i < 5; i++)
        assert_near(seen[i], 4000, 300);
    assert_near(sum / 20000, 0, 0.03);
    assert_near(squares / 20000, 1, 0.05);
}

static void a_shuffle_keeps_every_item(void **state)
{
    (void)state;
    struct random random = random_seeded(3);
    int items[100], seen[100] = {0}, moved = 0;
    for (int i = 0; i < 100; i++)
        items[i] = i;
    random_shuffle(&random, items, 100, sizeof *items);
    for (int i = 0; i < 100; i++) {
        seen[items[i]]++;
        moved += items[i] != i;
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    assert_true(moved > 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_match_fnv_1a),
        cmocka_unit_test(numbers_match_splitmix64),
        cmocka_unit_test(seeds_and_streams_give_different_numbers),
        cmocka_unit_test(numbers_stay_within_their_limits),
        cmocka_unit_test(a_shuffle_keeps_every_item),
    };
    return RUN_TESTS(tests);
}
