/* Which libllama is taken, and what is said of those that are not. */
#include "engine/engine.h"

#include <stdlib.h>
#include <unistd.h>

#include "support/unit.h"

/* ---- libraries that do not fit ---- */

static const struct {
    const char *fake;
    const char *says[3]; /* all of them, beside the path */
} UNFIT[] = {
    {"llama_newer", {"llama.cpp 9.9.9", "where 0.5.0 fits", NULL}},
    {"llama_unnamed", {"llama.cpp of an unknown version", "where 0.5.0 fits", NULL}},
    {"llama_larger", {"llama.cpp 0.5.0", "llama_context_params has", "bytes, where"}},
    {"llama_rearranged", {"llama.cpp 0.5.0", "llama_context_params has other members", NULL}},
    {"llama_bare", {"llama.cpp 0.5.0", "has no llama_log_set", NULL}},
    {"llama_alone", {"no libggml-cpu-*.so beside it", NULL, NULL}},
};

static void a_library_that_does_not_fit_is_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof UNFIT / sizeof *UNFIT; i++) {
        char path[512];
        const struct engine_library *library = NULL;
        struct error why = {0};
        snprintf(path, sizeof path, "%s/libfake_%s.so", IPW_FAKES, UNFIT[i].fake);
        assert_int_equal(access(path, F_OK), 0);
        setenv("IPW_LLAMA_LIB", path, 1);
        assert_int_equal(engine_library_open(&library, &why), ERR_UNSUPPORTED);
        assert_null(library);
        assert_contains(why.text, path);
        for (size_t s = 0; s < 3 && UNFIT[i].says[s]; s++)
            assert_contains(why.text, UNFIT[i].says[s]);
    }
    unsetenv("IPW_LLAMA_LIB");
}

static void the_size_found_and_the_one_expected_are_both_named(void **state)
{
    (void)state;
    const struct engine_library *library;
    struct error why = {0};
    size_t found = 0, expected = 0;
    setenv("IPW_LLAMA_LIB", IPW_FAKES "/libfake_llama_larger.so", 1);
    assert_int_equal(engine_library_open(&library, &why), ERR_UNSUPPORTED);
    const char *says = strstr(why.text, "has ");
    assert_non_null(says);
    assert_int_equal(sscanf(says, "has %zu bytes, where %zu", &found, &expected), 2);
    assert_int_equal(found, expected + 8);
    unsetenv("IPW_LLAMA_LIB");
}

static void what_is_no_library_is_told(void **state)
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
    setenv("IPW_LLAMA_LIB", "/proc/self", 1); /* a folder without one */
    assert_int_equal(engine_library_open(&library, &why), ERR_UNSUPPORTED);
    assert_contains(why.text, "there is no libllama");
    unsetenv("IPW_LLAMA_LIB");
    assert_int_equal(engine_library_use("/no/such", &why), ERR_NOT_FOUND);
}

/* ---- the one that was brought ---- */

static enum err brought(struct error *why)
{
    const struct engine_library *library;
    return engine_library_open(&library, why);
}

static void the_one_that_fits_says_what_it_is(void **state)
{
    (void)state;
    SKIP_WITHOUT(brought);
    const struct engine_library *library, *again;
    struct error why = {0};
    assert_int_equal(engine_library_open(&library, &why), ERR_OK);
    assert_contains(library->version, "0.5.0");
    assert_int_equal(access(library->path, R_OK), 0);
    assert_true(library->cpu[0] != '\0');
    /* Opened once: whatever the environment says later, it stays. */
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
        cmocka_unit_test(a_library_that_does_not_fit_is_refused_with_the_reason),
        cmocka_unit_test(the_size_found_and_the_one_expected_are_both_named),
        cmocka_unit_test(what_is_no_library_is_told),
        cmocka_unit_test(the_one_that_fits_says_what_it_is),
    };
    return RUN_TESTS(tests);
}
