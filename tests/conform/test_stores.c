/* test: valgrind */
/* Every store in the registry against the contract of rundir/store.h. */
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
#include "support/tree_fixture.h"
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

/* Records of all kinds: complete, empty, with wrong types everywhere, with unknown keys. */
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
        CHECK(store_put(store, record, &why) == ERR_OK, driver->name);
        jv_free(record);
    }
}

static void write_store(const struct store_driver *driver, const struct summary *summary)
{
    struct jv *metadata = parse("{\"level\":5,\"tags\":[\"a\"],\"name\":\"x\",\"none\":null}");
    struct store_run wanted = {.directory = run, .model = "a.b/c \"d\"", .metadata = metadata};
    struct store store;
    struct error why = {0};
    CHECK(store_open(driver, &wanted, &store, &why) == ERR_OK, driver->name);
    put_all(driver, &store);
    enum err err = store_finish(&store, summary, &why);
    if (err)
        print_error("%s\n", why.text);
    CHECK(err == ERR_OK, driver->name);
    store_close(&store);
    store_close(&store); /* harmless */
    jv_free(metadata);
}

static bool usable(const struct store_driver *driver)
{
    struct error why = {0};
    if (!driver->available || driver->available(&why) == ERR_OK)
        return true;
    CHECK(why.text[0], driver->name); /* says how to install it */
    struct store_run wanted = {.directory = run, .model = "m"};
    struct store store;
    CHECK(store_open(driver, &wanted, &store, &why) != ERR_OK, driver->name);
    store_close(&store);
    return false;
}

static void drivers_are_well_formed(void **state)
{
    (void)state;
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++) {
        CHECK((*d)->name[0] && islower((unsigned char)(*d)->name[0]), (*d)->name);
        CHECK((*d)->summary[0], (*d)->name);
        for (const struct store_driver *const *e = STORE_DRIVERS; e < d; e++)
            CHECK(strcmp((*d)->name, (*e)->name) != 0, (*d)->name);
    }
}

/* Repeatedly, over existing files; no descriptor is left open and no temporary file remains. */
static void a_store_can_be_rewritten(void **state)
{
    (void)state;
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++) {
        if (!usable(*d))
            continue;
        struct summary summary;
        assert_int_equal(
            summary_from_json(parse("{\"model\":\"m\",\"total_queries\":4,\"ipw\":{}}"), &summary,
                              NULL),
            ERR_OK);
        struct text first = {0}, again = {0};
        write_store(*d, &summary);
        int descriptors = open_descriptors();
        list_into(tree.root, &first);
        write_store(*d, &summary);
        write_store(*d, NULL); /* a run without a summary */
        write_store(*d, &summary);
        list_into(tree.root, &again);
        CHECK(open_descriptors() == descriptors, (*d)->name);
        CHECK(!strcmp(text_get(&first), text_get(&again)), (*d)->name);
        CHECK(!strstr(text_get(&first), ".tmp"), (*d)->name);
        text_release(&first);
        text_release(&again);
        summary_release(&summary);
    }
}

static void an_unfinished_store_leaves_no_files(void **state)
{
    (void)state;
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++) {
        if (!usable(*d))
            continue;
        struct text before = {0}, after = {0};
        struct store_run wanted = {.directory = run, .model = "m"};
        struct store store;
        struct error why = {0};
        int descriptors = open_descriptors();
        list_into(tree.root, &before);
        CHECK(store_open(*d, &wanted, &store, &why) == ERR_OK, (*d)->name);
        put_all(*d, &store);
        store_close(&store);
        list_into(tree.root, &after);
        CHECK(!strcmp(text_get(&before), text_get(&after)), (*d)->name);
        CHECK(open_descriptors() == descriptors, (*d)->name);
        text_release(&before);
        text_release(&after);
    }
}

static void a_missing_directory_is_reported(void **state)
{
    (void)state;
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++) {
        if (!usable(*d) || !strcmp((*d)->name, "null"))
            continue;
        struct store_run wanted = {.directory = "/no/such/run", .model = "m"};
        struct store store;
        struct error why = {0};
        CHECK(store_open(*d, &wanted, &store, &why) == ERR_NOT_FOUND, (*d)->name);
        CHECK(strstr(why.text, "/no/such/run"), (*d)->name);
        store_close(&store);
    }
}

/* Clearing a run deletes all files that a store writes. */
static void clearing_a_run_deletes_its_stores(void **state)
{
    (void)state;
    for (const struct store_driver *const *d = STORE_DRIVERS; *d; d++)
        if (usable(*d))
            write_store(*d, NULL);
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
        IN_TREE(drivers_are_well_formed),
        IN_TREE(a_store_can_be_rewritten),
        IN_TREE(an_unfinished_store_leaves_no_files),
        IN_TREE(a_missing_directory_is_reported),
        IN_TREE(clearing_a_run_deletes_its_stores),
    };
    return RUN_TESTS(tests);
}
