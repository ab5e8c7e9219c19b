/* test: valgrind */
/* Every dataset driver in the registry against the contract of datasets/dataset.h. A driver added
 * to datasets.def is tested automatically: it needs a row in SAMPLES, which says how to open it. */
#define _GNU_SOURCE
#include "support/conform.h"

#include <stdlib.h>

#include "core/text.h"
#include "datasets/dataset.h"
#include "port/json_read.h"
#include "stubs/arrow_fake.h"
#include "stubs/http_fake.h"
#include "support/items.h"
#include "support/tree_fixture.h"

/* How to open each driver on the files of build_files; %s is the folder. */
static const struct sample {
    const char *driver, *words;
    unsigned bad; /* unusable rows */
} SAMPLES[] = {
    {"builtin", "count=40", 0},
    {"jsonl", "path=%s/q.jsonl", 1},
    {"csv", "path=%s/q.csv", 1},
    {"text", "path=%s/q.txt, window=16", 0},
    {"hf", "path=%s/saved", 1},
    {"hub", "dataset=o/n, config=c, split=s, base_url=http://127.0.0.1:1", 1},
    {"images", "path=%s/images", 1},
    {"audio", "path=%s/audio", 1},
    {"fixed_length", "prompt_length=10", 0},
    {"null", "count=3", 0},
};

#define ROWS                                                                                       \
    "{\"problem\":\"caf\xE9\",\"answer\":\"a\\u0000\",\"k\":\"\xFF\"}\n"                           \
    "{\"problem\":7}\n{\"problem\":\"\"}\n{\"problem\":\"last\",\"subject\":\"s\"}\n"

static void build_files(void)
{
    tree_write(&tree, "/q.jsonl", "%s", ROWS);
    tree_write(&tree, "/q.csv", "problem,answer\ncaf\xE9,\xFF\n1\nlast,\"a\nb\"\n");
    tree_write(&tree, "/q.txt", "caf\xE9 %070d\xC3\xA9%070d last words", 1, 2);
    tree_write(&tree, "/saved/state.json", "{\"_data_files\":[{\"filename\":\"a.arrow\"}]}");
    tree_write(&tree, "/saved/a.arrow", "%s", ROWS);
    tree_write(&tree, "/images/labels.csv", "file,label,note\nb.png,\xFF,c\na.png,caf\xE9,\n");
    tree_write(&tree, "/audio/a.txt", "caf\xE9\n");
    static const char *const FILES[] = {"/images/a.png",      "/images/b.png", "/images/\xE9.png",
                                        "/audio/inner/a.wav", "/audio/a.wav",  "/audio/\xE9.wav"};
    for (size_t i = 0; i < COUNT_OF(FILES); i++)
        tree_write(&tree, FILES[i], "not read");
}

static enum err serve_row(const char *url, struct text *body, int *status, double *retry_after_s)
{
    (void)url, (void)status, (void)retry_after_s;
    text_add(body, "{\"rows\":[{\"row_idx\":0,\"row\":{\"problem\":\"a\",\"x\":null}},"
                   "{\"row_idx\":1,\"row\":{\"problem\":\"b\"},\"truncated_cells\":[\"problem\"]},"
                   "{\"row_idx\":2,\"row\":{\"problem\":\"c\"}}],\"num_rows_total\":3}");
    return ERR_OK;
}

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    setenv("XDG_CACHE_HOME", tree.root, 1);
    http_fake = (struct http_fake){.answer = serve_row};
    build_files();
    return 0;
}

/* Returns another driver's sample where there is none, which every_driver_is_described reports. */
static const struct sample *sample_of(const char *driver)
{
    size_t i = sizeof SAMPLES / sizeof *SAMPLES - 1;
    while (i > 0 && strcmp(SAMPLES[i].driver, driver) != 0)
        i--;
    return &SAMPLES[i];
}

static enum err open_with(const char *driver, const char *words, const char *more,
                          struct dataset *out, struct error *why)
{
    struct text all = {0};
    struct params params = {0};
    const char *hole = strstr(words, "%s");
    text_add_bytes(&all, words, hole ? (size_t)(hole - words) : strlen(words));
    text_addf(&all, "%s%s,%s", hole ? tree.root : "", hole ? hole + 2 : "", more);
    assert_int_equal(params_add(&params, text_get(&all)), ERR_OK);
    struct dataset_config config = {.params = &params};
    enum err err = dataset_open(driver, &config, out, why);
    params_release(&params);
    text_release(&all);
    return err;
}

/* ---- checks ---- */

static void check_driver(const struct dataset_driver *driver)
{
    CHECK(driver->name && driver->name[0], "a driver");
    CHECK(driver->summary && driver->summary[0], driver->name);
    CHECK(driver->params && driver->open && driver->next && driver->close, driver->name);
    CHECK(!strcmp(sample_of(driver->name)->driver, driver->name),
          driver->name); /* add a row to SAMPLES */
    for (const struct param_spec *spec = driver->params; spec->name; spec++) {
        CHECK(spec->value && spec->value[0] && spec->help && spec->help[0], spec->name);
        CHECK(strlen(spec->help) < 90, spec->name);
        for (const struct param_spec *other = driver->params; other != spec; other++)
            CHECK(strcmp(other->name, spec->name) != 0, spec->name);
    }
}

/* Non-empty valid UTF-8. */
static void check_text(const char *text, const char *driver)
{
    CHECK(text, driver);
    CHECK(utf8_valid_prefix(text, strlen(text)) == strlen(text), driver);
}

static void check_item(const struct item *item, const char *driver)
{
    check_text(item->id, driver);
    check_text(item->problem, driver);
    check_text(item->answer, driver);
    check_text(item->subject, driver);
    const char *metadata = item_metadata_text(item);
    check_text(metadata, driver);
    CHECK(!strstr(metadata, "\\u0000") && !strstr(metadata, "\\ud8"), driver);
    check_text(item->grader, driver);
    CHECK(item->id[0] && item->problem[0] && item->subject[0], driver);
    CHECK(jv_is_object(item->metadata), driver);
}

/* All items of a dataset as one text: opening it twice must give the same text. */
static void read_all(const struct sample *sample, const char *more, struct text *out)
{
    struct dataset dataset;
    struct error why = {0};
    unsigned items = 0, bad = 0;
    bool end = false;
    enum err err = open_with(sample->driver, sample->words, more, &dataset, &why);
    if (err)
        print_error("%s: %s\n", sample->driver, why.text);
    CHECK(err == ERR_OK, sample->driver);
    CHECK(dataset.name[0] && dataset.driver, sample->driver);
    while (!end) {
        struct item item;
        why = (struct error){0};
        err = dataset_next(&dataset, &item, &end, &why);
        CHECK(err == ERR_OK || (err == ERR_BAD_VALUE && why.text[0] && !end), sample->driver);
        if (err)
            text_addf(out, "!%s\n", why.text);
        else if (!end)
            check_item(&item, sample->driver);
        if (!err && !end)
            text_addf(out, "%s|%s|%s|%s|%s|%s\n", item.id, item.problem, item.answer, item.subject,
                      item_metadata_text(&item), item.grader);
        items += !err && !end;
        bad += err == ERR_BAD_VALUE;
        CHECK(items + bad < 1000, sample->driver);
        item_release(&item);
    }
    CHECK(items > 1, sample->driver);
    CHECK(bad == sample->bad || *more, sample->driver);
    CHECK(dataset.count == -1 || dataset.count == (int64_t)(items + bad), sample->driver);
    for (int i = 0; i < 3; i++) { /* end of data is permanent */
        struct item item;
        end = false;
        CHECK(dataset_next(&dataset, &item, &end, &why) == ERR_OK && end, sample->driver);
        CHECK(!item.problem, sample->driver);
    }
    dataset_close(&dataset);
    dataset_close(&dataset); /* harmless */
}

static void every_driver_is_described(void **state)
{
    (void)state;
    for (const struct dataset_driver *const *driver = DATASET_DRIVERS; *driver; driver++)
        check_driver(*driver);
}

static void every_driver_is_reproducible(void **state)
{
    (void)state;
    for (const struct dataset_driver *const *driver = DATASET_DRIVERS; *driver; driver++) {
        const struct sample *sample = sample_of((*driver)->name);
        struct text once = {0}, again = {0};
        read_all(sample, "", &once);
        read_all(sample, "", &again);
        assert_string_equal(text_get(&once), text_get(&again));
        text_release(&once);
        text_release(&again);
    }
}

static bool has_param(const struct dataset_driver *driver, const char *name)
{
    for (const struct param_spec *spec = driver->params; spec->name; spec++)
        if (strcmp(spec->name, name) == 0)
            return true;
    return false;
}

static void row_drivers_shuffle_and_skip(void **state)
{
    (void)state;
    for (const struct dataset_driver *const *driver = DATASET_DRIVERS; *driver; driver++) {
        if (!has_param(*driver, "shuffle"))
            continue;
        struct text once = {0}, again = {0}, whole = {0};
        read_all(sample_of((*driver)->name), "shuffle=3, skip_bad=true", &once);
        read_all(sample_of((*driver)->name), "shuffle=3, skip_bad=true", &again);
        read_all(sample_of((*driver)->name), "skip_bad=true", &whole);
        assert_string_equal(text_get(&once), text_get(&again));
        CHECK(once.length == whole.length, (*driver)->name);
        CHECK(!strchr(text_get(&whole), '!'), (*driver)->name);
        text_release(&once);
        text_release(&again);
        text_release(&whole);
    }
}

static void wrong_parameters_are_reported(void **state)
{
    (void)state;
    for (const struct dataset_driver *const *driver = DATASET_DRIVERS; *driver; driver++) {
        const struct sample *sample = sample_of((*driver)->name);
        struct dataset dataset;
        struct error why = {0};
        CHECK(open_with(sample->driver, sample->words, "xyzzy=1", &dataset, &why) == ERR_USAGE,
              sample->driver);
        assert_contains(why.text, "xyzzy");
        assert_contains(why.text, sample->driver);
        CHECK(!dataset.driver && !dataset.state, sample->driver);
        dataset_close(&dataset); /* closing one that did not open is harmless */
    }
}

/* Closed before the end of data, with no descriptor left open. */
static void a_dataset_closed_early_leaks_no_descriptors(void **state)
{
    (void)state;
    int before = open_descriptors();
    for (const struct dataset_driver *const *driver = DATASET_DRIVERS; *driver; driver++) {
        const struct sample *sample = sample_of((*driver)->name);
        struct dataset dataset;
        struct item item;
        struct error why = {0};
        bool end;
        CHECK(open_with(sample->driver, sample->words, "", &dataset, &why) == ERR_OK,
              sample->driver);
        CHECK(dataset_next(&dataset, &item, &end, &why) == ERR_OK && !end, sample->driver);
        item_release(&item);
        dataset_close(&dataset);
        CHECK(open_descriptors() == before, sample->driver);
    }
    assert_int_equal(arrow_fake_open_count(), 0);
    assert_int_equal(http_fake.open, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tree_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_driver_is_described),
        TEST(every_driver_is_reproducible),
        TEST(row_drivers_shuffle_and_skip),
        TEST(wrong_parameters_are_reported),
        TEST(a_dataset_closed_early_leaks_no_descriptors),
    };
    return RUN_TESTS(tests);
}
