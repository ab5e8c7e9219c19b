/* Libraries opened at run time: the first name that opens, required and optional symbols. */
#include "port/dl.h"

#include <stdlib.h>
#include <string.h>

#include "support/unit.h"

static void test_first_name_that_opens_is_used(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"libipw-no-such.so.1", "libm.so.6", "libc.so.6", NULL};
    struct dl dl;
    struct error why;
    assert_int_equal(dl_open(&dl, NULL, NAMES, &why), ERR_OK);
    assert_string_equal(dl.name, "libm.so.6");
    assert_non_null(dl.handle);
    dl_close(&dl);
    assert_null(dl.handle);
    dl_close(&dl); /* closing twice is harmless */
}

static void test_error_names_the_first_library(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"libipw-first.so", "libipw-second.so", NULL};
    static const char *const NONE[] = {NULL};
    struct dl dl;
    struct error why;
    assert_int_equal(dl_open(&dl, NULL, NAMES, &why), ERR_ABSENT);
    assert_non_null(strstr(why.text, "libipw-first.so"));
    assert_null(dl.handle);
    assert_int_equal(dl_open(&dl, NULL, NONE, &why), ERR_ABSENT);
    assert_int_equal(dl_open(&dl, NULL, NAMES, NULL), ERR_ABSENT);
}

static void test_required_and_optional_symbols(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"libm.so.6", NULL};
    struct dl dl;
    struct error why;
    double (*cosine)(double) = NULL;
    void (*other)(void) = abort; /* must be cleared */
    assert_int_equal(dl_open(&dl, NULL, NAMES, &why), ERR_OK);
    const struct dl_symbol optional[] = {{"cos", &cosine, true}, {"ipw_none", &other, false}};
    assert_int_equal(dl_load(&dl, optional, 2, &why), ERR_OK);
    assert_near(cosine(0), 1, 1e-12);
    assert_null(other);
    const struct dl_symbol required[] = {{"ipw_none", &other, true}};
    assert_int_equal(dl_load(&dl, required, 1, &why), ERR_UNSUPPORTED);
    assert_string_equal(why.text, "libm.so.6 has no ipw_none");
    dl_close(&dl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_name_that_opens_is_used),
        cmocka_unit_test(test_error_names_the_first_library),
        cmocka_unit_test(test_required_and_optional_symbols),
    };
    return RUN_TESTS(tests);
}
