/* Rows of a JSON file, as lines and as one array. */
#include "support/unit.h"

#include "core/text.h"
#include "datasets/rows/json_rows.h"
#include "support/tree.h"

static struct tree tree;
static char path[160];

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(path, sizeof path, "%s/rows", tree.root);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tree_free(&tree);
    return 0;
}

/* Reads all rows: "LINE:row|LINE:row|", with ! for one that cannot be used. */
static void assert_rows(const char *bytes, size_t length, size_t most, const char *expected)
{
    struct json_rows rows;
    struct text row = {0}, all = {0};
    struct error why = {0};
    tree_remove(&tree, "/rows");
    tree_write_bytes(&tree, "/rows", 0, bytes, length);
    assert_int_equal(json_rows_open(path, most, &rows, &why), ERR_OK);
    for (int i = 0; i < 20; i++) {
        uint64_t line;
        bool end;
        enum err err = json_rows_next(&rows, &row, &line, &end, &why);
        if (end)
            break;
        assert_true(err == ERR_OK || err == ERR_BAD_VALUE);
        text_addf(&all, "%d:%s|", (int)line, err ? "!" : text_get(&row));
    }
    assert_string_equal(text_get(&all), expected);
    text_release(&row);
    text_release(&all);
    json_rows_close(&rows);
}

#define ASSERT_ROWS(bytes, most, expected) assert_rows(bytes, sizeof(bytes) - 1, most, expected)

static void lines_are_rows(void **state)
{
    (void)state;
    ASSERT_ROWS("{1}\n{2}\n", 100, "1:{1}|2:{2}|");
    ASSERT_ROWS("{1}\n{2}", 100, "1:{1}|2:{2}|");                     /* no newline at the end */
    ASSERT_ROWS("{1}\r\n\r\n  \t\n{2}\r\n", 100, "1:{1}\r|4:{2}\r|"); /* CRLF, blank lines */
    ASSERT_ROWS("\xEF\xBB\xBF{1}\n", 100, "1:{1}|");                  /* byte order mark */
}

static void elements_are_rows(void **state)
{
    (void)state;
    ASSERT_ROWS(" [\n{1},\n {2} ]\n", 100, "2:{1}|3:{2} |");
    ASSERT_ROWS("[]", 100, "");
    ASSERT_ROWS("[{\"a\":[1,{\"b\":\"],}\\\"[\"}]},3]", 100,
                "1:{\"a\":[1,{\"b\":\"],}\\\"[\"}]}|1:3|");
    ASSERT_ROWS("[{1},\n{2},", 100, "1:{1}|2:{2}|2:!|"); /* cut off, and told */
    ASSERT_ROWS("[{\"a\":1", 100, "1:{\"a\":1|1:!|");
}

static void rows_have_a_longest_length(void **state)
{
    (void)state;
    ASSERT_ROWS("12345\n123456\n1\n", 5, "1:12345|2:!|3:1|");
    ASSERT_ROWS("[12345,\n123456,\n1]", 5, "1:12345|2:!|3:1|");
    static char big[100000];
    memset(big, 'x', sizeof big); /* longer than every buffer on the way */
    big[sizeof big - 3] = '\n';
    assert_rows(big, sizeof big, 50000, "1:!|2:xx|");
}

static void other_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *told;
    } FILES[] = {
        {"", "is empty"},        {"\xFF\xFEh", "UTF-16"}, {"\x1F\x8B\x08", "compressed"},
        {"PAR1....", "Parquet"}, {"PK\x03\x04", "zip"},
    };
    struct json_rows rows;
    struct error why;
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        tree_write(&tree, "/rows", "%s", FILES[i].bytes);
        assert_int_not_equal(json_rows_open(path, 100, &rows, &why), ERR_OK);
        assert_contains(why.text, FILES[i].told);
        assert_contains(why.text, path);
    }
    tree_remove(&tree, "/rows");
    assert_int_equal(json_rows_open(path, 100, &rows, &why), ERR_NOT_FOUND);
    assert_int_equal(json_rows_open(tree.root, 100, &rows, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_are_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(elements_are_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_have_a_longest_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_files_are_refused, set_up, tear_down),
    };
    return RUN_TESTS(tests);
}
