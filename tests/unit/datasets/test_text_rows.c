/* test: valgrind */
/* Rows of text files: JSON as lines and as one array, CSV as in RFC 4180 and as found in practice. */
#include "support/unit.h"

#include "core/json.h"
#include "core/text.h"
#include "datasets/text_rows.h"
#include "support/tree_fixture.h"

static char path[160];

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(path, sizeof path, "%s/rows", tree.root);
    return 0;
}

/* ---- JSON ---- */

/* Reads all rows: "LINE:row|LINE:row|", with ! for an invalid one. */
static void assert_json_rows(const char *bytes, size_t length, size_t max, const char *expected)
{
    struct text_rows rows;
    struct text all = {0};
    struct error why = {0};
    tree_remove(&tree, "/rows");
    tree_write_bytes(&tree, "/rows", 0, bytes, length);
    assert_int_equal(text_rows_open(path, 0, max, &rows, &why), ERR_OK);
    for (int i = 0; i < 20; i++) {
        uint64_t line;
        bool end;
        enum err err = text_rows_next(&rows, &line, &end, &why);
        if (end)
            break;
        assert_true(err == ERR_OK || err == ERR_BAD_VALUE);
        text_addf(&all, "%d:%s|", (int)line, err ? "!" : text_get(&rows.json));
    }
    assert_string_equal(text_get(&all), expected);
    text_release(&all);
    text_rows_close(&rows);
}

#define ASSERT_JSON_ROWS(bytes, max, expected)                                                     \
    assert_json_rows(bytes, sizeof(bytes) - 1, max, expected)

static void lines_are_rows(void **state)
{
    (void)state;
    ASSERT_JSON_ROWS("{1}\n{2}\n", 100, "1:{1}|2:{2}|");
    ASSERT_JSON_ROWS("{1}\n{2}", 100, "1:{1}|2:{2}|"); /* no newline at the end */
    ASSERT_JSON_ROWS("{1}\r\n\r\n  \t\n{2}\r\n", 100, "1:{1}\r|4:{2}\r|"); /* CRLF, blank lines */
    ASSERT_JSON_ROWS("\xEF\xBB\xBF{1}\n", 100, "1:{1}|");                  /* byte order mark */
}

static void array_elements_are_rows(void **state)
{
    (void)state;
    ASSERT_JSON_ROWS(" [\n{1},\n {2} ]\n", 100, "2:{1}|3:{2} |");
    ASSERT_JSON_ROWS("[]", 100, "");
    ASSERT_JSON_ROWS("[{\"a\":[1,{\"b\":\"],}\\\"[\"}]},3]", 100,
                     "1:{\"a\":[1,{\"b\":\"],}\\\"[\"}]}|1:3|");
    ASSERT_JSON_ROWS("[{1},\n{2},", 100, "1:{1}|2:{2}|2:!|"); /* truncated: an invalid row */
    ASSERT_JSON_ROWS("[{\"a\":1", 100, "1:{\"a\":1|1:!|");
}

static void rows_over_the_limit_are_invalid(void **state)
{
    (void)state;
    ASSERT_JSON_ROWS("12345\n123456\n1\n", 5, "1:12345|2:!|3:1|");
    ASSERT_JSON_ROWS("[12345,\n123456,\n1]", 5, "1:12345|2:!|3:1|");
    static char big[100000];
    memset(big, 'x', sizeof big); /* longer than any buffer on the path */
    big[sizeof big - 3] = '\n';
    assert_json_rows(big, sizeof big, 50000, "1:!|2:xx|");
}

static void other_file_formats_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *says;
    } FILES[] = {
        {"", "is empty"},        {"\xFF\xFEh", "UTF-16"}, {"\x1F\x8B\x08", "compressed"},
        {"PAR1....", "Parquet"}, {"PK\x03\x04", "zip"},
    };
    struct text_rows rows;
    struct error why;
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        tree_write(&tree, "/rows", "%s", FILES[i].bytes);
        assert_int_not_equal(text_rows_open(path, 0, 100, &rows, &why), ERR_OK);
        assert_contains(why.text, FILES[i].says);
        assert_contains(why.text, path);
    }
    tree_remove(&tree, "/rows");
    assert_int_equal(text_rows_open(path, 0, 100, &rows, &why), ERR_NOT_FOUND);
    assert_int_equal(text_rows_open(tree.root, 0, 100, &rows, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "directory");
}

/* ---- CSV ---- */

static void write_file(const char *bytes, size_t length)
{
    tree_remove(&tree, "/rows");
    tree_write_bytes(&tree, "/rows", 0, bytes, length);
}

static void add_record(const struct text_rows *rows, struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    json_object(&json, NULL);
    for (size_t i = 0; i < rows->record.count; i++)
        json_string_bytes(&json, rows->csv.columns[i].start, rows->record.fields[i].start,
                          rows->record.fields[i].length);
    json_object_end(&json);
}

/* All rows, one per line with their line number: `2 {"a":"1"}`; an invalid one is `3 !reason`. */
static void assert_csv_rows(const char *bytes, size_t length, char separator, size_t max,
                            const char *expected)
{
    struct text_rows rows;
    struct text all = {0};
    struct error why = {0};
    write_file(bytes, length);
    assert_int_equal(text_rows_open(path, separator, max, &rows, &why), ERR_OK);
    for (int i = 0; i < 20; i++) {
        uint64_t line;
        bool end;
        enum err err = text_rows_next(&rows, &line, &end, &why);
        if (end)
            break;
        assert_true(err == ERR_OK || err == ERR_BAD_VALUE);
        text_addf(&all, "%d ", (int)line);
        if (err)
            text_addf(&all, "!%s", why.text);
        else
            add_record(&rows, &all);
        text_add(&all, "\n");
    }
    assert_string_equal(text_get(&all), expected);
    text_release(&all);
    text_rows_close(&rows);
}

#define ASSERT_CSV_ROWS(bytes, expected)                                                           \
    assert_csv_rows(bytes, sizeof(bytes) - 1, ',', ROW_BYTES_MAX, expected)

static void fields_and_quotes_are_parsed(void **state)
{
    (void)state;
    ASSERT_CSV_ROWS("a,b\n1,2\n3,4", "2 {\"a\":\"1\",\"b\":\"2\"}\n3 {\"a\":\"3\",\"b\":\"4\"}\n");
    ASSERT_CSV_ROWS("a,b\r\n\"x,y\",\"say \"\"hi\"\"\"\r\n",
                    "2 {\"a\":\"x,y\",\"b\":\"say \\\"hi\\\"\"}\n");
    ASSERT_CSV_ROWS("a,b\n\"two\nlines\",\"\"\n1,2\n",
                    "2 {\"a\":\"two\\nlines\",\"b\":\"\"}\n4 {\"a\":\"1\",\"b\":\"2\"}\n");
    ASSERT_CSV_ROWS("a,b\n,\n", "2 {\"a\":\"\",\"b\":\"\"}\n");
    ASSERT_CSV_ROWS("a,b\n5\" disk, x \n", "2 {\"a\":\"5\\\" disk\",\"b\":\" x \"}\n");
    ASSERT_CSV_ROWS("\xEF\xBB\xBF\"a\"\n1\n", "2 {\"a\":\"1\"}\n");
    ASSERT_CSV_ROWS("a\n\n\r\n\"\"\n1\n", "4 {\"a\":\"\"}\n5 {\"a\":\"1\"}\n"); /* blank lines */
    ASSERT_CSV_ROWS("a\r1\r2", "2 {\"a\":\"1\"}\n3 {\"a\":\"2\"}\n");           /* CR alone */
    ASSERT_CSV_ROWS("a\n", "");
}

static void other_separators_are_supported(void **state)
{
    (void)state;
    assert_csv_rows("a;b\n1,5;2\n", 10, ';', 100, "2 {\"a\":\"1,5\",\"b\":\"2\"}\n");
    assert_csv_rows("a\tb\n1,5\t2\n", 10, '\t', 100, "2 {\"a\":\"1,5\",\"b\":\"2\"}\n");
}

static void invalid_utf8_is_replaced(void **state)
{
    (void)state;
    ASSERT_CSV_ROWS("a\nx\0y\n", "2 {\"a\":\"x\\u0000y\"}\n"); /* the driver repairs it */
    ASSERT_CSV_ROWS("a\ncaf\xE9\n", "2 {\"a\":\"caf\xEF\xBF\xBD\"}\n");
}

static void invalid_rows_are_reported_and_skipped(void **state)
{
    (void)state;
    ASSERT_CSV_ROWS("a,b\n1\n1,2,3\n1,2\n", "2 !1 fields, but the header has 2\n"
                                            "3 !3 fields, but the header has 2\n"
                                            "4 {\"a\":\"1\",\"b\":\"2\"}\n");
    ASSERT_CSV_ROWS("a,b\n\"x\"y,2\n1,2\n",
                    "2 !text after a closing quote: write a quote inside quotes as \"\"\n"
                    "3 {\"a\":\"1\",\"b\":\"2\"}\n");
    ASSERT_CSV_ROWS("a,b\n1,\"x\n2,3\n", "2 !a quote is not closed\n");
    assert_csv_rows("a\n123456\n1\n", 11, ',', 5,
                    "2 !a row of 6 bytes (limit 5): is a quote not closed?\n3 {\"a\":\"1\"}\n");
}

static void files_without_a_header_are_rejected(void **state)
{
    (void)state;
    struct text_rows rows;
    struct error why;
    write_file("\n\n", 2);
    assert_int_equal(text_rows_open(path, ',', 100, &rows, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "header: empty");
    write_file("\"a", 2);
    assert_int_equal(text_rows_open(path, ',', 100, &rows, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "header");
    assert_contains(why.text, "not closed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_are_rows, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(array_elements_are_rows, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(rows_over_the_limit_are_invalid, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(other_file_formats_are_rejected, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(fields_and_quotes_are_parsed, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(other_separators_are_supported, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(invalid_utf8_is_replaced, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(invalid_rows_are_reported_and_skipped, set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(files_without_a_header_are_rejected, set_up,
                                        tree_tear_down),
    };
    return RUN_TESTS(tests);
}
