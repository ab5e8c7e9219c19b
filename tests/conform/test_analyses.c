/* test: tsan */
/* Every analysis in the registry against the contract of analysis/analysis.h: whatever a table
 * lacks, the result is valid JSON or "not enough data" with what is missing, and it is
 * deterministic. */
#include "support/conform.h"

#include <stdlib.h>

#include "analysis/analysis.h"
#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"
#include "report/print/print.h"
#include "support/tables.h"

enum { ROWS_MAX = 3000, ROWS_SLOW = 100 };

/* ---- checks ---- */

static void write_json(const struct result *result, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    result_to_json(result, NULL, &json);
}

static void check_result(const struct analysis_driver *driver, const struct run_table *table)
{
    struct params none = {0};
    struct text first = {0}, again = {0};
    struct error why = {0};
    struct result once, twice;
    struct jv *result;
    const struct analysis_input input = {.table = table};
    enum err err = analysis_run(driver, &input, &none, &once);
    CHECK(err == ERR_OK || err == ERR_NO_DATA, driver->name);
    CHECK(analysis_run(driver, &input, &none, &twice) == err, driver->name);
    write_json(&once, &first);
    write_json(&twice, &again);
    CHECK(strcmp(text_get(&first), text_get(&again)) == 0, driver->name);
    CHECK(jv_parse(text_get(&first), first.length, &result, &why) == ERR_OK, driver->name);
    CHECK(strcmp(jv_text(jv_get(result, "analysis")), driver->name) == 0, driver->name);
    CHECK(jv_is_object(jv_get(result, "summary")), driver->name);
    CHECK(jv_is_object(jv_get(result, "data")), driver->name);
    CHECK(jv_is_array(jv_get(result, "warnings")), driver->name);
    CHECK(jv_count(result) == 4, driver->name);
    const char *missing = jv_text(jv_path(result, "summary.not_enough_data"));
    CHECK((missing != NULL) == (err == ERR_NO_DATA), driver->name);
    CHECK(!missing || (missing[0] && strcmp(missing, once.why.text) == 0), driver->name);
    jv_free(result);
    result_release(&once);
    result_release(&twice);
    text_release(&first);
    text_release(&again);
}

static void check_all(enum filling filling, size_t rows, bool all_failed)
{
    struct run_table table = table_of(filling, rows, all_failed);
    for (size_t i = 0; ANALYSIS_DRIVERS[i]; i++)
        check_result(ANALYSIS_DRIVERS[i], &table);
    table_free(&table);
}

static void every_analysis_handles_any_table(void **state)
{
    (void)state;
    if (TEST_SANITIZES_THREADS)
        SKIP("so much of one thread");
    /* Takes minutes under valgrind or a sanitizer;
     * running_all_analyses_together_gives_the_same_results covers many rows there. */
    const size_t ROWS[] = {1, 2, 3, 12, test_is_instrumented() ? ROWS_SLOW : ROWS_MAX};
    for (int filling = FILL_NOTHING; filling <= FILL_EXTREME; filling++)
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
            check_all((enum filling)filling, ROWS[i], false);
}

static void every_analysis_handles_a_run_with_only_failures(void **state)
{
    (void)state;
    if (TEST_SANITIZES_THREADS)
        SKIP("one thread");
    check_all(FILL_VARIED, 5, true);
    check_all(FILL_NOTHING, 1, true);
}

static void running_all_analyses_together_gives_the_same_results(void **state)
{
    (void)state;
    enum { ANALYSES_MAX = 64, ROWS = 12000 }; /* enough for threads */
    struct params none = {0};
    struct result results[ANALYSES_MAX];
    struct run_table table = table_of(FILL_VARIED, ROWS, false);
    size_t count = 0;
    while (ANALYSIS_DRIVERS[count])
        count++;
    assert_true(count <= ANALYSES_MAX);
    const struct analysis_input input = {.table = &table};
    analysis_run_all(ANALYSIS_DRIVERS, count, &input, &none, results);
    /* A data race would have been reported by now. */
    for (size_t i = 0; i < count && !TEST_SANITIZES_THREADS; i++) {
        struct text alone = {0}, together = {0};
        struct result result;
        CHECK(analysis_run(ANALYSIS_DRIVERS[i], &input, &none, &result) == results[i].err,
              ANALYSIS_DRIVERS[i]->name);
        write_json(&result, &alone);
        write_json(&results[i], &together);
        CHECK(strcmp(text_get(&alone), text_get(&together)) == 0, ANALYSIS_DRIVERS[i]->name);
        text_release(&alone);
        text_release(&together);
        result_release(&result);
    }
    for (size_t i = 0; i < count; i++)
        result_release(&results[i]);
    table_free(&table);
}

static void drivers_are_well_formed_and_found_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; ANALYSIS_DRIVERS[i]; i++) {
        struct error why = {0};
        const struct analysis_driver *driver = ANALYSIS_DRIVERS[i];
        CHECK(driver->summary && driver->summary[0], driver->name);
        CHECK(driver->reads_layers || driver->reads_sweep || driver->reads_traces ||
                  driver->needs.numbers,
              driver->name);
        CHECK(driver->finding && driver->finding->path, driver->name);
        for (const struct result_phrase *phrase = driver->finding; phrase->path; phrase++)
            CHECK(phrase->before && phrase->after, driver->name);
        CHECK(analysis_driver_find(driver->name, &why) == driver, driver->name);
        for (const struct param_spec *spec = driver->params; spec && spec->name; spec++)
            CHECK(spec->value && spec->help, driver->name);
    }
    struct error why = {0};
    assert_null(analysis_driver_find("qualty", &why));
    assert_contains(why.text, "did you mean 'quality'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_analysis_handles_any_table),
        cmocka_unit_test(every_analysis_handles_a_run_with_only_failures),
        cmocka_unit_test(running_all_analyses_together_gives_the_same_results),
        cmocka_unit_test(drivers_are_well_formed_and_found_by_name),
    };
    return RUN_TESTS(tests);
}
