/* Rows that are not valid UTF-8, read from a JSON lines file: invalid bytes become U+FFFD, and
 * valid text is unchanged. */
#include "support/unit.h"

#include "core/text.h"
#include "port/json_read.h"
#include "support/items.h"
#include "support/tree.h"

#define BAD "\xEF\xBF\xBD"

static const struct sample {
    const char *bytes;
    size_t length;
    const char *repaired;
} SAMPLES[] = {
    {"plain", 5, "plain"},
    {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", 14, "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
    {"caf\xE9", 4, "caf" BAD},                                   /* Latin-1 */
    {"a\x80z", 3, "a" BAD "z"},                                  /* a stray continuation byte */
    {"\xC0\xAF", 2, BAD BAD},                                    /* overlong */
    {"\xE0\x80\xAF", 3, BAD BAD BAD},                            /* overlong */
    {"\xED\xA0\x80", 3, BAD BAD BAD},                            /* a surrogate */
    {"\xF4\x90\x80\x80", 4, BAD BAD BAD BAD},                    /* beyond U+10FFFF */
    {"\xE2\x82", 2, BAD BAD},                                    /* truncated */
    {"a\0z", 3, "a" BAD "z"},                                    /* NUL */
    {"\xF4\x8F\xBF\xBF", 4, "\xF4\x8F\xBF\xBF"},                 /* U+10FFFF itself */
    {"\xED\x9F\xBF\xEE\x80\x80", 6, "\xED\x9F\xBF\xEE\x80\x80"}, /* around the surrogates */
};

/* The problem of a file with one row, {"problem":VALUE}; NULL when the row is not valid JSON. */
static void assert_problem(const char *value, size_t length, const char *expected)
{
    struct tree tree;
    struct items items = {0};
    struct text row = {0};
    char path[256];
    tree_new(&tree);
    text_add(&row, "{\"problem\":");
    text_add_bytes(&row, value, length);
    text_add(&row, "}\n");
    tree_write_bytes(&tree, "/q.jsonl", 0, row.bytes, row.length);
    snprintf(path, sizeof path, "%s/q.jsonl", tree.root);
    assert_int_equal(items_read(&items, path, "%s", ""), expected ? ERR_OK : ERR_BAD_VALUE);
    if (expected) {
        assert_int_equal(items.count, 1);
        assert_string_equal(items.all[0].problem, expected);
    }
    items_release(&items);
    text_release(&row);
    tree_free(&tree);
}

static void invalid_bytes_are_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SAMPLES / sizeof *SAMPLES; i++) {
        struct text value = {0};
        text_add(&value, "\"");
        text_add_bytes(&value, SAMPLES[i].bytes, SAMPLES[i].length);
        text_add(&value, "\"");
        assert_problem(value.bytes, value.length, SAMPLES[i].repaired);
        text_release(&value);
    }
}

static void unrepresentable_escapes_are_replaced(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {
        {"\"a\\u0000b\"", "a" BAD "b"},
        {"\"\\\\u0000\"", "\\u0000"}, /* an escaped backslash, then letters */
        {"\"\\\\\\u0000\"", "\\" BAD},
        {"\"\\ud83d\\ude00\"", "\xF0\x9F\x98\x80"},
        {"\"\\ud83d\"", BAD},
        {"\"\\ude00x\"", BAD "x"},
        {"\"\\ud83d\\ud83d\\ude00\"", BAD "\xF0\x9F\x98\x80"},
        {"\"\\u00e9\\n\\\"\"", "\xC3\xA9\n\""},
        {"\"\\u12\"", NULL}, /* not JSON, and not read past its end */
        {"\\", NULL},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++)
        assert_problem(PAIRS[i][0], strlen(PAIRS[i][0]), PAIRS[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_bytes_are_replaced),
        cmocka_unit_test(unrepresentable_escapes_are_replaced),
    };
    return RUN_TESTS(tests);
}
