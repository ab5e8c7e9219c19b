/* Small CSV tables: quotes, ends of lines, and what is no table. */
#include "core/csv_grid.h"

#include "support/unit.h"

static struct csv_grid read_grid(char *bytes)
{
    struct csv_grid grid;
    struct error why = {0};
    assert_int_equal(csv_grid_read(bytes, strlen(bytes), &grid, &why), ERR_OK);
    return grid;
}

static void test_names_and_cells(void **state)
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

static void test_a_table_may_have_no_rows(void **state)
{
    (void)state;
    char bytes[] = "a,b\n";
    struct csv_grid grid = read_grid(bytes);
    assert_int_equal(grid.rows, 0);
    csv_grid_release(&grid);
}

static void test_what_is_wrong_is_named_by_line(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *says;
    } CASES[] = {
        {"", "empty"},
        {"a,b\n1,2\n1,2,3\n", "line 3: 3 fields where 2"},
        {"a,b\n1\n", "line 2: 1 fields where 2"},
        {"a,b\n\"1,2\n", "line 2: a quote that is not closed"},
        {"a,b\n\"1\"x,2\n", "line 2: text behind"},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_cells),
        cmocka_unit_test(test_a_table_may_have_no_rows),
        cmocka_unit_test(test_what_is_wrong_is_named_by_line),
    };
    return RUN_TESTS(tests);
}
