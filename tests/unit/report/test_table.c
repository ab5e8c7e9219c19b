#include "support/unit.h"

#include <string.h>

#include "core/text.h"
#include "report/text/format.h"

static const struct table_column COLUMNS[] = {
    {"name", false}, {"power", true}, {"note", false}, {"last", false}};

static void fill(struct table *table, const char *const *cells, size_t count)
{
    table_init(table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < count; i++)
        table_add(table, cells[i]);
}

static void expect(const struct table *table, const char *indent, bool color, const char *text)
{
    struct text out = {0};
    table_write(table, indent, color, &out);
    assert_false(out.failed);
    assert_string_equal(text_get(&out), text);
    text_release(&out);
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    (void)state;
    static const char *const CELLS[] = {"gpu0", "1.0 ± 0.1 W", "a", "x", "cpu", "9 W", "", "y"};
    struct table table;
    fill(&table, CELLS, 8);
    expect(&table, "  ", false,
           "  name        power  note  last\n"
           "  gpu0  1.0 ± 0.1 W  a     x\n"
           "  cpu           9 W        y\n");
    table_release(&table);
}

static void an_empty_column_is_omitted(void **state)
{
    (void)state;
    static const char *const CELLS[] = {"gpu0", "1 W", "", "x"};
    struct table table;
    fill(&table, CELLS, 4);
    expect(&table, "", false, "name  power  last\ngpu0    1 W  x\n");
    table_release(&table);
}

static void lines_have_no_trailing_spaces(void **state)
{
    (void)state;
    static const char *const CELLS[] = {"gpu0", "1 W", "n", "x", "total", "", "", ""};
    struct table table;
    fill(&table, CELLS, 8);
    expect(&table, "", false,
           "name   power  note  last\n"
           "gpu0     1 W  n     x\n"
           "total\n");
    table_release(&table);
}

static void a_table_without_rows_has_its_header(void **state)
{
    (void)state;
    struct table table;
    fill(&table, NULL, 0);
    expect(&table, "", true, "\033[1mname  power  note  last\n\033[0m");
    table_release(&table);
}

static void blocks_with_shared_widths_are_aligned(void **state)
{
    (void)state;
    static const char *const WIDE[] = {"a long name", "1 W", "n", "x"};
    static const char *const NARROW[] = {"b", "2 W", "n", "x"};
    size_t widths[4] = {0};
    struct table table;
    struct text out = {0};
    fill(&table, WIDE, 4);
    table_widen(&table, widths);
    table_write_header(&table, widths, "", false, &out);
    table_write_rows(&table, widths, "", &out);
    table_release(&table);
    fill(&table, NARROW, 4);
    table_widen(&table, widths);
    table_write_rows(&table, widths, "", &out);
    assert_string_equal(text_get(&out), "name         power  note  last\n"
                                        "a long name    1 W  n     x\n"
                                        "b              2 W  n     x\n");
    table_release(&table);
    text_release(&out);
}

static void width_counts_characters_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(utf8_width(""), 0);
    assert_int_equal(utf8_width("12 W"), 4);
    assert_int_equal(utf8_width("± 63 °C ▁█"), 10);
}

static void many_and_long_cells_are_handled(void **state)
{
    (void)state;
    struct table table;
    struct text out = {0};
    char name[600];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    table_init(&table, COLUMNS, 4);
    for (int i = 0; i < 500; i++) {
        table_add(&table, i == 250 ? name : "row");
        table_addf(&table, "%d W", i);
        table_add(&table, "n");
        table_add(&table, "x");
    }
    table_write(&table, "", false, &out);
    assert_false(out.failed);
    size_t lines = 0;
    for (const char *at = text_get(&out); (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 501);
    table_release(&table);
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(an_empty_column_is_omitted),
        cmocka_unit_test(lines_have_no_trailing_spaces),
        cmocka_unit_test(a_table_without_rows_has_its_header),
        cmocka_unit_test(blocks_with_shared_widths_are_aligned),
        cmocka_unit_test(width_counts_characters_not_bytes),
        cmocka_unit_test(many_and_long_cells_are_handled),
    };
    return RUN_TESTS(tests);
}
