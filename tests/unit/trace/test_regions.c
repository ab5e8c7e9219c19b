/* Regions of a program: how they nest, and that a million of them cost no more each than a
 * thousand. */
#include "trace/regions.h"

#include <malloc.h>

#include "support/unit.h"

/* Threads are distinguished by their id only. */
static pthread_t thread_id(unsigned long n)
{
    return (pthread_t)(0x7f0000000000 + n * 0x801000);
}

static int begin(struct regions *regions, unsigned long in, const char *name)
{
    int number;
    assert_int_equal(regions_begin(regions, thread_id(in), name, &number), ERR_OK);
    return number;
}

static void a_region_is_nested_in_the_innermost_open_one_of_its_thread(void **state)
{
    (void)state;
    struct regions regions = {0};
    int a = begin(&regions, 1, "a"), other = begin(&regions, 2, "other");
    int b = begin(&regions, 1, "b"), c = begin(&regions, 1, "c");
    assert_string_equal(regions_path(&regions, c), "a/b/c");
    assert_string_equal(regions_path(&regions, other), "other");
    /* Ended out of order, and by any thread: open regions keep their order. */
    assert_int_equal(regions_end(&regions, b, 10), ERR_OK);
    assert_string_equal(regions_path(&regions, begin(&regions, 1, "d")), "a/b/c/d");
    assert_int_equal(regions_end(&regions, 4, 11), ERR_OK);
    assert_int_equal(regions_end(&regions, c, 12), ERR_OK);
    assert_string_equal(regions_path(&regions, begin(&regions, 1, "e")), "a/e");
    assert_int_equal(regions_end(&regions, a, 13), ERR_OK);
    assert_int_equal(regions_end(&regions, 5, 14), ERR_OK);
    assert_string_equal(regions_path(&regions, begin(&regions, 1, "f")), "f");
    assert_string_equal(regions_path(&regions, begin(&regions, 2, "g")), "other/g");
    assert_int_equal(regions_end(&regions, a, 15), ERR_NOT_FOUND);
    assert_int_equal(regions_end(&regions, 99, 15), ERR_NOT_FOUND);
    assert_int_equal(regions_find(&regions, a)->to, 13);
    assert_null(regions_find(&regions, -1));
    regions_release(&regions);
}

/* All of them stay open: the program never ended them. */
static void many_threads_keep_their_own_regions(void **state)
{
    (void)state;
    enum { THREADS = 5000 };
    struct regions regions = {0};
    for (unsigned long t = 0; t < THREADS; t++)
        begin(&regions, t, t % 2 ? "odd" : "even");
    for (unsigned long t = 0; t < THREADS; t++) {
        int inner = begin(&regions, t, "inner");
        assert_string_equal(regions_path(&regions, inner), t % 2 ? "odd/inner" : "even/inner");
        assert_int_equal(regions_find(&regions, inner)->parent, (int)t);
    }
    regions_release(&regions);
}

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* With quadratic cost in either case, 300 000 take minutes and 16 000 open ones 800 MB. */
static void memory_is_linear_and_time_per_region_constant(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    struct regions nested = {0}, ended = {0};
    size_t before = bytes_in_use();
    for (int i = 0; i < COUNT; i++)
        begin(&nested, 1, "token");
    assert_true(bytes_in_use() - before < (size_t)COUNT * 300);
    before = bytes_in_use();
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(regions_end(&ended, begin(&ended, 1, "token"), i + 1), ERR_OK);
    assert_true(bytes_in_use() - before < (size_t)COUNT * 300);
    assert_string_equal(regions_path(&ended, COUNT - 1), "token");
    assert_int_equal(strlen(regions_path(&nested, 999)), 1000 * strlen("token/") - 1);
    for (int i = 0; i < COUNT; i++) /* the outermost first */
        assert_int_equal(regions_end(&nested, i, 1), ERR_OK);
    assert_string_equal(regions_path(&nested, begin(&nested, 1, "next")), "next");
    regions_release(&nested);
    regions_release(&ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_is_nested_in_the_innermost_open_one_of_its_thread),
        cmocka_unit_test(many_threads_keep_their_own_regions),
        cmocka_unit_test(memory_is_linear_and_time_per_region_constant),
    };
    return RUN_TESTS(tests);
}
