/* Scratch files: nameless, where TMPDIR says, whole transfers or an error. */
#include "port/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/unit.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/ipw-scratch-XXXXXX");
    return mkdtemp(folder) ? setenv("TMPDIR", folder, 1) : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    return rmdir(folder); /* fails when something was left in it */
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    int fd;
    struct error why;
    char back[6] = "";
    struct stat about;
    assert_int_equal(scratch_open(&fd, &why), ERR_OK);
    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_nlink, 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(scratch_write(fd, "hello", 5, 1000), ERR_OK);
    assert_int_equal(scratch_read(fd, back, 5, 1000), ERR_OK);
    assert_string_equal(back, "hello");
    assert_int_equal(scratch_read(fd, back, 5, 1001), ERR_IO); /* past the end */
    close(fd);
}

static void test_missing_tmpdir_is_an_error_that_names_it(void **state)
{
    (void)state;
    int fd;
    struct error why;
    setenv("TMPDIR", "/tmp/ipw-no-such-folder", 1);
    assert_int_equal(scratch_open(&fd, &why), ERR_NOT_FOUND);
    assert_non_null(strstr(why.text, "TMPDIR=/tmp/ipw-no-such-folder"));
    assert_true(fd < 0);
    setenv("TMPDIR", folder, 1);
}

static void test_without_tmpdir_there_is_a_place(void **state)
{
    (void)state;
    int fd;
    struct error why;
    setenv("TMPDIR", "", 1);
    assert_int_equal(scratch_open(&fd, &why), ERR_OK);
    close(fd);
    unsetenv("TMPDIR");
    assert_int_equal(scratch_open(&fd, &why), ERR_OK);
    close(fd);
    setenv("TMPDIR", folder, 1);
}

static void test_full_device_is_no_space(void **state)
{
    (void)state;
    int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        print_message("skipped: no /dev/full here\n");
        skip();
    }
    assert_int_equal(scratch_write(fd, "x", 1, 0), ERR_NO_SPACE);
    close(fd);
    assert_int_equal(scratch_write(-1, "x", 1, 0), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_missing_tmpdir_is_an_error_that_names_it),
        cmocka_unit_test(test_without_tmpdir_there_is_a_place),
        cmocka_unit_test(test_full_device_is_no_space),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
