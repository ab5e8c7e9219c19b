/* test: valgrind */
/* Saved datasets: which files they consist of, and their errors. Arrow itself is faked: a data file
 * here is JSON lines. */
#include "support/unit.h"

#include "port/json_read.h"

#include "stubs/arrow_fake.h"
#include "support/items.h"
#include "support/tree_fixture.h"

static struct items items;

static int tear_down(void **state)
{
    (void)state;
    items_release(&items);
    assert_int_equal(arrow_fake_open_count(), 0);
    tree_free(&tree);
    return 0;
}

/* A saved dataset of two data files with three rows. */
static void save_dataset(const char *folder, const char *split)
{
    char path[200];
    snprintf(path, sizeof path, "%s/state.json", folder);
    tree_write(&tree, path,
               "{\"_data_files\": [{\"filename\": \"data-00000-of-00002.arrow\"},"
               " {\"filename\": \"data-00001-of-00002.arrow\"}], \"_split\": %s}",
               split);
    snprintf(path, sizeof path, "%s/data-00000-of-00002.arrow", folder);
    tree_write(&tree, path,
               "{\"problem\":\"p0\",\"answer\":\"a\",\"subject\":\"s\","
               "\"dataset_metadata\":\"{\\\"config\\\":{\\\"dataset_name\\\":\\\"x\\\"}}\","
               "\"model_answers\":{}}\n{\"problem\":\"\",\"answer\":\"a\"}\n");
    snprintf(path, sizeof path, "%s/data-00001-of-00002.arrow", folder);
    tree_write(&tree, path, "{\"problem\":\"p2\",\"answer\":\"b\",\"subject\":null}\n");
}

static enum err read_dataset(const char *name, const char *words)
{
    items_release(&items);
    return items_read(&items, name, "path=%s/d, %s", tree.root, words);
}

static void shards_are_read_in_order(void **state)
{
    (void)state;
    save_dataset("/d", "null");
    assert_int_equal(read_dataset("hf", ""), ERR_OK);
    assert_int_equal(items.count, 2);
    assert_string_equal(items.name, "d");
    assert_string_equal(items.all[0].problem, "p0");
    assert_string_equal(items.all[0].id, "0");
    assert_string_equal(items.all[1].problem, "p2");
    assert_string_equal(items.all[1].id, "2");
    assert_string_equal(items.all[1].subject, "general");
    assert_contains(items.errors[0], "row 1: the problem is empty");
}

static void the_ipw_preset_filters_rows_like_upstream(void **state)
{
    (void)state;
    save_dataset("/d", "null");
    assert_int_equal(read_dataset("ipw", ""), ERR_OK);
    assert_int_equal(items.count, 2);
    assert_int_equal(items.error_count, 0);
    assert_string_equal(items.name, "ipw");
    assert_string_equal(items.grader, "judge");
    assert_string_equal(item_metadata_text(&items.all[0]), "{\"config\":{\"dataset_name\":\"x\"}}");
    assert_string_equal(item_metadata_text(&items.all[1]), "{}");
}

static void splits_are_selected_by_name(void **state)
{
    (void)state;
    tree_write(&tree, "/d/dataset_dict.json", "{\"splits\": [\"train\", \"test\"]}");
    save_dataset("/d/train", "\"train\"");
    save_dataset("/d/test", "\"test\"");
    assert_int_equal(read_dataset("hf", "split=test, limit=1"), ERR_OK);
    assert_int_equal(items.count, 1);
    assert_int_equal(read_dataset("hf", ""), ERR_USAGE);
    assert_contains(items.why.text, "choose with split= (train, test)");
    assert_int_equal(read_dataset("hf", "split=dev"), ERR_NOT_FOUND);
    assert_contains(items.why.text, "splits: train, test");
    tree_write(&tree, "/d/dataset_dict.json", "{\"splits\": [\"test\"]}");
    assert_int_equal(read_dataset("hf", ""), ERR_OK); /* only one split */
    tree_remove(&tree, "/d/dataset_dict.json");
    save_dataset("/d", "\"train\"");
    assert_int_equal(read_dataset("hf", "split=test"), ERR_NOT_FOUND);
    assert_contains(items.why.text, "holds the split 'train'");
}

static void errors_of_invalid_directories_name_the_cause(void **state)
{
    (void)state;
    assert_int_equal(read_dataset("hf", ""), ERR_NOT_FOUND);
    tree_write(&tree, "/d/readme", "nothing");
    assert_int_equal(read_dataset("hf", ""), ERR_NOT_FOUND);
    assert_contains(items.why.text, "no state.json");
    static const char *const STATES[][2] = {
        {"{", "not JSON"},
        {"{\"_data_files\": []}", "names no data files"},
        {"{\"_data_files\": [{\"filename\": \"../secret\"}]}", "is not the name of a data file"},
        {"{\"_data_files\": [{}]}", "is not the name of a data file"},
        {"{\"_data_files\": [{\"filename\": \"gone.arrow\"}]}", "gone.arrow"},
    };
    for (size_t i = 0; i < sizeof STATES / sizeof *STATES; i++) {
        tree_write(&tree, "/d/state.json", "%s", STATES[i][0]);
        assert_int_not_equal(read_dataset("hf", ""), ERR_OK);
        assert_contains(items.why.text, STATES[i][1]);
    }
}

/* A truncated file ends reading: the start of the next row is unknown. */
static void a_truncated_file_ends_reading(void **state)
{
    (void)state;
    save_dataset("/d", "null");
    tree_write(&tree, "/d/data-00001-of-00002.arrow", "broken\n{\"problem\":\"p3\"}\n");
    assert_int_equal(read_dataset("hf", ""), ERR_IO);
    assert_contains(items.why.text, "breaks off");
    assert_int_equal(items.count, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(shards_are_read_in_order),      TEST(the_ipw_preset_filters_rows_like_upstream),
        TEST(splits_are_selected_by_name),   TEST(errors_of_invalid_directories_name_the_cause),
        TEST(a_truncated_file_ends_reading),
    };
    return RUN_TESTS(tests);
}
