/* Runs with modified values and lines, through analyze, report, compare, plot and export: no read
 * or write out of bounds, no overflow of a sum, and every rejection has a reason. */
#include "support/unit.h"

#include <stdlib.h>

#include "port/json_read.h"
#include "report/html/html.h"
#include "support/run_files.h"

enum { ROUNDS = 30, ROUNDS_SLOW = 2 };

static void check_damaged_run(const char *name, uint64_t seed)
{
    struct text files = {0};
    char *bytes = malloc(RUN_FILES_MAX);
    assert_non_null(bytes);
    assert_true(run_files_add(&files, name));
    assert_true(files.length <= RUN_FILES_MAX);
    assert_null(run_files_exercise(files.bytes, files.length));
    /* fuzz_run_files has the sanitized rounds. */
    int rounds = test_is_instrumented() ? ROUNDS_SLOW : ROUNDS;
    for (int round = 0; round < rounds; round++, seed++) {
        memcpy(bytes, files.bytes, files.length);
        const char *wrong = run_files_exercise(bytes, run_files_damage(bytes, files.length, seed));
        if (wrong)
            fail_msg("%s, seed %llu: %s", name, (unsigned long long)seed, wrong);
    }
    free(bytes);
    text_release(&files);
}

static void damaged_runs_with_concurrent_queries(void **state)
{
    (void)state;
    check_damaged_run("gpu-concurrent", 1);
}

static void damaged_runs_with_a_judge(void **state)
{
    (void)state;
    check_damaged_run("cpu-judged", 1000);
}

static void damaged_runs_with_several_starts(void **state)
{
    (void)state;
    check_damaged_run("cpu-killed-resumed", 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_runs_with_concurrent_queries),
        cmocka_unit_test(damaged_runs_with_a_judge),
        cmocka_unit_test(damaged_runs_with_several_starts),
    };
    return RUN_TESTS(tests);
}
