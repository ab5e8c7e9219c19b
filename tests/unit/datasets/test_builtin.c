/* The built-in tasks: balanced, without repeats, with disjoint splits, reproducible by seed.
 * tests/cli/test_datasets.py checks that the answers are correct. */
#include "support/unit.h"

#include <stdlib.h>

#include "support/items.h"

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->problem, ((const struct item *)b)->problem);
}

static void sort(struct items *items)
{
    qsort(items->all, items->count, sizeof *items->all, compare);
}

static void the_default_is_balanced_and_without_repeats(void **state)
{
    (void)state;
    static const char *const SUBJECTS[] = {"arithmetic", "comparison", "sequences", "sorting",
                                           "reading"};
    struct items items;
    unsigned count[5][6] = {{0}};
    assert_int_equal(items_read(&items, "builtin", "%s", ""), ERR_OK);
    assert_int_equal(items.count, 600);
    assert_int_equal(items.reported, 600);
    for (size_t i = 0; i < items.count; i++) {
        const char *level = strstr(item_metadata_text(&items.all[i]), "\"level\":");
        assert_non_null(level);
        for (unsigned j = 0; j < 5; j++)
            if (strcmp(items.all[i].subject, SUBJECTS[j]) == 0)
                count[j][level[8] - '0']++;
        assert_true(items.all[i].grader[0] && items.all[i].answer[0]);
        assert_true(strlen(items.all[i].problem) < 240);
    }
    for (unsigned j = 0; j < 5; j++)
        for (unsigned level = 1; level <= 5; level++)
            assert_int_equal(count[j][level], 24);
    sort(&items);
    for (size_t i = 1; i < items.count; i++)
        assert_string_not_equal(items.all[i - 1].problem, items.all[i].problem);
    items_release(&items);
}

/* Large samples of both splits with different seeds: no problem is in both. */
static void train_and_test_are_disjoint(void **state)
{
    (void)state;
    struct items train, test;
    int count = test_is_instrumented() ? 500 : 5000;
    assert_int_equal(items_read(&train, "builtin", "split=train, count=%d, seed=5", 4 * count),
                     ERR_OK);
    assert_int_equal(items_read(&test, "builtin", "split=test, count=%d, seed=9", count), ERR_OK);
    sort(&train);
    sort(&test);
    for (size_t i = 0, j = 0; i < train.count && j < test.count;) {
        int order = compare(&train.all[i], &test.all[j]);
        assert_int_not_equal(order, 0);
        i += order < 0;
        j += order > 0;
    }
    assert_contains(item_metadata_text(&train.all[0]), "\"split\":\"train\"");
    items_release(&train);
    items_release(&test);
}

static void seeds_give_different_problems(void **state)
{
    (void)state;
    struct items one, two;
    unsigned same = 0;
    assert_int_equal(items_read(&one, "builtin", "seed=1, count=200"), ERR_OK);
    assert_int_equal(items_read(&two, "builtin", "seed=2, count=200"), ERR_OK);
    for (size_t i = 0; i < 200; i++)
        same += strcmp(one.all[i].problem, two.all[i].problem) == 0;
    assert_in_range(same, 0, 20);
    items_release(&one);
    items_release(&two);
}

/* Items of a seed must never change: runs of different versions are compared by them. */
static void items_of_a_seed_do_not_change_between_versions(void **state)
{
    (void)state;
    static const char *const FIRST[][2] = {
        {"What is 16 + 15?", "31"},
        {"Which is larger, 27 or 4? Answer with the number.", "27"},
        {"What comes next: 9, 12, 15, 18?", "21"},
        {"Sort from small to large: 0, 17, 4", "0, 4, 17"},
        {"Eva has a white key. What does Eva have? Answer with one word.", "key"},
    };
    struct items items;
    assert_int_equal(items_read(&items, "builtin", "count=5"), ERR_OK);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(items.all[i].problem, FIRST[i][0]);
        assert_string_equal(items.all[i].answer, FIRST[i][1]);
    }
    assert_string_equal(items.all[4].id, "test-reading-1-4");
    items_release(&items);
}

static void tasks_and_levels_are_selected(void **state)
{
    (void)state;
    struct items items;
    assert_int_equal(items_read(&items, "builtin", "tasks=sorting|reading, level=2-3|5, count=12"),
                     ERR_OK);
    for (size_t i = 0; i < items.count; i++)
        assert_string_equal(items.all[i].subject, i % 2 ? "reading" : "sorting");
    assert_contains(item_metadata_text(&items.all[0]), "\"level\":2");
    assert_contains(item_metadata_text(&items.all[2]), "\"level\":3");
    assert_contains(item_metadata_text(&items.all[4]), "\"level\":5");
    items_release(&items);
    static const char *const WRONG[][2] = {
        {"tasks=sortin", "did you mean 'sorting'"},
        {"tasks=xyzzy", "known: arithmetic"},
        {"level=0", "levels from 1 to 5"},
        {"level=6", "levels from 1 to 5"},
        {"level=3-2", "levels from 1 to 5"},
        {"level=1-5|1", "levels from 1 to 5"},
        {"level=12", "levels from 1 to 5"},
        {"level=x", "levels from 1 to 5"},
        {"split=both", "test or train"},
        {"count=0", "1 or more"},
        {"count=-1", "whole number"},
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        assert_int_equal(items_read(&items, "builtin", "%s", WRONG[i][0]), ERR_USAGE);
        assert_contains(items.why.text, WRONG[i][1]);
    }
}

/* More items than there are distinct problems: they repeat, and generation terminates. */
static void a_small_task_repeats_its_problems(void **state)
{
    (void)state;
    struct items items;
    assert_int_equal(items_read(&items, "builtin", "tasks=arithmetic, level=1, count=1000"),
                     ERR_OK);
    assert_int_equal(items.count, 1000);
    items_release(&items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_balanced_and_without_repeats),
        cmocka_unit_test(train_and_test_are_disjoint),
        cmocka_unit_test(seeds_give_different_problems),
        cmocka_unit_test(items_of_a_seed_do_not_change_between_versions),
        cmocka_unit_test(tasks_and_levels_are_selected),
        cmocka_unit_test(a_small_task_repeats_its_problems),
    };
    return RUN_TESTS(tests);
}
