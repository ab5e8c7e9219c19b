/* test: valgrind */
/* The run index while two processes write it: an update, and commands that end runs during it. */
#include "rundir/run_index.h"

#include <stdio.h>

#include "core/json_field.h"
#include "port/sqlite.h"
#include "rundir/summary.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

static char folder[256];
static struct run_index *table;

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(folder, sizeof folder, "%s/runs", tree.root);
    tree_write(&tree, "/runs/one/records.jsonl", "{}\n");
    tree_write(&tree, "/runs/two/records.jsonl", "{}\n");
    table = run_index_open(folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    run_index_close(table);
    tree_free(&tree);
    return 0;
}

/* As a command does that ends the run. */
static void end_run(const char *name, double generated_at)
{
    char directory[300], summary_path[300];
    struct summary summary;
    summary_init(&summary);
    summary.model = "m";
    summary.generated_at = generated_at;
    snprintf(directory, sizeof directory, "%s/%s", folder, name);
    snprintf(summary_path, sizeof summary_path, "/runs/%s/summary.json", name);
    tree_write(&tree, summary_path, "{\"generated_at\": %f}", generated_at);
    assert_int_equal(run_index_put(directory, &summary, NULL), ERR_OK);
}

static struct run_row row_in_progress(const char *name)
{
    struct run_row row;
    run_row_init(&row, name);
    row.values[ROW_KIND].text = "profile";
    row.values[ROW_STATE].text = "running";
    row.values[ROW_CREATED].number = 1;
    return row;
}

static struct run_update *begin(void)
{
    struct run_update *update;
    assert_int_equal(run_update_begin(table, &update, NULL), ERR_OK);
    return update;
}

static void end(struct run_update *update)
{
    size_t running;
    assert_int_equal(run_update_end(update, true, &running, NULL), ERR_OK);
}

static void take_state(void *context, const struct run_row *row)
{
    *(char *)context = run_row_text(row, ROW_STATE)[0];
}

/* The first letter of the state of a run; '-': it has no row. */
static char state_of(const char *name)
{
    char state = '-';
    const struct run_query query = {.id = name};
    assert_int_equal(run_index_select(table, &query, take_state, &state, NULL), ERR_OK);
    return state;
}

static void a_run_that_ends_during_an_update_keeps_its_row(void **state)
{
    (void)state;
    struct run_row one = row_in_progress("one"), two = row_in_progress("two");
    struct run_update *update = begin();
    run_update_put(update, &one, NULL);
    end(update);
    assert_int_equal(state_of("one"), 'r');

    update = begin();
    run_update_put(update, &one, NULL);
    run_update_put(update, &two, NULL);
    end_run("one", 5); /* of which the update has read that it is in progress */
    end_run("two", 5);
    end(update);
    assert_int_equal(state_of("one"), 'd');
    assert_int_equal(state_of("two"), 'd');
}

static void a_run_that_is_repeated_during_an_update_keeps_its_row(void **state)
{
    (void)state;
    end_run("one", 5);
    end_run("two", 5);
    struct run_update *update = begin(); /* which finds no directory */
    end_run("one", 6);
    end(update);
    assert_int_equal(state_of("one"), 'd');
    assert_int_equal(state_of("two"), '-');
}

static void a_run_that_begins_again_is_in_progress(void **state)
{
    (void)state;
    struct run_row one = row_in_progress("one");
    end_run("one", 5);
    struct run_update *update = begin();
    assert_false(run_update_keep(update, "one", INTEGER_UNKNOWN));
    run_update_put(update, &one, NULL);
    end(update);
    assert_int_equal(state_of("one"), 'r');
}

static void an_update_that_failed_deletes_no_rows(void **state)
{
    (void)state;
    size_t running;
    end_run("one", 5);
    struct run_update *update = begin();
    assert_int_equal(run_update_end(update, false, &running, NULL), ERR_OK);
    assert_int_equal(state_of("one"), 'd');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_that_ends_during_an_update_keeps_its_row, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_is_repeated_during_an_update_keeps_its_row,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_run_that_begins_again_is_in_progress, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_update_that_failed_deletes_no_rows, set_up, tear_down),
    };
    return RUN_TESTS_WITH(sqlite_load, tests);
}
