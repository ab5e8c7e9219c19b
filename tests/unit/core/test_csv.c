/* test: valgrind */
/* CSV: rows from memory and from a stream that returns one byte at a time, small tables, and quoting. */
#include "core/csv.h"

#include <errno.h>

#include "core/text.h"
#include "support/unit.h"

/* ---- row by row ---- */

/* Returns its bytes in pieces of `step`, then ends or fails. */
struct pieces {
    const char *bytes;
    size_t length, at, step;
    int failure;
};

static long read_piece(void *context, char *to, size_t size)
{
    struct pieces *pieces = context;
    size_t left = pieces->length - pieces->at;
    size_t taken = left < pieces->step ? left : pieces->step;
    taken = taken < size ? taken : size;
    memcpy(to, pieces->bytes + pieces->at, taken);
    pieces->at += taken;
    if (taken == 0 && pieces->failure) {
        errno = pieces->failure;
        return -1;
    }
    return (long)taken;
}

/* "2 [a][b]" per line; "!text" for an error; a row without a newline has a "~". */
static void add_rows(struct csv_reader *reader, struct text *out)
{
    for (int i = 0; i < 100; i++) {
        struct csv_row row;
        struct error why = {0};
        bool end;
        enum err err = csv_reader_next(reader, &row, &end, &why);
        if (end)
            break;
        text_addf(out, "%d ", (int)row.line);
        for (size_t f = 0; !err && f < row.count; f++) {
            assert_int_equal(row.fields[f].start[row.fields[f].length], '\0');
            text_addf(out, "[%s]", row.fields[f].start);
        }
        text_addf(out, "%s%s%s\n", err ? "!" : "", why.text, row.has_line_end ? "" : "~");
        if (err && err != ERR_BAD_VALUE)
            break;
    }
    csv_reader_release(reader);
}

/* The same rows from memory and from pieces of each small size. */
static void assert_rows(const char *bytes, const char *expected)
{
    struct csv_reader reader;
    struct text copy = {0}, all = {0};
    text_add(&copy, bytes);
    csv_reader_memory(&reader, copy.bytes, copy.length);
    add_rows(&reader, &all);
    assert_string_equal(text_get(&all), expected);
    for (size_t step = 1; step < 6; step++) {
        struct pieces pieces = {bytes, strlen(bytes), 0, step, 0};
        text_clear(&all);
        csv_reader_source(&reader, read_piece, &pieces);
        add_rows(&reader, &all);
        assert_string_equal(text_get(&all), expected);
    }
    text_release(&copy);
    text_release(&all);
}

static void rows_and_quotes_are_parsed(void **state)
{
    (void)state;
    assert_rows("a,b\n1,2\n3,4\n", "1 [a][b]\n2 [1][2]\n3 [3][4]\n");
    assert_rows("a,b\r\n\"x,y\",\"say \"\"hi\"\"\"\r\n", "1 [a][b]\n2 [x,y][say \"hi\"]\n");
    assert_rows("\"two\nlines\",\"\"\n1,2\n", "1 [two\nlines][]\n3 [1][2]\n");
    assert_rows(",\n,,\n", "1 [][]\n2 [][][]\n");
    assert_rows("5\" disk, x \n", "1 [5\" disk][ x ]\n");
    assert_rows("\"a\" ,b\n", "1 [a][b]\n");
    assert_rows("\xEF\xBB\xBF\"a\"\n\n\r\n\"\"\n1", "1 [a]\n4 []\n5 [1]~\n");
    assert_rows("a\r1\r\r\n2", "1 [a]\n2 [1]\n4 [2]~\n");
    assert_rows("", "");
    assert_rows("\n\r\n", "");
}

static void invalid_rows_are_reported_and_skipped(void **state)
{
    (void)state;
    assert_rows("\"x\"y,2\n1,2\n",
                "1 !text after a closing quote: write a quote inside quotes as \"\"\n2 [1][2]\n");
    assert_rows("\"x\" \"y\"\n1\n",
                "1 !text after a closing quote: write a quote inside quotes as \"\"\n2 [1]\n");
    assert_rows("1,\"x\n2,3\n", "1 !a quote is not closed~\n");
}

static void a_row_over_the_limit_is_an_error(void **state)
{
    (void)state;
    struct csv_reader reader;
    struct text bytes = {0}, all = {0};
    for (int i = 0; i < 700 * 1024; i++)
        text_add(&bytes, i % 7 ? "x" : ",");
    text_add(&bytes, "\n1\n");
    struct pieces pieces = {bytes.bytes, bytes.length, 0, 100000, 0};
    csv_reader_source(&reader, read_piece, &pieces);
    reader.row_max = 1000;
    add_rows(&reader, &all);
    assert_string_equal(text_get(&all),
                        "1 !a row of 716800 bytes (limit 1000): is a quote not closed?\n2 [1]\n");
    pieces.at = 0;
    text_clear(&all);
    csv_reader_source(&reader, read_piece, &pieces);
    struct csv_row row;
    struct error why;
    bool end;
    assert_int_equal(csv_reader_next(&reader, &row, &end, &why), ERR_OK);
    assert_int_equal(row.count, 102401);
    csv_reader_release(&reader);
    text_release(&bytes);
    text_release(&all);
}

static void the_header_names_the_columns(void **state)
{
    (void)state;
    struct csv_reader reader;
    struct csv_row row;
    struct error why = {0};
    bool end;
    struct pieces pieces = {"t;\"name\"\n1;2;3\n4;5\n", 19, 0, 4, 0};
    csv_reader_source(&reader, read_piece, &pieces);
    reader.separator = ';';
    assert_int_equal(csv_reader_header(&reader, &why), ERR_OK);
    assert_int_equal(reader.column_count, 2);
    assert_true(slice_is(reader.columns[1], "name"));
    assert_int_equal(csv_reader_next(&reader, &row, &end, &why), ERR_BAD_VALUE);
    assert_string_equal(why.text, "3 fields, but the header has 2");
    assert_int_equal(row.line, 2);
    assert_int_equal(csv_reader_next(&reader, &row, &end, &why), ERR_OK);
    assert_string_equal(row.fields[1].start, "5");
    csv_reader_release(&reader);
    csv_reader_memory(&reader, (char[]){"\n"}, 1);
    assert_int_equal(csv_reader_header(&reader, &why), ERR_BAD_VALUE);
    csv_reader_release(&reader);
}

static void a_read_error_is_reported(void **state)
{
    (void)state;
    struct csv_reader reader;
    struct text all = {0};
    struct pieces pieces = {"1,2\n3,", 6, 0, 6, EIO};
    csv_reader_source(&reader, read_piece, &pieces);
    add_rows(&reader, &all);
    assert_contains(text_get(&all), "1 [1][2]\n2 !read error at line 2: ");
    text_release(&all);
}

/* ---- small tables ---- */

static struct csv_grid read_grid(char *bytes)
{
    struct csv_grid grid;
    struct error why = {0};
    assert_int_equal(csv_grid_read(bytes, strlen(bytes), &grid, &why), ERR_OK);
    return grid;
}

static void cells_are_found_by_column_name(void **state)
{
    (void)state;
    char bytes[] = "\xEF\xBB\xBFname, value\r\n\"a \"\"b\"\", c\",1\r\n\r\n\"two\nlines\",\nlast,3";
    struct csv_grid grid = read_grid(bytes);
    assert_int_equal(grid.columns, 2);
    assert_int_equal(grid.rows, 3);
    long name = csv_grid_column(&grid, "name"), value = csv_grid_column(&grid, "value");
    assert_string_equal(csv_grid_cell(&grid, 0, name), "a \"b\", c");
    assert_string_equal(csv_grid_cell(&grid, 0, value), "1");
    assert_string_equal(csv_grid_cell(&grid, 1, name), "two\nlines");
    assert_string_equal(csv_grid_cell(&grid, 1, value), "");
    assert_string_equal(csv_grid_cell(&grid, 2, value), "3");
    assert_int_equal(grid.lines[0], 2);
    assert_int_equal(grid.lines[1], 4);
    assert_int_equal(grid.lines[2], 6);
    assert_int_equal(csv_grid_column(&grid, "other"), -1);
    assert_string_equal(csv_grid_cell(&grid, 0, -1), "");
    csv_grid_release(&grid);
}

static void a_table_may_have_no_rows(void **state)
{
    (void)state;
    char bytes[] = "a,b\n";
    struct csv_grid grid = read_grid(bytes);
    assert_int_equal(grid.rows, 0);
    csv_grid_release(&grid);
}

static void errors_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *says;
    } CASES[] = {
        {"", "empty"},
        {"a,b\n1,2\n1,2,3\n", "line 3: 3 fields, but the header has 2"},
        {"a,b\n1\n", "line 2: 1 fields, but the header has 2"},
        {"a,b\n\"1,2\n", "line 2: a quote is not closed"},
        {"a,b\n\"1\"x,2\n", "line 2: text after a closing quote"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char bytes[64];
        struct csv_grid grid;
        struct error why = {0};
        size_t length = strlen(CASES[i].bytes);
        memcpy(bytes, CASES[i].bytes, length + 1);
        assert_int_equal(csv_grid_read(bytes, length, &grid, &why), ERR_BAD_VALUE);
        assert_contains(why.text, CASES[i].says);
    }
}

/* ---- writing ---- */

static void fields_are_quoted_only_when_necessary(void **state)
{
    (void)state;
    struct text out = {0};
    csv_add(&out, "plain");
    text_add(&out, ",");
    csv_add(&out, "a \"b\", c");
    text_add(&out, ",");
    csv_add(&out, "two\nlines");
    assert_string_equal(text_get(&out), "plain,\"a \"\"b\"\", c\",\"two\nlines\"");
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_quotes_are_parsed),
        cmocka_unit_test(invalid_rows_are_reported_and_skipped),
        cmocka_unit_test(a_row_over_the_limit_is_an_error),
        cmocka_unit_test(the_header_names_the_columns),
        cmocka_unit_test(a_read_error_is_reported),
        cmocka_unit_test(fields_are_quoted_only_when_necessary),
        cmocka_unit_test(cells_are_found_by_column_name),
        cmocka_unit_test(a_table_may_have_no_rows),
        cmocka_unit_test(errors_name_the_line),
    };
    return RUN_TESTS(tests);
}
