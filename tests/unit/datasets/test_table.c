/* CSV as RFC 4180 has it, and as files in the world have it. */
#include "support/unit.h"

#include "core/text.h"
#include "datasets/rows/table.h"
#include "support/tree.h"

static struct tree tree;
static char path[160];

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(path, sizeof path, "%s/t.csv", tree.root);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tree_free(&tree);
    return 0;
}

static void write_file(const char *bytes, size_t length)
{
    tree_remove(&tree, "/t.csv");
    tree_write_bytes(&tree, "/t.csv", 0, bytes, length);
}

/* All rows, one a line with the number of their own: `2 {"a":"1"}`; a bad one is `3 !reason`. */
static void assert_rows(const char *bytes, size_t length, char separator, size_t most,
                        const char *expected)
{
    struct table table;
    struct text row = {0}, all = {0};
    struct error why = {0};
    write_file(bytes, length);
    assert_int_equal(csv_table_open(path, separator, most, &table, &why), ERR_OK);
    for (int i = 0; i < 20; i++) {
        uint64_t line;
        bool end;
        enum err err = csv_table_next(&table, &row, &line, &end, &why);
        if (end)
            break;
        assert_true(err == ERR_OK || err == ERR_BAD_VALUE);
        text_addf(&all, "%d %s%s\n", (int)line, err ? "!" : "", err ? why.text : text_get(&row));
    }
    assert_string_equal(text_get(&all), expected);
    text_release(&row);
    text_release(&all);
    csv_table_close(&table);
}

#define ASSERT_ROWS(bytes, expected)                                                               \
    assert_rows(bytes, sizeof(bytes) - 1, ',', ROW_BYTES_MAX, expected)

static void fields_and_quotes(void **state)
{
    (void)state;
    ASSERT_ROWS("a,b\n1,2\n3,4", "2 {\"a\":\"1\",\"b\":\"2\"}\n3 {\"a\":\"3\",\"b\":\"4\"}\n");
    ASSERT_ROWS("a,b\r\n\"x,y\",\"say \"\"hi\"\"\"\r\n",
                "2 {\"a\":\"x,y\",\"b\":\"say \\\"hi\\\"\"}\n");
    ASSERT_ROWS("a,b\n\"two\nlines\",\"\"\n1,2\n",
                "2 {\"a\":\"two\\nlines\",\"b\":\"\"}\n4 {\"a\":\"1\",\"b\":\"2\"}\n");
    ASSERT_ROWS("a,b\n,\n", "2 {\"a\":\"\",\"b\":\"\"}\n");
    ASSERT_ROWS("a,b\n5\" disk, x \n", "2 {\"a\":\"5\\\" disk\",\"b\":\" x \"}\n");
    ASSERT_ROWS("\xEF\xBB\xBF\"a\"\n1\n", "2 {\"a\":\"1\"}\n");
    ASSERT_ROWS("a\n\n\r\n\"\"\n1\n", "4 {\"a\":\"\"}\n5 {\"a\":\"1\"}\n"); /* blank lines */
    ASSERT_ROWS("a\r1\r2", "2 {\"a\":\"1\"}\n3 {\"a\":\"2\"}\n");           /* CR alone */
    ASSERT_ROWS("a\n", "");
}

static void separators(void **state)
{
    (void)state;
    assert_rows("a;b\n1,5;2\n", 10, ';', 100, "2 {\"a\":\"1,5\",\"b\":\"2\"}\n");
    assert_rows("a\tb\n1,5\t2\n", 10, '\t', 100, "2 {\"a\":\"1,5\",\"b\":\"2\"}\n");
}

static void bytes_that_are_no_text(void **state)
{
    (void)state;
    ASSERT_ROWS("a\nx\0y\n", "2 {\"a\":\"x\\u0000y\"}\n"); /* feed repairs it */
    ASSERT_ROWS("a\ncaf\xE9\n", "2 {\"a\":\"caf\xEF\xBF\xBD\"}\n");
}

static void bad_rows_are_told_and_passed_over(void **state)
{
    (void)state;
    ASSERT_ROWS("a,b\n1\n1,2,3\n1,2\n", "2 !1 fields, but the header has 2\n"
                                        "3 !3 fields, but the header has 2\n"
                                        "4 {\"a\":\"1\",\"b\":\"2\"}\n");
    ASSERT_ROWS("a,b\n\"x\"y,2\n1,2\n",
                "2 !text after a closing quote: write a quote inside quotes as \"\"\n"
                "3 {\"a\":\"1\",\"b\":\"2\"}\n");
    ASSERT_ROWS("a,b\n1,\"x\n2,3\n", "2 !a quote is not closed\n");
    assert_rows("a\n123456\n1\n", 11, ',', 5,
                "2 !a row of 6 bytes (limit 5): is a quote not closed?\n3 {\"a\":\"1\"}\n");
}

static void files_without_a_header_are_refused(void **state)
{
    (void)state;
    struct table table;
    struct error why;
    write_file("\n\n", 2);
    assert_int_equal(csv_table_open(path, ',', 100, &table, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "header: empty");
    write_file("\"a", 2);
    assert_int_equal(csv_table_open(path, ',', 100, &table, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "header");
    assert_contains(why.text, "not closed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_and_quotes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(separators, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_rows_are_told_and_passed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_without_a_header_are_refused, set_up, tear_down),
    };
    return RUN_TESTS(tests);
}
