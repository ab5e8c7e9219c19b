/* Another program as a filter: found in PATH, fed, waited for, and its failures told. */
#include "port/filter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "port/scratch.h"
#include "support/unit.h"

static void test_programs_are_found_in_path(void **state)
{
    (void)state;
    const char *now = getenv("PATH");
    char path[256], *before = strdup(now ? now : "");
    assert_int_equal(program_find("sh", path, sizeof path), ERR_OK);
    assert_int_equal(access(path, X_OK), 0);
    assert_int_equal(program_find("ipw-no-such-program", path, sizeof path), ERR_NOT_FOUND);
    /* Neither the working directory, nor a folder, nor a file that may not be run. */
    for (size_t i = 0; i < 3; i++) {
        static const char *const PATHS[] = {"", "::", "/:/etc"};
        static const char *const NAMES[] = {"sh", "tests", "passwd"};
        setenv("PATH", PATHS[i], 1);
        assert_int_equal(program_find(NAMES[i], path, sizeof path), ERR_NOT_FOUND);
    }
    unsetenv("PATH");
    assert_int_equal(program_find("sh", path, sizeof path), ERR_NOT_FOUND);
    setenv("PATH", before, 1);
    free(before);
}

/* What a script of the shell makes of the input; `shown` has room for what it writes. */
static enum err run_script(const char *script, const char *input, char *shown, size_t size,
                           struct error *why)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct text text = {0};
    int file;
    assert_int_equal(scratch_open(&file, why), ERR_OK);
    text_add(&text, input);
    enum err err = filter_run(argv, &text, file, why);
    ssize_t length = pread(file, shown, size - 1, 0);
    assert_true(length >= 0);
    shown[length] = '\0';
    text_release(&text);
    close(file);
    return err;
}

static void test_what_it_reads_and_writes(void **state)
{
    (void)state;
    char shown[64];
    struct error why = {0};
    assert_int_equal(run_script("cat", "one\ntwo", shown, sizeof shown, &why), ERR_OK);
    assert_string_equal(shown, "one\ntwo");
    assert_int_equal(run_script("cat", "", shown, sizeof shown, &why), ERR_OK);
    assert_string_equal(shown, "");
    assert_int_equal(run_script("echo noise >&2; echo good", "", shown, sizeof shown, &why),
                     ERR_OK);
    assert_string_equal(shown, "good\n");
}

static void test_failures_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *script, *words;
    } CASES[] = {
        {"echo >&2; echo 'no such terminal' >&2; echo more >&2; exit 3",
         "failed (3): no such terminal"},
        {"exit 1", "it does not say why"},
        {"kill -9 $$", "signal 9"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char shown[64];
        struct error why = {0};
        assert_int_equal(run_script(CASES[i].script, "", shown, sizeof shown, &why), ERR_IO);
        assert_contains(why.text, CASES[i].words);
    }
    struct error why = {0};
    const char *const argv[] = {"/ipw-no-such-program", NULL};
    assert_int_equal(filter_run(argv, &(struct text){0}, 1, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "/ipw-no-such-program");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_are_found_in_path),
        cmocka_unit_test(test_what_it_reads_and_writes),
        cmocka_unit_test(test_failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
