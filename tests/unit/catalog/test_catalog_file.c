/* test: tsan */
/* The embedded files: what is known without parsing is what parsing finds, and each is parsed once. */
#include "support/unit.h"

#include <pthread.h>
#include <string.h>

#include "catalog/catalog_file.h"
#include "catalog/hardware.h"
#include "core/json_field.h"
#include "core/jv.h"
#include "core/memory.h"

static struct jv *parse_file(const struct catalog_file *file)
{
    struct jv *tree = NULL;
    struct error why = {0};
    if (jv_parse(file->begin, (size_t)(file->end - file->begin), &tree, &why))
        fail_msg("%s: %s", file->id, why.text);
    return tree;
}

/* ---- ids and kinds ---- */

static void check_kind(const struct catalog_file *file, const char *kind)
{
    struct jv *tree = parse_file(file);
    assert_string_equal(text_or_empty(jv_text(jv_get(tree, "id"))), file->id);
    assert_string_equal(text_or_empty(jv_text(jv_get(tree, "kind"))), kind);
    jv_free(tree);
}

static void ids_and_kinds_are_those_in_the_files(void **state)
{
    (void)state;
    static const char *const KINDS[] = {
        [CATALOG_DEVICE] = "", [CATALOG_PEAKS] = "peak-only", [CATALOG_POWER] = "power-only"};
    for (size_t i = 0; i < HARDWARE_FILE_COUNT; i++) {
        check_kind(&HARDWARE_FILES[i], KINDS[HARDWARE_FILES[i].kind]);
        if (i > 0)
            assert_true(strcmp(HARDWARE_FILES[i - 1].id, HARDWARE_FILES[i].id) < 0);
    }
    for (size_t i = 0; i < MODEL_FILE_COUNT; i++)
        check_kind(&MODEL_FILES[i], "");
}

static void ids_of_devices_are_known_without_parsing(void **state)
{
    (void)state;
    assert_true(hardware_count() >= 50);
    for (size_t i = 0; i < hardware_count(); i++)
        assert_string_equal(hardware_id(i), hardware_at(i)->id);
}

/* ---- names ---- */

static void assert_next(struct catalog_name *name, const char *expected)
{
    if (!catalog_name_next(name))
        fail_msg("'%s' was not found", expected);
    assert_string_equal(name->text, expected);
}

static void check_array(struct catalog_name *name, const struct jv *names)
{
    for (const struct jv *item = jv_first(names); item; item = jv_next(item))
        assert_next(name, jv_text(item));
}

static void check_rows(struct catalog_name *name, const struct jv *rows)
{
    for (const struct jv *row = jv_first(rows); row; row = jv_next(row))
        check_array(name, jv_get(row, "match"));
}

static void names_are_found_as_they_are_parsed(void **state)
{
    (void)state;
    for (size_t i = 0; i < HARDWARE_FILE_COUNT; i++) {
        const struct catalog_file *file = &HARDWARE_FILES[i];
        struct jv *tree = parse_file(file);
        struct catalog_name aliases = catalog_names(file, CATALOG_ALIASES);
        struct catalog_name peaks = catalog_names(file, CATALOG_PEAK_NAMES);
        struct catalog_name processors = catalog_names(file, CATALOG_PROCESSORS);
        check_array(&aliases, jv_get(tree, "aliases"));
        check_array(&peaks, jv_get(tree, "match"));
        check_rows(&peaks, jv_get(tree, "devices"));
        check_array(&processors, jv_get(jv_get(tree, "processor"), "match"));
        check_rows(&processors, jv_get(tree, "processors"));
        if (catalog_name_next(&aliases) || catalog_name_next(&peaks) ||
            catalog_name_next(&processors))
            fail_msg("%s: a name that is not parsed", file->id);
        assert_int_equal(catalog_file_has(file, "families"), jv_get(tree, "families") != NULL);
        jv_free(tree);
    }
}

static void a_key_within_a_string_is_no_key(void **state)
{
    (void)state;
    static const char TEXT[] = "{\"note\": \"\\\"aliases\\\": [\\\"a\\\"]\", \"aliases\": [\"b\"]}";
    struct catalog_file file = {CATALOG_DEVICE, "x", TEXT, TEXT + sizeof TEXT - 1, NULL};
    struct catalog_name name = catalog_names(&file, CATALOG_ALIASES);
    assert_next(&name, "b");
    assert_false(catalog_name_next(&name));
    assert_true(catalog_file_has(&file, "aliases"));
    assert_false(catalog_file_has(&file, "alias"));
}

/* ---- parsing ---- */

enum { THREADS = 8 };

static int parse_count;
static enum err parse_result;
static pthread_barrier_t start;
static char parsed;

static enum err count_parse(const struct catalog_format *format, const char *name,
                            const char *bytes, size_t length, void **out, struct error *why)
{
    (void)format;
    parse_count++;
    *out = &parsed;
    return parse_result ? err_set(why, parse_result, "%s: %.*s", name, (int)length, bytes) : ERR_OK;
}

static const struct catalog_format COUNTED = {.parse = count_parse};

static void *get_file(void *file)
{
    pthread_barrier_wait(&start);
    return catalog_file_get(file, &COUNTED);
}

static void threads_share_one_parse(void **state)
{
    (void)state;
    struct catalog_file file = {CATALOG_DEVICE, "x", "{}", "", NULL};
    file.end = file.begin + 2;
    pthread_t threads[THREADS];
    parse_count = 0;
    parse_result = ERR_OK;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_file, &file), 0);
    for (int i = 0; i < THREADS; i++) {
        void *got;
        pthread_join(threads[i], &got);
        assert_ptr_equal(got, &parsed);
    }
    pthread_barrier_destroy(&start);
    assert_int_equal(parse_count, 1);
}

static void a_failed_parse_counts_as_lack_of_memory_and_is_tried_again(void **state)
{
    (void)state;
    struct catalog_file file = {CATALOG_DEVICE, "x", "{}", "", NULL};
    file.end = file.begin + 2;
    unsigned before = memory_failures();
    parse_result = ERR_NO_MEMORY;
    assert_null(catalog_file_get(&file, &COUNTED));
    assert_int_equal(memory_failures(), before + 1);
    parse_result = ERR_OK;
    assert_ptr_equal(catalog_file_get(&file, &COUNTED), &parsed);
    assert_int_equal(memory_failures(), before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_one_parse),
        cmocka_unit_test(a_failed_parse_counts_as_lack_of_memory_and_is_tried_again),
        cmocka_unit_test(ids_and_kinds_are_those_in_the_files),
        cmocka_unit_test(ids_of_devices_are_known_without_parsing),
        cmocka_unit_test(names_are_found_as_they_are_parsed),
        cmocka_unit_test(a_key_within_a_string_is_no_key),
    };
    return RUN_TESTS(tests);
}
