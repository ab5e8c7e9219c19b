/* Results of an earlier version are read and written back: the same bytes. */
#include "support/unit.h"

#include "core/text.h"
#include "port/file.h"
#include "port/json_read.h"
#include "rundir/layers_result.h"
#include "support/tree_fixture.h"

#define OLD IPW_FIXTURES "/runs/layers/layers-1m.json"

static void read_bytes(const char *path, struct text *out)
{
    text_clear(out);
    assert_int_equal(file_read(path, (size_t)1 << 20, out, NULL), ERR_OK);
}

static void test_an_older_result_round_trips_unchanged(void **state)
{
    (void)state;
    struct layers_results results = {0};
    struct text old = {0}, written = {0};
    char saved[300];
    read_bytes(OLD, &old);
    assert_int_equal(layers_results_load(OLD, &results, NULL), ERR_OK);
    assert_int_equal(results.count, 1);
    str_format(saved, sizeof saved, "%s/layers.json", tree.root);
    assert_int_equal(layers_result_save(tree.root, results.models, NULL), ERR_OK);
    read_bytes(saved, &written);
    assert_string_equal(text_get(&written), text_get(&old));
    layers_results_release(&results);
    text_release(&old);
    text_release(&written);
}

/* A failed load adds nothing, whatever was loaded before it. */
static void test_invalid_results_are_rejected(void **state)
{
    (void)state;
    struct layers_results results = {0};
    struct error why = {0};
    struct text old = {0};
    read_bytes(OLD, &old);
    tree_write_bytes(&tree, "/layers-1.json", 0, text_get(&old), old.length);
    tree_write(&tree, "/layers-2.json", "{\"layers\": []}");
    assert_int_equal(layers_results_load(OLD, &results, NULL), ERR_OK);
    assert_int_equal(layers_results_load(tree.root, &results, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "layers-2.json is not a result of ipw layers -o");
    assert_int_equal(results.count, 1);
    tree_remove(&tree, "/layers-2.json");
    assert_int_equal(layers_results_load(tree.root, &results, NULL), ERR_OK);
    assert_int_equal(results.count, 2);
    layers_results_release(&results);
    text_release(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_older_result_round_trips_unchanged, tree_set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(test_invalid_results_are_rejected, tree_set_up,
                                        tree_tear_down),
    };
    return RUN_TESTS(tests);
}
