/* Sorting places in bounded memory: the same order whether they fit or wait in a file. */
#include "rundir/journal/sorter.h"

#include "support/unit.h"

static uint64_t random_next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static void sort_and_check(size_t count, size_t capacity)
{
    struct sorter sorter;
    struct error why = {0};
    uint64_t seed = count, sum = 0;
    assert_int_equal(sorter_init(&sorter, capacity, &why), ERR_OK);
    for (size_t i = 0; i < count; i++) {
        struct place place = {{random_next(&seed) % 5, random_next(&seed) % 7, i}, i};
        sum += place.length;
        assert_int_equal(sorter_add(&sorter, &place, &why), ERR_OK);
    }
    assert_int_equal(sorter_finish(&sorter, &why), ERR_OK);
    struct place before = {{0}, 0}, place;
    bool end = false;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sorter_next(&sorter, &place, &end, &why), ERR_OK);
        assert_false(end);
        for (int k = 0; i > 0 && k < 3; k++) {
            assert_true(before.order[k] <= place.order[k]);
            if (before.order[k] < place.order[k])
                break;
        }
        assert_int_equal(place.order[2], place.length);
        sum -= place.length;
        before = place;
    }
    assert_int_equal(sum, 0);
    assert_int_equal(sorter_next(&sorter, &place, &end, &why), ERR_OK);
    assert_true(end);
    sorter_release(&sorter);
    sorter_release(&sorter); /* harmless */
}

static void test_sorted_in_memory_and_in_a_file(void **state)
{
    (void)state;
    static const struct {
        size_t count, capacity;
    } CASES[] = {{0, 8},     {1, 8},     {8, 8},      {9, 8},      {64, 8},
                 {1000, 10}, {1000, 64}, {5000, 700}, {5000, 5000}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        sort_and_check(CASES[i].count, CASES[i].capacity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sorted_in_memory_and_in_a_file)};
    return RUN_TESTS(tests);
}
