/* One result in every format: the same figures, under the same names. */
#include "report/print/print.h"

#include <string.h>

#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "support/unit.h"

static void fill(struct result *result)
{
    result_begin(result, "sample");
    result_text(result, "model", "a|b");
    result_number(result, "energy_j", 12.5, "J");
    result_uncertain(result, "energy_j", 0.5);
    result_aside(result, "view"); /* in no expected output below */
    result_number(result, "energy_mj", 12500, "");
    result_list(result, "rows");
    result_group(result, NULL);
    result_count(result, "hidden", 1);
    result_end(result);
    result_end(result);
    result_end(result);
    result_number(result, "unknown", UNKNOWN, "W");
    result_list(result, "points");
    for (int i = 0; i < 2; i++) {
        result_group(result, NULL);
        result_text(result, "name", i ? "two" : "one, quoted");
        result_number(result, "saving", i ? UNKNOWN : 0.25, "%");
        result_flag(result, "best", i);
        result_end(result);
    }
    result_end(result);
    result_null(result, "request");
    result_json(result, "devices", "[{\"id\":0}]");
    result_numbers(result, "clocks", (const double[]){900, 1200.5}, 2, "MHz");
    result_end(result);
    result_warn(result, "estimated");
}

static void check(enum print_format format, bool with_table, const char *expected)
{
    static const struct result_column COLUMNS[] = {{"setting", "name", 0},
                                                   {"saving_pct", "saving", 100},
                                                   {"best", "best", 0},
                                                   {"chosen", "best", 1},
                                                   {0}};
    struct result result = {0};
    struct text out = {0};
    fill(&result);
    if (with_table)
        result_table(&result, "points", COLUMNS);
    result_print(&result, format, NULL, false, &out);
    assert_string_equal(text_get(&out), expected);
    text_release(&out);
    result_release(&result);
}

static void test_json_has_every_item_in_order(void **state)
{
    (void)state;
    check(PRINT_JSON, false,
          "{\n"
          "  \"model\": \"a|b\",\n"
          "  \"energy_j\": 12.5,\n"
          "  \"unknown\": null,\n"
          "  \"points\": [\n"
          "    {\n"
          "      \"name\": \"one, quoted\",\n"
          "      \"saving\": 0.25,\n"
          "      \"best\": false\n"
          "    },\n"
          "    {\n"
          "      \"name\": \"two\",\n"
          "      \"saving\": null,\n"
          "      \"best\": true\n"
          "    }\n"
          "  ],\n"
          "  \"request\": null,\n"
          "  \"devices\": [\n"
          "    {\n"
          "      \"id\": 0\n"
          "    }\n"
          "  ],\n"
          "  \"clocks\": [\n"
          "    900,\n"
          "    1200.5\n"
          "  ]\n"
          "}\n");
}

static void test_csv_is_the_table_that_the_result_marks(void **state)
{
    (void)state;
    check(PRINT_CSV, true,
          "setting,saving_pct,best,chosen\n"
          "\"one, quoted\",25,false,0\n"
          "two,,true,1\n");
}

static void test_csv_of_one_row_is_the_result_itself(void **state)
{
    static const struct result_column COLUMNS[] = {{"model", "model", 0},
                                                   {"energy_mj", "view.energy_mj", 0},
                                                   {"first", "points.0.name", 0},
                                                   {0}};
    (void)state;
    struct result result = {0};
    struct text out = {0};
    fill(&result);
    result_table(&result, "", COLUMNS);
    result_print(&result, PRINT_CSV, NULL, false, &out);
    assert_string_equal(text_get(&out), "model,energy_mj,first\n"
                                        "a|b,12500,\"one, quoted\"\n");
    text_release(&out);
    result_release(&result);
}

static void test_csv_without_a_table_has_a_row_per_figure(void **state)
{
    (void)state;
    check(PRINT_CSV, false,
          "path,value,unit,error,low,high\n"
          "model,a|b,,,,\n"
          "energy_j,12.5,J,0.5,,\n"
          "unknown,,W,,,\n"
          "points.0.name,\"one, quoted\",,,,\n"
          "points.0.saving,0.25,%,,,\n"
          "points.0.best,false,,,,\n"
          "points.1.name,two,,,,\n"
          "points.1.saving,,%,,,\n"
          "points.1.best,true,,,,\n"
          "request,,,,,\n"
          "devices,\"[{\"\"id\"\":0}]\",,,,\n"
          "clocks.0,900,MHz,,,\n"
          "clocks.1,1200.5,MHz,,,\n");
}

/* Two sides, each with metrics by name. */
static void fill_nested(struct result *result)
{
    result_begin(result, "nested");
    result_aside(result, "view");
    result_count(result, "tests", 3);
    result_end(result);
    result_list(result, "sides");
    for (int i = 0; i < 2; i++) {
        result_group(result, NULL);
        result_text(result, "name", i ? "second" : "first");
        result_group(result, "metrics");
        result_group(result, "power");
        result_number(result, "value", 10 * (i + 1), "W");
        result_end(result);
        result_end(result);
        result_end(result);
    }
    result_end(result);
    result_end(result);
}

static void test_csv_has_the_rows_of_every_item_of_a_list(void **state)
{
    static const struct result_column COLUMNS[] = {
        {"side", "^name", 0}, {"metric", "", 0}, {"value", "value", 0}, {0}};
    struct result result = {0};
    struct text out = {0};
    (void)state;
    fill_nested(&result);
    result_table(&result, "sides.*.metrics", COLUMNS);
    result_print(&result, PRINT_CSV, NULL, false, &out);
    assert_string_equal(text_get(&out), "side,metric,value\n"
                                        "first,power,10\n"
                                        "second,power,20\n");
    text_release(&out);
    result_release(&result);
}

static void test_csv_of_a_table_has_every_figure_with_its_error(void **state)
{
    struct result result = {0};
    struct text out = {0};
    (void)state;
    result_begin(&result, "settings");
    result_list(&result, "settings");
    for (int i = 0; i < 2; i++) {
        result_group(&result, NULL);
        result_group(&result, "values");
        result_text(&result, "threads", i ? "4" : "1");
        result_end(&result);
        result_figure(&result, "joules", 3 + i, i ? UNKNOWN : 0.5, "J");
        result_number(&result, "unknown", UNKNOWN, "W");
        result_end(&result);
    }
    result_end(&result);
    result_end(&result);
    result_table(&result, "settings", NULL);
    result_print(&result, PRINT_CSV, NULL, false, &out);
    assert_string_equal(text_get(&out), "values.threads,joules,joules_error\n"
                                        "1,3,0.5\n"
                                        "4,4,\n");
    text_release(&out);
    result_release(&result);
}

static void test_only_views_see_values_aside(void **state)
{
    struct result result = {0};
    (void)state;
    fill_nested(&result);
    assert_true(result_number_at(result.items, "view.tests") == 3);
    for (enum print_format format = PRINT_TABLE; format <= PRINT_MARKDOWN; format++) {
        struct text out = {0};
        result_print(&result, format, NULL, false, &out);
        assert_null(strstr(text_get(&out), "tests"));
        text_release(&out);
    }
    result_release(&result);
}

static void test_text_and_markdown_have_the_figures_with_units(void **state)
{
    (void)state;
    check(PRINT_TABLE, false,
          "model                          a|b\n"
          "energy j                       12.50 ± 0.50 J\n"
          "\n"
          "   points\n"
          "     name         saving  best\n"
          "     one, quoted  25.0 %    no\n"
          "     two               -   yes\n"
          "warning: estimated\n");
    check(PRINT_MARKDOWN, false,
          "# sample\n\n"
          "- model: a\\|b\n"
          "- energy j: 12.50 ± 0.50 J\n"
          "\n## points\n\n"
          "| name | saving | best |\n"
          "|---|---:|---:|\n"
          "| one, quoted | 25.0 % | no |\n"
          "| two | - | yes |\n"
          "\n**warning**: estimated\n");
}

static void test_json_of_a_command_may_end_in_an_empty_line(void **state)
{
    (void)state;
    static const struct print_views VIEWS = {.has_blank_line = true};
    struct result result = {0};
    struct text out = {0};
    result_begin(&result, "sample");
    result_end(&result);
    result_print(&result, PRINT_JSON, &VIEWS, false, &out);
    assert_string_equal(text_get(&out), "{}\n\n");
    text_release(&out);
    result_release(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_has_every_item_in_order),
        cmocka_unit_test(test_json_of_a_command_may_end_in_an_empty_line),
        cmocka_unit_test(test_csv_is_the_table_that_the_result_marks),
        cmocka_unit_test(test_csv_of_one_row_is_the_result_itself),
        cmocka_unit_test(test_csv_without_a_table_has_a_row_per_figure),
        cmocka_unit_test(test_csv_has_the_rows_of_every_item_of_a_list),
        cmocka_unit_test(test_csv_of_a_table_has_every_figure_with_its_error),
        cmocka_unit_test(test_only_views_see_values_aside),
        cmocka_unit_test(test_text_and_markdown_have_the_figures_with_units),
    };
    return RUN_TESTS(tests);
}
