/* Which libllama is used, and the errors for the others. */
#include "engine/engine.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "support/unit.h"

/* ---- incompatible libraries ---- */

static const struct {
    const char *fake;
    const char *says[3]; /* all expected substrings, besides the path */
} INCOMPATIBLE[] = {
    {"llama_larger", {"llama.cpp 0.5.0", "llama_context_params has", "bytes, expected"}},
    {"llama_larger_newer", {"llama.cpp 9.9.9", "tested: 0.5.0", "bytes, expected"}},
    {"llama_swapped_members",
     {"llama.cpp 0.5.0", "llama_context_params has an unexpected layout", NULL}},
    {"llama_no_functions", {"llama.cpp 0.5.0", "has no llama_log_set", NULL}},
    {"llama_no_backends", {"no libggml-cpu-*.so next to it", NULL, NULL}},
};

static void an_incompatible_library_is_rejected_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof INCOMPATIBLE / sizeof *INCOMPATIBLE; i++) {
        char path[512];
        const struct engine_library *library = NULL;
        struct error why = {0};
        snprintf(path, sizeof path, "%s/libfake_%s.so", IPW_FAKES, INCOMPATIBLE[i].fake);
        assert_int_equal(access(path, F_OK), 0);
        setenv("IPW_LLAMA_LIB", path, 1);
        assert_int_equal(engine_library_open(&library, &why), ERR_UNSUPPORTED);
        assert_null(library);
        assert_contains(why.text, path);
        for (size_t s = 0; s < 3 && INCOMPATIBLE[i].says[s]; s++)
            assert_contains(why.text, INCOMPATIBLE[i].says[s]);
    }
    unsetenv("IPW_LLAMA_LIB");
}

static void actual_and_expected_sizes_are_reported(void **state)
{
    (void)state;
    const struct engine_library *library;
    struct error why = {0};
    size_t found = 0, expected = 0;
    setenv("IPW_LLAMA_LIB", IPW_FAKES "/libfake_llama_larger.so", 1);
    assert_int_equal(engine_library_open(&library, &why), ERR_UNSUPPORTED);
    const char *says = strstr(why.text, "has ");
    assert_non_null(says);
    assert_int_equal(sscanf(says, "has %zu bytes, expected %zu", &found, &expected), 2);
    assert_int_equal(found, expected + 8);
    unsetenv("IPW_LLAMA_LIB");
}

static void a_path_without_a_library_is_an_error(void **state)
{
    (void)state;
    const struct engine_library *library;
    struct error why = {0};
    setenv("IPW_LLAMA_LIB", "/no/such/libllama.so", 1);
    assert_int_equal(engine_library_open(&library, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "IPW_LLAMA_LIB /no/such/libllama.so");
    setenv("IPW_LLAMA_LIB", "/etc/passwd", 1);
    assert_int_equal(engine_library_open(&library, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "/etc/passwd");
    setenv("IPW_LLAMA_LIB", "/proc/self", 1); /* a folder without a library */
    assert_int_equal(engine_library_open(&library, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "no libllama there");
    unsetenv("IPW_LLAMA_LIB");
    assert_int_equal(engine_library_use("/no/such", &why), ERR_NOT_FOUND);
}

/* ---- untested versions ---- */

/* Opens in a child, because a process opens one library only: ERR_OK or the error, with its text in
 * *said, after any warnings. */
static struct text *warnings;

static void keep_warning(enum log_level level, const char *line)
{
    if (level == LOG_WARN)
        text_addf(warnings, "%s\n", line);
}

static enum err open_in_child(const char *fake, bool by_environment, char *said, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char path[512];
        const struct engine_library *library;
        struct error why = {0};
        struct text text = {0};
        warnings = &text;
        log_to(keep_warning, LOG_WARN);
        snprintf(path, sizeof path, "%s/libfake_%s.so", IPW_FAKES, fake);
        enum err err = by_environment ? (enum err)setenv("IPW_LLAMA_LIB", path, 1)
                                      : engine_library_use(path, &why);
        if (!err)
            err = engine_library_open(&library, &why);
        if (!err && library->is_tested)
            text_add(&text, "it counts as tested");
        text_add(&text, err ? why.text : "");
        _exit(write(ends[1], text_get(&text), text.length) < 0 ? 99 : (int)err);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], said + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    said[used] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return (enum err)WEXITSTATUS(status);
}

static void an_untested_version_is_used_through_the_environment_with_a_warning(void **state)
{
    (void)state;
    static const char *const FAKES[][2] = {{"llama_newer", "llama.cpp 9.9.9"},
                                           {"llama_no_version", "llama.cpp of unknown version"}};
    for (size_t i = 0; i < 2; i++) {
        char said[1024];
        assert_int_equal(open_in_child(FAKES[i][0], true, said, sizeof said), ERR_OK);
        assert_contains(said, FAKES[i][1]);
        assert_contains(said, "was not tested");
        assert_contains(said, "tested: 0.5.0");
        assert_null(strstr(said, "it counts as tested"));
    }
}

static void an_untested_version_is_rejected_otherwise(void **state)
{
    (void)state;
    static const char *const FAKES[] = {"llama_newer", "llama_no_version"};
    for (size_t i = 0; i < 2; i++) {
        char said[1024];
        assert_int_equal(open_in_child(FAKES[i], false, said, sizeof said), ERR_UNSUPPORTED);
        assert_contains(said, "tested: 0.5.0");
        assert_contains(said, "set IPW_LLAMA_LIB");
    }
}

/* ---- the installed library ---- */

static enum err library_available(struct error *why)
{
    const struct engine_library *library;
    return engine_library_open(&library, why);
}

static void the_installed_library_is_described(void **state)
{
    (void)state;
    SKIP_WITHOUT(library_available);
    const struct engine_library *library, *again;
    struct error why = {0};
    assert_int_equal(engine_library_open(&library, &why), ERR_OK);
    assert_contains(library->version, "0.5.0");
    assert_true(library->is_tested);
    assert_string_equal(engine_tested_versions(), "0.5.0");
    assert_int_equal(access(library->path, R_OK), 0);
    assert_true(library->cpu[0] != '\0');
    /* Opened once: later changes of the environment have no effect. */
    setenv("IPW_LLAMA_LIB", "/no/such/libllama.so", 1);
    assert_int_equal(engine_library_open(&again, &why), ERR_OK);
    assert_ptr_equal(library, again);
    unsetenv("IPW_LLAMA_LIB");
    assert_int_equal(engine_library_use(library->path, &why), ERR_OK);
    assert_int_equal(engine_library_use("/etc/passwd", &why), ERR_USAGE);
    assert_contains(why.text, "already uses");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_incompatible_library_is_rejected_with_the_reason),
        cmocka_unit_test(actual_and_expected_sizes_are_reported),
        cmocka_unit_test(a_path_without_a_library_is_an_error),
        cmocka_unit_test(an_untested_version_is_used_through_the_environment_with_a_warning),
        cmocka_unit_test(an_untested_version_is_rejected_otherwise),
        cmocka_unit_test(the_installed_library_is_described),
    };
    return RUN_TESTS(tests);
}
