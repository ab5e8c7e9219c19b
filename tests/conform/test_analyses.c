/* Every analysis in the registry, held to the contract of analysis/analysis.h: whatever a table lacks,
 * the result is whole JSON or "not enough data" with what is missing, and always the same. */
#include "support/unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"

#define HOLD(condition, subject)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("%s: broken: %s\n", (subject), #condition);                                \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

enum { ROWS_MOST = 3000 };

/* ---- tables by hand ---- */

enum filling { FILL_NOTHING, FILL_SAME, FILL_VARIED, FILL_HOLES, FILL_EXTREME };

static double value_for(enum filling filling, size_t row, unsigned column)
{
    static const double EXTREMES[] = {0, -1, DBL_MAX, -DBL_MAX, DBL_MIN, 1e300, 1e-300};
    switch (filling) {
    case FILL_NOTHING:
        return UNKNOWN;
    case FILL_SAME:
        return 5;
    case FILL_HOLES:
        if ((row + column) % 3 == 0)
            return UNKNOWN;
        break;
    case FILL_EXTREME:
        return EXTREMES[(row * 5 + column) % (sizeof EXTREMES / sizeof *EXTREMES)];
    case FILL_VARIED:
        break;
    }
    return 1 + fmod((double)(row * 37 + (size_t)column * 11) * 0.618, 50);
}

static void fill_words(struct run_table *table)
{
    static char *texts[] = {(char *)"", (char *)"one", (char *)"two"};
    for (unsigned w = 0; w < RUN_WORDS; w++) {
        struct run_words *words = &table->words[w];
        *words = (struct run_words){calloc(table->rows, sizeof *words->ids), 0, texts, 3};
        assert_non_null(words->ids);
        for (size_t i = 0; i < table->rows; i++)
            words->ids[i] = (uint32_t)(i % 3);
    }
}

static struct run_table table_of(enum filling filling, size_t rows, bool all_failed)
{
    struct run_table table = {.rows = rows, .directory = "nowhere", .model = "m.\"1\""};
    for (unsigned c = 0; c < RUN_NUMBERS && filling != FILL_NOTHING; c++) {
        table.numbers[c] = malloc(rows * sizeof(double));
        assert_non_null(table.numbers[c]);
        for (size_t i = 0; i < rows; i++)
            table.numbers[c][i] = value_for(filling, i, c);
    }
    for (unsigned f = 0; f < RUN_FLAGS; f++) {
        table.flags[f] = malloc(rows);
        assert_non_null(table.flags[f]);
        for (size_t i = 0; i < rows; i++)
            table.flags[f][i] = (int8_t)((int)(i % 3) - 1);
    }
    for (size_t i = 0; i < rows; i++) {
        table.flags[RUN_FAILED][i] = all_failed || i % 7 == 6;
        table.failed += all_failed || i % 7 == 6;
    }
    fill_words(&table);
    return table;
}

static void table_free(struct run_table *table)
{
    for (unsigned c = 0; c < RUN_NUMBERS; c++)
        free(table->numbers[c]);
    for (unsigned f = 0; f < RUN_FLAGS; f++)
        free(table->flags[f]);
    for (unsigned w = 0; w < RUN_WORDS; w++)
        free(table->words[w].ids);
}

/* ---- what holds ---- */

static void hold_result(const struct analysis_driver *driver, const struct run_table *table)
{
    struct params none = {0};
    struct text first = {0}, again = {0};
    struct error why = {0};
    struct jv *result;
    enum err err = analysis_run(driver, table, &none, &first, &why);
    HOLD(err == ERR_OK || err == ERR_NO_DATA, driver->name);
    HOLD(analysis_run(driver, table, &none, &again, NULL) == err, driver->name);
    HOLD(strcmp(text_get(&first), text_get(&again)) == 0, driver->name);
    HOLD(jv_parse(text_get(&first), first.length, &result, &why) == ERR_OK, driver->name);
    HOLD(strcmp(jv_text(jv_get(result, "analysis")), driver->name) == 0, driver->name);
    HOLD(jv_is_object(jv_get(result, "summary")), driver->name);
    HOLD(jv_is_object(jv_get(result, "data")), driver->name);
    HOLD(jv_is_array(jv_get(result, "warnings")), driver->name);
    HOLD(jv_count(result) == 4, driver->name);
    const char *missing = jv_text(jv_path(result, "summary.not_enough_data"));
    HOLD((missing != NULL) == (err == ERR_NO_DATA), driver->name);
    HOLD(!missing || (missing[0] && strcmp(missing, why.text) == 0), driver->name);
    jv_free(result);
    text_release(&first);
    text_release(&again);
}

static void hold_all(enum filling filling, size_t rows, bool all_failed)
{
    struct run_table table = table_of(filling, rows, all_failed);
    for (size_t i = 0; ANALYSIS_DRIVERS[i]; i++)
        hold_result(ANALYSIS_DRIVERS[i], &table);
    table_free(&table);
}

static void test_any_table(void **state)
{
    (void)state;
    static const size_t ROWS[] = {1, 2, 3, 12, ROWS_MOST};
    for (int filling = FILL_NOTHING; filling <= FILL_EXTREME; filling++)
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
            hold_all((enum filling)filling, ROWS[i], false);
}

static void test_all_failed(void **state)
{
    (void)state;
    hold_all(FILL_VARIED, 5, true);
    hold_all(FILL_NOTHING, 1, true);
}

static void test_names(void **state)
{
    (void)state;
    for (size_t i = 0; ANALYSIS_DRIVERS[i]; i++) {
        struct error why = {0};
        const struct analysis_driver *driver = ANALYSIS_DRIVERS[i];
        HOLD(driver->summary && driver->summary[0], driver->name);
        HOLD(driver->needs.numbers, driver->name);
        HOLD(analysis_driver_find(driver->name, &why) == driver, driver->name);
        for (const struct param_spec *spec = driver->params; spec && spec->name; spec++)
            HOLD(spec->value && spec->help, driver->name);
    }
    struct error why = {0};
    assert_null(analysis_driver_find("qualty", &why));
    assert_contains(why.text, "did you mean 'quality'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_table),
        cmocka_unit_test(test_all_failed),
        cmocka_unit_test(test_names),
    };
    return RUN_TESTS_WITH(jv_available, tests);
}
