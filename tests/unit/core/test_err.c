/* Errors: every code has a name and a text, errno maps, context is optional and never overflows. */
#include "core/err.h"

#include <errno.h>
#include <string.h>

#include "core/text.h"
#include "support/unit.h"

static void test_every_code_has_a_unique_name_and_text(void **state)
{
    (void)state;
    for (int i = 0; i < ERR_COUNT; i++) {
        assert_true(err_text(i)[0] != '\0');
        for (int j = 0; j < i; j++)
            assert_string_not_equal(err_text(i), err_text(j));
    }
    assert_int_equal(ERR_OK, 0);
    assert_string_equal(err_text(ERR_DENIED), "permission denied");
    assert_string_equal(err_text(ERR_COUNT), "unknown error");
    assert_string_equal(err_text((enum err)(-1)), "unknown error");
}

static void test_errno_is_mapped(void **state)
{
    (void)state;
    static const struct {
        int number;
        enum err err;
    } CASES[] = {
        {0, ERR_OK},
        {EACCES, ERR_DENIED},
        {EPERM, ERR_DENIED},
        {ENOENT, ERR_NOT_FOUND},
        {ENODEV, ERR_LOST},
        {ENXIO, ERR_LOST},
        {ENOSPC, ERR_NO_SPACE},
        {ENOMEM, ERR_NO_MEMORY},
        {EOPNOTSUPP, ERR_UNSUPPORTED},
        {EAGAIN, ERR_BUSY},
        {EINTR, ERR_INTERRUPTED},
        {ETIMEDOUT, ERR_TIMEOUT},
        {EIO, ERR_IO},
        {99999, ERR_IO},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(err_from_errno(CASES[i].number), CASES[i].err);
}

static void test_context_is_formatted_and_truncated(void **state)
{
    (void)state;
    struct error why = {0};
    assert_int_equal(err_set(&why, ERR_DENIED, "cannot read %s", "/sys/x"), ERR_DENIED);
    assert_int_equal(why.code, ERR_DENIED);
    assert_string_equal(why.text, "cannot read /sys/x");
    assert_int_equal(err_set(NULL, ERR_IO, "nobody listens"), ERR_IO);
    char long_text[1000];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    err_set(&why, ERR_IO, "%s", long_text);
    assert_int_equal(strlen(why.text), sizeof why.text - 1);
}

static void test_the_reason_after_a_long_path_is_kept(void **state)
{
    (void)state;
    struct error why;
    char path[1601];
    for (size_t length = 280; length < sizeof path; length += 11) {
        for (size_t i = 0; i < length; i++) /* "ö": no character may be cut */
            path[i] = "\xc3\xb6"[i % 2];
        path[length & ~(size_t)1] = '\0';
        err_set(&why, ERR_IO, "cannot open %s: %s", path, "File name too long");
        assert_true(str_starts(why.text, "cannot open \xc3\xb6"));
        assert_true(str_ends(why.text, "\xc3\xb6: File name too long"));
        assert_null(strchr(why.text, '\\'));
        assert_true(str_is_plain(why.text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_has_a_unique_name_and_text),
        cmocka_unit_test(test_errno_is_mapped),
        cmocka_unit_test(test_context_is_formatted_and_truncated),
        cmocka_unit_test(test_the_reason_after_a_long_path_is_kept),
    };
    return RUN_TESTS(tests);
}
