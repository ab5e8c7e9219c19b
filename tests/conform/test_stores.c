/* Every store is held to its contract. */
#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "port/fs.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"
#include "rundir/store.h"
#include "rundir/summary.h"
#include "support/one_tree.h"
#include "support/conform.h"

static char run[256];

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(run, sizeof run, "%s/runs/profile_x", tree.root);
    tree_write(&tree, "/runs/profile_x/records.jsonl", "{\"kind\":\"query\",\"key\":\"a\"}\n");
    fs_set_root(NULL); /* stores write to the real machine */
    return 0;
}

static struct jv *parse(const char *json)
{
    struct jv *value;
    assert_int_equal(jv_parse(json, strlen(json), &value, NULL), ERR_OK);
    return value;
}

/* Everything under the tree, as "name size" lines. */
static void list_into(const char *path, struct text *out)
{
    struct fs_names names;
    if (fs_list(path, &names))
        return;
    for (size_t i = 0; i < names.count; i++) {
        char below[512];
        struct stat status;
        snprintf(below, sizeof below, "%s/%s", path, names.items[i]);
        if (lstat(below, &status))
            continue;
        text_addf(out, "%s %ld\n", below, S_ISDIR(status.st_mode) ? 0L : (long)status.st_size);
        list_into(below, out);
    }
    fs_names_release(&names);
}

/* Records as they may come: whole, empty, of wrong types everywhere, with more than is known. */
static const char *const RECORDS[] = {
    "{}",
    "{\"kind\":\"query\",\"key\":\"a\",\"problem\":\"p\",\"model_metrics\":{\"a.b/c \\\"d\\\"\":"
    "{\"token_metrics\":{\"input\":1}}},\"ipw\":{\"key\":\"a\",\"index\":0}}",
    "{\"problem\":7,\"answer\":[1],\"dataset_metadata\":\"no\",\"model_metrics\":[],\"ipw\":null}",
    "{\"model_metrics\":{\"another\":{}},\"unknown\":{\"deep\":[[[[{}]]]]},\"dataset_metadata\":"
    "{\"level\":\"five\",\"tags\":[1,{\"x\":null}],\"more\":true}}",
};

static void put_all(const struct store_driver *driver, struct store *store)
{
    for (size_t i = 0; i < sizeof RECORDS / sizeof *RECORDS; i++) {
        struct error why = {0};
        struct jv *record = parse(RECORDS[i]);
        HOLD(store_put(store, record, &why) == ERR_OK, driver->name);
        jv_free(record);
    }
}

static void make_once(const struct store_driver *driver, const struct summary *summary)
{
    struct jv *metadata = parse("{\"level\":5,\"tags\":[\"a\"],\"name\":\"x\",\"none\":null}");
    struct store_run wanted = {.directory = run, .model = "a.b/c \"d\"", .metadata = metadata};
    struct store store;
    struct error why = {0};
    HOLD(store_open(driver, &wanted, &store, &why) == ERR_OK, driver->name);
    put_all(driver, &store);
    enum err err = store_finish(&store, summary, &why);
    if (err)
        print_error("%s\n", why.text);
    HOLD(err == ERR_OK, driver->name);
    store_close(&store);
    store_close(&store); /* harmless */
    jv_free(metadata);
}

static bool usable(const struct store_driver *driver)
{
    struct error why = {0};
    if (!driver->available || driver->available(&why) == ERR_OK)
        return true;
    HOLD(why.text[0], driver->name); /* and how to install it */
    struct store_run wanted = {.directory = run, .model = "m"};
    struct store store;
    HOLD(store_open(driver, &wanted, &store, &why) != ERR_OK, driver->name);
    store_close(&store);
    return false;
}

static void test_names(void **state)
{
    (void)state;
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++) {
        HOLD((*d)->name[0] && islower((unsigned char)(*d)->name[0]), (*d)->name);
        HOLD((*d)->summary[0], (*d)->name);
        for (const struct store_driver *const *e = STORE_DRIVERS; e < d; e++)
            HOLD(strcmp((*d)->name, (*e)->name) != 0, (*d)->name);
    }
}

/* Again and again, over what is already there; nothing is left open, nothing temporary stays. */
static void test_a_store_can_be_made_again(void **state)
{
    (void)state;
    SKIP_WITHOUT(jv_available);
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++) {
        if (!usable(*d))
            continue;
        struct summary summary;
        assert_int_equal(
            summary_from_json(parse("{\"model\":\"m\",\"total_queries\":4,\"ipw\":{}}"), &summary,
                              NULL),
            ERR_OK);
        struct text first = {0}, again = {0};
        make_once(*d, &summary);
        int descriptors = open_descriptors();
        list_into(tree.root, &first);
        make_once(*d, &summary);
        make_once(*d, NULL); /* a run that has none */
        make_once(*d, &summary);
        list_into(tree.root, &again);
        HOLD(open_descriptors() == descriptors, (*d)->name);
        HOLD(!strcmp(text_get(&first), text_get(&again)), (*d)->name);
        HOLD(!strstr(text_get(&first), ".tmp"), (*d)->name);
        text_release(&first);
        text_release(&again);
        summary_release(&summary);
    }
}

static void test_what_was_not_finished_leaves_no_trace(void **state)
{
    (void)state;
    SKIP_WITHOUT(jv_available);
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++) {
        if (!usable(*d))
            continue;
        struct text before = {0}, after = {0};
        struct store_run wanted = {.directory = run, .model = "m"};
        struct store store;
        struct error why = {0};
        int descriptors = open_descriptors();
        list_into(tree.root, &before);
        HOLD(store_open(*d, &wanted, &store, &why) == ERR_OK, (*d)->name);
        put_all(*d, &store);
        store_close(&store);
        list_into(tree.root, &after);
        HOLD(!strcmp(text_get(&before), text_get(&after)), (*d)->name);
        HOLD(open_descriptors() == descriptors, (*d)->name);
        text_release(&before);
        text_release(&after);
    }
}

static void test_a_missing_directory_is_reported(void **state)
{
    (void)state;
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++) {
        if (!usable(*d) || !strcmp((*d)->name, "null"))
            continue;
        struct store_run wanted = {.directory = "/no/such/run", .model = "m"};
        struct store store;
        struct error why = {0};
        HOLD(store_open(*d, &wanted, &store, &why) == ERR_NOT_FOUND, (*d)->name);
        HOLD(strstr(why.text, "/no/such/run"), (*d)->name);
        store_close(&store);
    }
}

/* What a store makes is what may be deleted with the run. */
static void test_a_run_can_be_cleared(void **state)
{
    (void)state;
    SKIP_WITHOUT(jv_available);
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++)
        if (usable(*d))
            make_once(*d, NULL);
    struct error why = {0};
    enum run_dir_state left;
    assert_int_equal(run_dir_clear(run, &why), ERR_OK);
    assert_int_equal(run_dir_inspect(run, &left, &why), ERR_OK);
    assert_int_equal(left, RUN_DIR_NEW);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tree_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(test_names),
        IN_TREE(test_a_store_can_be_made_again),
        IN_TREE(test_what_was_not_finished_leaves_no_trace),
        IN_TREE(test_a_missing_directory_is_reported),
        IN_TREE(test_a_run_can_be_cleared),
    };
    return RUN_TESTS(tests);
}
