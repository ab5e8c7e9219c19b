/* test: real time, valgrind */
#define _GNU_SOURCE
#include "port/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
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

static const char *at(const char *name)
{
    static char paths[4][300];
    static unsigned next;
    char *to = paths[next++ % 4];
    snprintf(to, sizeof paths[0], "%s/%s", tree.root, name);
    return to;
}

static void assert_content(const char *name, const char *expected)
{
    struct text text = {0};
    struct error why;
    assert_int_equal(file_read(at(name), 100, &text, &why), ERR_OK);
    assert_string_equal(text_get(&text), expected);
    text_release(&text);
}

static unsigned count_entries(void)
{
    unsigned count = 0;
    DIR *dir = opendir(tree.root);
    if (!dir)
        fail_msg("cannot open %s", tree.root);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static enum err put(const char *file, const char *bytes, struct error *why)
{
    return output_put(file, bytes, strlen(bytes), why);
}

static void a_file_is_replaced_atomically(void **state)
{
    (void)state;
    struct error why;
    struct output output;
    struct stat before, after;
    assert_int_equal(put(path, "old", &why), ERR_OK);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(put(path, "new one", &why), ERR_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino != after.st_ino);
    assert_int_equal(after.st_mode & 0777, 0640);
    assert_content("file", "new one");
    assert_int_equal(output_open(&output, path, false, &why), ERR_OK);
    assert_int_equal(output_write(&output, "half", 4, &why), ERR_OK);
    assert_content("file", "new one");
    assert_int_equal(output_finish(&output, ERR_NO_SPACE, &why), ERR_NO_SPACE);
    assert_content("file", "new one");
    assert_int_equal(count_entries(), 1);
    assert_int_equal(mkdir(at("folder"), 0700), 0);
    assert_int_not_equal(put(at("folder"), "x", &why), ERR_OK);
    assert_int_not_equal(put(at("folder/"), "x", &why), ERR_OK);
    assert_int_equal(put(at("missing/file"), "x", &why), ERR_NOT_FOUND);
    assert_contains(why.text, "missing/file");
    assert_int_equal(count_entries(), 2);
}

static void a_growing_file_is_written_in_place(void **state)
{
    (void)state;
    struct error why;
    struct output output;
    tree_write_bytes(&tree, "/file", 0, "longer", 6);
    assert_int_equal(output_open(&output, path, true, &why), ERR_OK);
    assert_int_equal(output_write(&output, "row", 3, &why), ERR_OK);
    assert_content("file", "row");
    assert_int_equal(output_finish(&output, ERR_IO, &why), ERR_IO);
    assert_content("file", "row");
}

static void links_given_by_the_user_are_followed(void **state)
{
    (void)state;
    struct error why;
    struct stat status;
    tree_write_bytes(&tree, "/file", 0, "old", 3);
    assert_int_equal(symlink("file", at("link")), 0);
    assert_int_equal(symlink("later", at("dangling")), 0);
    assert_int_equal(put(at("link"), "new", &why), ERR_OK);
    assert_int_equal(put(at("dangling"), "made", &why), ERR_OK);
    assert_int_equal(lstat(at("link"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_content("file", "new");
    assert_content("later", "made");
}

/* Reads all of a pipe in a child, whose exit status is the number of bytes. */
static pid_t start_reader(const char *pipe)
{
    pid_t child = fork();
    if (child == 0) {
        char bytes[100];
        int fd = open(pipe, O_RDONLY), count = 0;
        for (ssize_t got; fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0;)
            count += (int)got;
        _exit(fd < 0 ? 255 : count);
    }
    return child;
}

static void pipes_and_devices_are_not_replaced(void **state)
{
    (void)state;
    struct error why;
    struct stat status;
    int ended;
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    pid_t child = start_reader(at("pipe"));
    assert_int_equal(put(at("pipe"), "seventeen bytes!!", &why), ERR_OK);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(WEXITSTATUS(ended), 17);
    assert_int_equal(stat(at("pipe"), &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    if (mknod(at("full"), S_IFCHR | 0600, makedev(1, 7)) || open(at("full"), O_WRONLY) < 0)
        SKIP("cannot create a device node: %s", strerror(errno));
    assert_int_equal(put(at("full"), "x", &why), ERR_NO_SPACE);
    assert_contains(why.text, "cannot write");
    assert_int_equal(stat(at("full"), &status), 0);
    assert_true(S_ISCHR(status.st_mode));
}

/* `... -o /dev/stdout > file` appends to what others have written there. */
static void standard_output_is_not_replaced(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct error why;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || file_write_all(STDOUT_FILENO, "one ", 4) ||
            put("/dev/stdout", "two ", &why) || put("-", "three ", &why) || put(path, "four", &why))
            _exit(1);
        _exit(0);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_content("file", "one two three four");
    assert_int_equal(count_entries(), 1);
}

static void links_inside_a_run_are_not_followed(void **state)
{
    (void)state;
    struct error why = {0};
    assert_int_equal(mkdir(at("run"), 0700), 0);
    assert_int_equal(mkdir(at("outside"), 0700), 0);
    tree_write_bytes(&tree, "/file", 0, "precious", 8);
    assert_int_equal(symlink("../file", at("run/report.html")), 0);
    assert_int_equal(symlink("../outside", at("run/plots")), 0);
    assert_int_equal(symlink("run", at("latest")), 0);
    assert_int_equal(output_put_within(at("run"), "report.html", "x", 1, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "run/report.html is a symbolic link");
    assert_int_equal(output_put_within(at("run"), "plots/energy.png", "x", 1, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "run/plots is a symbolic link");
    assert_content("file", "precious");
    assert_int_equal(rmdir(at("outside")), 0); /* it is empty */
    assert_int_equal(mkfifo(at("run/pipe"), 0600), 0);
    assert_int_equal(output_put_within(at("run"), "pipe", "x", 1, &why), ERR_BAD_VALUE);
    /* The directory itself may be a link, and folders are created. */
    assert_int_equal(output_put_within(at("latest"), "a/b/c.json", "{}", 2, &why), ERR_OK);
    assert_content("run/a/b/c.json", "{}");
}

static void a_read_only_file_is_not_replaced(void **state)
{
    (void)state;
    struct error why;
    if (geteuid() == 0)
        SKIP("root may write every file");
    tree_write_bytes(&tree, "/file", 0, "kept", 4);
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(put(path, "x", &why), ERR_DENIED);
    assert_content("file", "kept");
    /* A writable file in a read-only folder. */
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chmod(tree.root, 0500), 0);
    assert_int_equal(put(path, "in place", &why), ERR_OK);
    assert_int_equal(chmod(tree.root, 0700), 0);
    assert_content("file", "in place");
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tree_tear_down)

static unsigned mode_of(const char *name)
{
    struct stat status;
    assert_int_equal(stat(at(name), &status), 0);
    return status.st_mode & 0777;
}

static void files_of_a_private_directory_are_private(void **state)
{
    (void)state;
    static const struct {
        unsigned folder, mask, file, subfolder;
    } CASES[] = {
        {0700, 0, 0600, 0700},
        {0755, 0, 0666, 0777},
        {0755, 027, 0640, 0750},
        {0750, 0, 0666, 0777},
    };
    struct error why;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char folder[300];
        int fd;
        snprintf(folder, sizeof folder, "%s", at("run"));
        mode_t before = umask(CASES[i].mask);
        tree_write(&tree, "/run/x", "x");
        tree_mode(&tree, "/run", CASES[i].folder);
        assert_int_equal(output_put_within(folder, "summary.json", "{}", 2, &why), ERR_OK);
        assert_int_equal(output_put_within(folder, "plots/a.svg", "", 0, &why), ERR_OK);
        assert_int_equal(file_open_own(at("run/records.jsonl"), O_RDWR | O_CREAT, &fd, &why),
                         ERR_OK);
        close(fd);
        assert_int_equal(mode_of("run/summary.json"), CASES[i].file);
        assert_int_equal(mode_of("run/records.jsonl"), CASES[i].file);
        assert_int_equal(mode_of("run/plots"), CASES[i].subfolder);
        assert_int_equal(mode_of("run/plots/a.svg"), CASES[i].file);
        umask(before);
        tree_remove(&tree, "/run");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TREE(a_file_is_replaced_atomically),
        IN_TREE(a_growing_file_is_written_in_place),
        IN_TREE(links_given_by_the_user_are_followed),
        IN_TREE(pipes_and_devices_are_not_replaced),
        IN_TREE(standard_output_is_not_replaced),
        IN_TREE(links_inside_a_run_are_not_followed),
        IN_TREE(a_read_only_file_is_not_replaced),
        IN_TREE(files_of_a_private_directory_are_private),
    };
    return RUN_TESTS(tests);
}
