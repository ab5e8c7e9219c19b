#include "support/unit.h"

#include <math.h>

#include "core/params.h"
#include "core/units.h"
#include "runner/profile/supply.h"

enum { ITEMS = 4 };

/* Takes all items; the keys in order, separated by spaces. */
static void keys_of(struct supply_options options, char *to, size_t size, int64_t *total)
{
    struct params params = {0};
    struct supply supply;
    struct error why = {0};
    size_t length = 0;
    assert_int_equal(params_add(&params, "count=4"), ERR_OK);
    options.dataset = "builtin";
    options.params = &params;
    assert_int_equal(supply_open(&supply, &options, &why), ERR_OK);
    *total = supply.total;
    to[0] = '\0';
    for (bool end = false; !end;) {
        struct query query;
        assert_int_equal(supply_next(&supply, &query, &end, &why), ERR_OK);
        if (end)
            break;
        assert_true(query.item.problem[0] != '\0');
        assert_true(query.due == 0);
        length +=
            (size_t)snprintf(to + length, size - length, "%s%s", length ? " " : "", query.key);
        query_release(&query);
    }
    struct query query; /* the end is permanent */
    bool end = false;
    assert_int_equal(supply_next(&supply, &query, &end, &why), ERR_OK);
    assert_true(end);
    supply_close(&supply);
    params_release(&params);
}

static void items_are_repeated_and_limited(void **state)
{
    (void)state;
    static const struct {
        uint64_t max;
        unsigned repeats;
        int64_t total;
        const char *keys;
    } CASES[] = {
        {UINT64_MAX, 1, 4, "q000000 q000001 q000002 q000003"},
        {2, 1, 2, "q000000 q000001"},
        {9, 1, 4, "q000000 q000001 q000002 q000003"},
        {2, 3, 6, "q000000 q000001 q000000.r1 q000001.r1 q000000.r2 q000001.r2"},
        {1, 1, 1, "q000000"},
    };
    char keys[512];
    int64_t total;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        keys_of((struct supply_options){.max_items = CASES[i].max, .repeats = CASES[i].repeats},
                keys, sizeof keys, &total);
        assert_string_equal(keys, CASES[i].keys);
        assert_int_equal(total, CASES[i].total);
    }
}

static void completed_queries_are_skipped(void **state)
{
    (void)state;
    struct query_set done = {.repeats = 2};
    char keys[512];
    int64_t total;
    query_set_add(&done, 1, 0);
    query_set_add(&done, 1, 0); /* adding twice counts once */
    query_set_add(&done, 3, 1);
    assert_int_equal(done.count, 2);
    query_set_add(&done, UINT64_C(1) << 40, 0); /* a damaged key, which would take 256 GiB */
    assert_int_equal(done.count, 2);
    keys_of((struct supply_options){.max_items = UINT64_MAX, .repeats = 2, .done = &done}, keys,
            sizeof keys, &total);
    assert_string_equal(keys, "q000000 q000002 q000003 q000000.r1 q000001.r1 q000002.r1");
    assert_int_equal(total, 6);
    keys_of((struct supply_options){.max_items = 1, .repeats = 1, .done = &done}, keys, sizeof keys,
            &total);
    assert_int_equal(total, 0); /* more was done than is requested: never negative */
    query_set_release(&done);
}

static void a_completed_run_has_an_empty_supply(void **state)
{
    (void)state;
    struct query_set done = {.repeats = 1};
    char keys[512];
    int64_t total;
    for (uint64_t i = 0; i < ITEMS; i++)
        query_set_add(&done, i, 0);
    keys_of((struct supply_options){.max_items = UINT64_MAX, .repeats = 1, .done = &done}, keys,
            sizeof keys, &total);
    assert_string_equal(keys, "");
    assert_int_equal(total, 0);
    query_set_release(&done);
}

static void sparse_query_sets_are_kept(void **state)
{
    (void)state;
    struct query_set done = {.repeats = 5};
    for (uint64_t i = 0; i < 100000; i += 777)
        query_set_add(&done, i, 2);
    assert_int_equal(done.count, 129);
    uint64_t at = 0, index, last = 0, found = 0;
    unsigned repeat;
    for (; query_set_next(&done, &at, &index, &repeat); found++, last = index)
        assert_true(repeat == 2 && index == 777 * found);
    assert_int_equal(found, 129);
    assert_int_equal(last, 99456);
    query_set_release(&done);
    assert_null(done.bits);
}

enum { ARRIVALS = 4000 };

static void arrivals_of(uint64_t seed, double *gaps)
{
    struct supply supply;
    struct error why = {0};
    nanos before = 0;
    struct params params = {0};
    const struct supply_options options = {.dataset = "null",
                                           .params = &params,
                                           .max_items = UINT64_MAX,
                                           .repeats = 1,
                                           .rate = 50,
                                           .seed = seed};
    assert_int_equal(params_add(&params, "count=4001"), ERR_OK);
    assert_int_equal(supply_open(&supply, &options, &why), ERR_OK);
    for (size_t i = 0; i <= ARRIVALS; i++) {
        struct query query;
        bool end;
        assert_int_equal(supply_next(&supply, &query, &end, &why), ERR_OK);
        assert_false(end);
        assert_true(query.due >= before);
        if (i > 0)
            gaps[i - 1] = seconds(query.due - before);
        before = query.due;
        query_release(&query);
    }
    supply_close(&supply);
    params_release(&params);
}

/* The gaps of a Poisson process are exponential: mean and deviation are 1 / rate, and a fraction of
 * 1 / e is longer than that. */
static void arrivals_are_a_poisson_process(void **state)
{
    (void)state;
    static double gaps[ARRIVALS], again[ARRIVALS], other[ARRIVALS];
    double sum = 0, squares = 0, longer = 0;
    arrivals_of(1, gaps);
    arrivals_of(1, again);
    arrivals_of(2, other);
    assert_memory_equal(gaps, again, sizeof gaps);
    assert_memory_not_equal(gaps, other, sizeof gaps);
    for (size_t i = 0; i < ARRIVALS; i++) {
        sum += gaps[i];
        squares += gaps[i] * gaps[i];
        longer += gaps[i] > 0.02;
    }
    double mean = sum / ARRIVALS;
    assert_near(mean, 0.02, 0.02 * 0.06);
    assert_near(sqrt(squares / ARRIVALS - mean * mean), 0.02, 0.02 * 0.1);
    assert_near(longer / ARRIVALS, exp(-1), 0.03);
}

static void an_unknown_dataset_suggests_the_nearest(void **state)
{
    (void)state;
    struct supply supply;
    struct error why = {0};
    const struct supply_options options = {.dataset = "builtn", .max_items = 1, .repeats = 1};
    assert_true(supply_open(&supply, &options, &why) != ERR_OK);
    assert_contains(why.text, "builtin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_repeated_and_limited),
        cmocka_unit_test(completed_queries_are_skipped),
        cmocka_unit_test(a_completed_run_has_an_empty_supply),
        cmocka_unit_test(sparse_query_sets_are_kept),
        cmocka_unit_test(arrivals_are_a_poisson_process),
        cmocka_unit_test(an_unknown_dataset_suggests_the_nearest),
    };
    return RUN_TESTS(tests);
}
