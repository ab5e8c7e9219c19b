/* test: valgrind */
/* A server reads below its folder only, and never through a link; a user's directories may be links. */
#define _GNU_SOURCE
#include "rundir/run_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text.h"
#include "support/tree_fixture.h"
#include "support/unit.h"

static const char *at(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", tree.root, name);
    return path;
}

static int set_up(void **state)
{
    (void)state;
    tree_new(&tree);
    tree_write(&tree, "/runs/a/records.jsonl", "inside");
    tree_write(&tree, "/runs/a/points/p001_r1/x/summary.json", "deep");
    tree_write(&tree, "/outside/records.jsonl", "outside");
    tree_link(&tree, "/runs/a/absolute", at("outside/records.jsonl"));
    tree_link(&tree, "/runs/a/relative", "../../outside/records.jsonl");
    tree_link(&tree, "/runs/a/within", "records.jsonl");
    tree_link(&tree, "/runs/linked", at("outside"));
    tree_link(&tree, "/served", at("runs"));
    assert_int_equal(mkfifo(at("runs/a/pipe"), 0600), 0);
    return 0;
}

static int tear_down(void **state)
{
    run_open_confine(NULL);
    return tree_tear_down(state);
}

static bool opens(const char *name, const char *content)
{
    char bytes[16] = "";
    struct stat status;
    int fd = run_open(at(name));
    bool is_there = run_stat(at(name), &status);
    if (fd < 0) {
        assert_int_equal(errno, ENOENT);
        assert_false(is_there);
        return false;
    }
    assert_true(is_there);
    assert_true(read(fd, bytes, sizeof bytes - 1) >= 0);
    assert_string_equal(bytes, content);
    close(fd);
    return true;
}

static void links_and_steps_up_are_as_if_absent(void)
{
    static const char *const ABSENT[] = {
        "served/a/absolute",
        "served/a/relative",
        "served/a/within",
        "served/linked",
        "served/linked/records.jsonl",
        "served/../outside/records.jsonl",
        "served/a/../a/records.jsonl",
        "outside/records.jsonl",
        "served/none",
        "served2/a/records.jsonl",
    };
    struct dirent **entries = NULL;
    run_open_confine(at("served/"));
    assert_true(opens("served/a/records.jsonl", "inside"));
    assert_true(opens("served//a//points/p001_r1/x/summary.json", "deep"));
    for (size_t i = 0; i < sizeof ABSENT / sizeof *ABSENT; i++)
        if (opens(ABSENT[i], "outside"))
            fail_msg("%s was opened", ABSENT[i]);
    assert_int_equal(run_open(at("served/a/pipe")), -1); /* without waiting for a writer */
    assert_null(run_open_directory(at("served/linked")));
    DIR *dir = run_open_directory(at("served"));
    assert_non_null(dir);
    closedir(dir);
    assert_int_equal(run_scan(at("served/a"), &entries, NULL), 8);
    for (int i = 0; i < 8; i++)
        free(entries[i]);
    free((void *)entries);
    assert_int_equal(run_scan(at("served/linked"), &entries, NULL), -1);
    assert_true(run_has_directory(at("served/a")));
    assert_true(run_has_regular(at("served/a/records.jsonl")));
    assert_false(run_has_regular(at("served/a")));
}

static void confined_paths_follow_no_link(void **state)
{
    (void)state;
    links_and_steps_up_are_as_if_absent();
}

/* As on kernels before 5.6 and in containers whose filter does not know the call. */
static void confined_paths_follow_no_link_without_openat2(void **state)
{
    (void)state;
    static const int NUMBERS[] = {ENOSYS, EPERM};
    for (size_t i = 0; i < 2; i++) {
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)NUMBERS[i]),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
                _exit(77); /* not possible here */
            links_and_steps_up_are_as_if_absent();
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
    }
}

static void users_may_name_links(void **state)
{
    (void)state;
    assert_true(opens("linked_nowhere", "") == false);
    assert_true(opens("served/a/relative", "outside"));
    assert_true(opens("runs/linked/records.jsonl", "outside"));
    assert_true(opens("runs/a/../../outside/records.jsonl", "outside"));
    assert_true(run_has_directory(at("runs/linked")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(confined_paths_follow_no_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(confined_paths_follow_no_link_without_openat2, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(users_may_name_links, set_up, tear_down),
    };
    return RUN_TESTS(tests);
}
