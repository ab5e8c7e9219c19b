/* test: tsan, valgrind */
#include "port/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

static char path[256];

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    snprintf(path, sizeof path, "%s/file", tree.root);
    return 0;
}

static void assert_content(const char *expected)
{
    struct text text = {0};
    struct error why;
    assert_int_equal(file_read(path, 100, &text, &why), ERR_OK);
    assert_string_equal(text_get(&text), expected);
    text_release(&text);
}

static void files_are_read_up_to_a_limit(void **state)
{
    (void)state;
    struct text text = {0};
    struct error why;
    assert_int_equal(file_read(path, 100, &text, &why), ERR_NOT_FOUND);
    assert_contains(why.text, path);
    tree_write_bytes(&tree, "/file", 0, "a\0bc", 4);
    text_add(&text, "earlier");
    assert_int_equal(file_read(path, 4, &text, &why), ERR_OK);
    assert_int_equal(text.length, 4);
    assert_memory_equal(text.bytes, "a\0bc", 4);
    assert_int_equal(file_read(path, 3, &text, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "longer than 3 bytes");
    assert_int_not_equal(file_read(tree.root, 3, &text, &why), ERR_OK);
    text_release(&text);
}

static void kinds_are_distinguished(void **state)
{
    (void)state;
    tree_write_bytes(&tree, "/file", 0, "x", 1);
    assert_true(file_exists(path) && file_is_regular(path) && !file_is_directory(path));
    assert_true(file_exists(tree.root) && file_is_directory(tree.root));
    assert_false(file_is_regular(tree.root));
    assert_false(file_exists("/nonexistent/file"));
}

static void own_files_reject_links_and_pipes(void **state)
{
    (void)state;
    struct error why = {0};
    char link[300], pipe[300];
    int fd;
    snprintf(link, sizeof link, "%s/link", tree.root);
    snprintf(pipe, sizeof pipe, "%s/pipe", tree.root);
    tree_write_bytes(&tree, "/file", 0, "precious", 8);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(file_open_own(link, O_WRONLY | O_CREAT | O_TRUNC, &fd, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "link is a symbolic link");
    assert_int_equal(file_open_own(pipe, O_RDWR, &fd, &why), ERR_BAD_VALUE);
    assert_int_equal(file_open_own(pipe, O_WRONLY, &fd, &why),
                     ERR_BAD_VALUE); /* without a reader */
    assert_contains(why.text, "not a regular file");
    assert_content("precious");
    assert_int_equal(file_open_own(path, O_WRONLY | O_APPEND, &fd, &why), ERR_OK);
    assert_int_equal(file_write_all(fd, "!", 1), ERR_OK);
    close(fd);
    assert_content("precious!");
    unlink(link);
    unlink(pipe);
}

static void parent_directories_are_created(void **state)
{
    (void)state;
    struct error why;
    char folder[300];
    snprintf(folder, sizeof folder, "%s/folder/x", tree.root);
    assert_int_equal(file_make_parents(folder, &why), ERR_OK);
    assert_int_equal(file_make_parents(folder, &why), ERR_OK);
    *strrchr(folder, '/') = '\0';
    assert_true(file_is_directory(folder));
}

static void *drain(void *context)
{
    char buffer[1000];
    size_t *all = context;
    int fd = (int)*all;
    *all = 0;
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
        *all += (size_t)n;
    return NULL;
}

/* More than the capacity of a pipe. */
static void all_bytes_are_written(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    static char bytes[LENGTH];
    int ends[2];
    pthread_t reader;
    assert_int_equal(pipe(ends), 0);
    size_t all = (size_t)ends[0];
    assert_int_equal(pthread_create(&reader, NULL, drain, &all), 0);
    assert_int_equal(file_write_all(ends[1], bytes, LENGTH), ERR_OK);
    close(ends[1]);
    pthread_join(reader, NULL);
    close(ends[0]);
    assert_int_equal(all, LENGTH);
    int full = open("/dev/full", O_WRONLY);
    assert_int_equal(file_write_all(full, "x", 1), ERR_NO_SPACE);
    assert_int_equal(errno, ENOSPC);
    close(full);
}

/* ---- scratch files ---- */

static char folder[64];

static int set_tmpdir(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/ipw-scratch-XXXXXX");
    return mkdtemp(folder) ? setenv("TMPDIR", folder, 1) : -1;
}

static int unset_tmpdir(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    return rmdir(folder); /* fails if it is not empty */
}

static void scratch_files_have_no_name(void **state)
{
    (void)state;
    int fd;
    struct error why;
    char back[6] = "";
    struct stat about;
    assert_int_equal(file_open_scratch(&fd, &why), ERR_OK);
    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_nlink, 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(file_write_at(fd, "hello", 5, 1000), ERR_OK);
    assert_int_equal(file_read_at(fd, back, 5, 1000), ERR_OK);
    assert_string_equal(back, "hello");
    assert_int_equal(file_read_at(fd, back, 5, 1001), ERR_IO); /* past the end */
    close(fd);
}

static void a_missing_tmpdir_is_reported(void **state)
{
    (void)state;
    int fd;
    struct error why;
    setenv("TMPDIR", "/tmp/ipw-no-such-folder", 1);
    assert_int_equal(file_open_scratch(&fd, &why), ERR_NOT_FOUND);
    assert_non_null(strstr(why.text, "TMPDIR=/tmp/ipw-no-such-folder"));
    assert_true(fd < 0);
    setenv("TMPDIR", folder, 1);
}

static void long_paths_work_as_far_as_the_kernel_takes_them(void **state)
{
    (void)state;
    struct error why = {0};
    struct output output;
    struct text text = {0};
    struct stat status;
    int fd;
    char *deep = tree_deep(&tree, 1600);
    assert_int_equal(strlen(deep), 1600);
    char file[1700], other[1700], beyond[5000];
    snprintf(file, sizeof file, "%s/new/file", deep);
    snprintf(other, sizeof other, "%s/plots/a.png", deep);
    assert_int_equal(output_check(file, &why), ERR_NOT_FOUND);
    assert_int_equal(file_make_parents(file, &why), ERR_OK);
    assert_int_equal(output_check(file, &why), ERR_OK);
    assert_int_equal(output_put(file, "long", 4, &why), ERR_OK);
    assert_int_equal(file_read(file, 100, &text, &why), ERR_OK);
    assert_string_equal(text_get(&text), "long");
    assert_int_equal(output_put_within(deep, "plots/a.png", "x", 1, &why), ERR_OK);
    assert_true(file_is_regular(other));
    assert_int_equal(chmod(deep, 0700), 0); /* what is created in it is private, too */
    snprintf(file, sizeof file, "%s/journal", deep);
    assert_int_equal(file_open_own(file, O_WRONLY | O_CREAT, &fd, &why), ERR_OK);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    close(fd);
    setenv("TMPDIR", deep, 1);
    assert_int_equal(file_open_scratch(&fd, &why), ERR_OK);
    close(fd);
    unsetenv("TMPDIR");

    memset(beyond, '/', sizeof beyond - 1);
    beyond[sizeof beyond - 1] = '\0';
    memcpy(beyond, deep, strlen(deep));
    memcpy(beyond + sizeof beyond - 4, "end", 3);
    assert_int_not_equal(output_open(&output, beyond, false, &why), ERR_OK);
    assert_true(str_starts(why.text, "cannot write /"));
    assert_true(str_ends(why.text, "end: File name too long"));
    assert_int_not_equal(output_check(beyond, &why), ERR_OK);
    assert_true(str_ends(why.text, "end: File name too long"));
    text_release(&text);
    free(deep);
}

static void scratch_files_need_no_tmpdir(void **state)
{
    (void)state;
    int fd;
    struct error why;
    setenv("TMPDIR", "", 1);
    assert_int_equal(file_open_scratch(&fd, &why), ERR_OK);
    close(fd);
    unsetenv("TMPDIR");
    assert_int_equal(file_open_scratch(&fd, &why), ERR_OK);
    close(fd);
    setenv("TMPDIR", folder, 1);
}

static void a_full_device_is_err_no_space(void **state)
{
    (void)state;
    int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        SKIP("no /dev/full");
    assert_int_equal(file_write_at(fd, "x", 1, 0), ERR_NO_SPACE);
    close(fd);
    assert_int_equal(file_write_at(-1, "x", 1, 0), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_read_up_to_a_limit, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(kinds_are_distinguished, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(own_files_reject_links_and_pipes, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(parent_directories_are_created, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(all_bytes_are_written, set_up, tree_tear_down),
        cmocka_unit_test_setup_teardown(scratch_files_have_no_name, set_tmpdir, unset_tmpdir),
        cmocka_unit_test_setup_teardown(long_paths_work_as_far_as_the_kernel_takes_them, set_up,
                                        tree_tear_down),
        cmocka_unit_test_setup_teardown(a_missing_tmpdir_is_reported, set_tmpdir, unset_tmpdir),
        cmocka_unit_test_setup_teardown(scratch_files_need_no_tmpdir, set_tmpdir, unset_tmpdir),
        cmocka_unit_test(a_full_device_is_err_no_space),
    };
    return RUN_TESTS(tests);
}
