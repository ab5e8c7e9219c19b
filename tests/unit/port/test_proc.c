/* test: real time */
/* Child processes: the handshake, how they end, what they inherit, orphans. */
#define _GNU_SOURCE
#include "port/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/file.h"
#include "support/unit.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/ipw-proc-XXXXXX");
    /* An unsearchable folder of PATH turns "not found" into "denied". */
    return mkdtemp(folder) ? setenv("PATH", "/usr/bin:/bin", 1) : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void path_of(const char *name, char *to, size_t size)
{
    snprintf(to, size, "%s/%s", folder, name);
}

static void sleep_for(nanos time)
{
    struct timespec left = {.tv_nsec = time};
    nanosleep(&left, NULL);
}

/* Starts `sh -c script` and waits for its end. */
static struct child_end run_shell(const char *script)
{
    char *argv[] = {"sh", "-c", (char *)script, NULL};
    struct child child;
    struct child_end end;
    struct error why;
    int code = -1;
    bool from_terminal;
    assert_int_equal(child_prepare(&child, argv, &why), ERR_OK);
    assert_int_equal(child_go(&child, &code, &why), ERR_OK);
    assert_int_equal(child_wait(&child, &end, INT64_MAX, &from_terminal), 0);
    assert_int_equal(child.pid, -1);
    return end;
}

static void test_nothing_runs_before_go(void **state)
{
    (void)state;
    char mark[96];
    path_of("mark", mark, sizeof mark);
    char *argv[] = {"touch", mark, NULL};
    struct child child;
    struct child_end end;
    struct error why;
    int code;
    bool from_terminal;
    assert_int_equal(child_prepare(&child, argv, &why), ERR_OK);
    sleep_for(100 * NS_PER_MS);
    assert_int_equal(access(mark, F_OK), -1);
    assert_int_equal(child_go(&child, &code, &why), ERR_OK);
    assert_int_equal(child_wait(&child, &end, INT64_MAX, &from_terminal), 0);
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(unlink(mark), 0);
}

static void test_abandoned_child_is_never_executed(void **state)
{
    (void)state;
    char mark[96];
    path_of("mark", mark, sizeof mark);
    char *argv[] = {"touch", mark, NULL};
    struct child child;
    struct error why;
    assert_int_equal(child_prepare(&child, argv, &why), ERR_OK);
    child_abandon(&child);
    assert_int_equal(access(mark, F_OK), -1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void test_exit_codes_and_signals_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int exit_code, signal;
    } CASES[] = {
        {"exit 0", 0, 0},
        {"exit 3", 3, 0},
        {"exit 255", 255, 0},
        {"kill -TERM $$", 143, SIGTERM},
        {"kill -KILL $$", 137, SIGKILL},
        {"kill -SEGV $$", 139, SIGSEGV},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct child_end end = run_shell(CASES[i].script);
        assert_int_equal(end.exit_code, CASES[i].exit_code);
        assert_int_equal(end.signal, CASES[i].signal);
        assert_true(end.rss_mb > 0);
        assert_true(end.user_s >= 0 && end.system_s >= 0);
    }
}

static void test_errors_of_exec(void **state)
{
    (void)state;
    char plain[96], missing[96], below[128];
    path_of("plain", plain, sizeof plain);
    path_of("missing", missing, sizeof missing);
    snprintf(below, sizeof below, "%s/below", plain);
    int fd = open(plain, O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    close(fd);
    const struct {
        char *name;
        int code;
        enum err err;
    } cases[] = {
        {missing, 127, ERR_NOT_FOUND}, {"ipw-no-such-command", 127, ERR_NOT_FOUND},
        {"", 127, ERR_NOT_FOUND},      {below, 127, ERR_NOT_FOUND},
        {plain, 126, ERR_DENIED},      {folder, 126, ERR_DENIED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *argv[] = {cases[i].name, NULL};
        struct child child;
        struct error why = {0};
        int code = -1;
        assert_int_equal(child_prepare(&child, argv, &why), ERR_OK);
        assert_int_equal(child_go(&child, &code, &why), cases[i].err);
        assert_int_equal(code, cases[i].code);
        assert_true(why.text[0] != '\0');
        assert_int_equal(child.pid, -1);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
    unlink(plain);
}

static void test_child_inherits_the_original_signal_state(void **state)
{
    (void)state;
    /* Blocked and ignored sets of the child, as the kernel shows them; 13 is SIGPIPE. */
    struct child_end end = run_shell("blocked=$(sed -n 's/^SigBlk:\t//p' /proc/self/status)\n"
                                     "ignored=$(sed -n 's/^SigIgn:\t//p' /proc/self/status)\n"
                                     "[ $((0x$blocked)) -eq 0 ] || exit 1\n"
                                     "[ $((0x$ignored >> 12 & 1)) -eq 0 ] || exit 2\n");
    assert_int_equal(end.exit_code, 0);
}

static void test_signals_interrupt_the_wait(void **state)
{
    (void)state;
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < 3; i++) {
        char *argv[] = {"sleep", "30", NULL};
        struct child child;
        struct child_end end;
        struct error why;
        int code;
        bool from_terminal = true;
        assert_int_equal(child_prepare(&child, argv, &why), ERR_OK);
        assert_int_equal(child_go(&child, &code, &why), ERR_OK);
        kill(getpid(), SIGNALS[i]);
        assert_int_equal(child_wait(&child, &end, INT64_MAX, &from_terminal), SIGNALS[i]);
        assert_false(from_terminal);
        kill(child.pid, SIGKILL);
        assert_int_equal(child_wait(&child, &end, INT64_MAX, &from_terminal), 0);
        assert_int_equal(end.signal, SIGKILL);
    }
}

static void test_poll_returns_a_signal_or_times_out(void **state)
{
    (void)state;
    nanos before = clock_now();
    assert_int_equal(proc_poll_signal(50 * NS_PER_MS), 0);
    assert_true(clock_now() - before >= 50 * NS_PER_MS);
    kill(getpid(), SIGINT);
    assert_int_equal(proc_poll_signal(10 * NS_PER_S), SIGINT);
    assert_int_equal(proc_poll_signal(0), 0);
}

/* Not every emulator supports this prctl. */
static void require_subreaper(void)
{
    int on = 0;
    if (prctl(PR_GET_CHILD_SUBREAPER, &on, 0, 0, 0) == 0 && on)
        return;
    SKIP("orphans cannot be adopted (prctl)");
}

/* Leaves two orphans, which wait for the pipe to have a writer. */
static void leave_orphans(const char *pipe)
{
    char script[256];
    unlink(pipe);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    snprintf(script, sizeof script, "(: <%s) & (: <%s) &", pipe, pipe);
    struct child_end end = run_shell(script);
    assert_int_equal(end.exit_code, 0);
    assert_int_equal(proc_orphans(), 2);
}

static void await_orphans(const char *pipe)
{
    int fd = open(pipe, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(proc_await_orphans(INT64_MAX), 0);
    assert_int_equal(proc_orphans(), 0);
    close(fd);
    unlink(pipe);
}

static void test_orphans_are_adopted_and_waited_for(void **state)
{
    (void)state;
    char pipe[96];
    path_of("pipe", pipe, sizeof pipe);
    require_subreaper();
    assert_int_equal(proc_orphans(), 0);
    leave_orphans(pipe);
    await_orphans(pipe);
}

static void test_a_helper_is_read_and_is_not_an_orphan(void **state)
{
    (void)state;
    static const char *const LONG[] = {"/bin/sh", "-c", "echo one; exec sleep 100", NULL};
    static const char *const SHORT[] = {"/bin/sh", "-c", "echo two", NULL};
    struct helper helper, ended;
    struct error why = {0};
    char bytes[16];
    assert_int_equal(helper_start(&helper, LONG, &why), ERR_OK);
    assert_int_equal(helper_start(&ended, SHORT, &why), ERR_OK);
    while (read(helper.output, bytes, sizeof bytes) != 4)
        assert_int_equal(errno, EAGAIN); /* reads do not block */
    assert_memory_equal(bytes, "one\n", 4);
    pid_t pid = helper.pid;
    assert_int_equal(proc_orphans(), 0);
    assert_int_equal(proc_await_orphans(INT64_MAX), 0);
    assert_int_equal(kill(pid, 0), 0);
    ssize_t n;
    while ((n = read(ended.output, bytes, sizeof bytes)) != 0) /* until end of file */
        assert_true(n == 4 || errno == EAGAIN);
    helper_end(&ended);
    helper_end(&helper);
    assert_int_equal(kill(pid, 0), -1);
}

static void test_errors_of_a_helper(void **state)
{
    (void)state;
    static const char *const MISSING[] = {"/nonexistent/program", NULL};
    struct helper helper;
    struct error why = {0};
    if (getenv("IPW_SLOW"))
        SKIP(
            "valgrind forks where posix_spawn shares memory, through which it learns of a failure");
    assert_int_equal(helper_start(&helper, MISSING, &why), ERR_NOT_FOUND);
    assert_int_equal(helper.pid, 0);
    helper_end(&helper); /* without a process: nothing */
}

static void test_a_signal_ends_the_wait_for_orphans(void **state)
{
    (void)state;
    char pipe[96];
    path_of("pipe", pipe, sizeof pipe);
    require_subreaper();
    leave_orphans(pipe);
    kill(getpid(), SIGTERM);
    assert_int_equal(proc_await_orphans(INT64_MAX), SIGTERM);
    assert_int_equal(proc_orphans(), 2);
    await_orphans(pipe);
}

static void test_waits_end_at_their_deadline(void **state)
{
    (void)state;
    char *argv[] = {"sleep", "600", NULL};
    struct child child;
    struct child_end end;
    struct error why;
    int code;
    bool from_terminal;
    assert_int_equal(child_prepare(&child, argv, &why), ERR_OK);
    assert_int_equal(child_go(&child, &code, &why), ERR_OK);
    nanos until = clock_now() + 50 * NS_PER_MS;
    assert_int_equal(child_wait(&child, &end, until, &from_terminal), WAIT_TIMEOUT);
    assert_true(clock_now() >= until);
    assert_int_equal(proc_await_orphans(clock_now()), WAIT_TIMEOUT);
    kill(child.pid, SIGKILL);
    assert_int_equal(child_wait(&child, &end, INT64_MAX, &from_terminal), WAIT_ENDED);
}

static void test_signals_to_processes_below_spare_helpers(void **state)
{
    (void)state;
    static const char *const LONG[] = {"/bin/sleep", "600", NULL};
    char mark[96], script[256];
    require_subreaper();
    path_of("mark", mark, sizeof mark);
    snprintf(script, sizeof script, "sleep 600 & setsid sh -c 'touch %s; exec sleep 600' & wait",
             mark);
    char *argv[] = {"sh", "-c", script, NULL};
    struct child child;
    struct child_end end;
    struct helper helper;
    struct error why;
    int code;
    bool from_terminal;
    assert_int_equal(helper_start(&helper, LONG, &why), ERR_OK);
    assert_int_equal(child_prepare(&child, argv, &why), ERR_OK);
    assert_int_equal(child_go(&child, &code, &why), ERR_OK);
    while (access(mark, F_OK) != 0)
        sleep_for(5 * NS_PER_MS);
    assert_true(child_is_in_our_group(&child));
    child_signal_group(&child, SIGTERM);
    assert_int_equal(child_wait(&child, &end, INT64_MAX, &from_terminal), WAIT_ENDED);
    assert_int_equal(end.signal, SIGTERM);
    while (proc_orphans() > 1) /* the shell's first sleep is ending */
        sleep_for(5 * NS_PER_MS);
    /* The other has left the group. */
    assert_int_equal(proc_await_orphans(clock_now()), WAIT_TIMEOUT);
    child_signal_all(&child, SIGKILL);
    assert_int_equal(proc_await_orphans(INT64_MAX), WAIT_ENDED);
    assert_int_equal(kill(helper.pid, 0), 0);
    helper_end(&helper);
    unlink(mark);
}

/* In a separate process, because ignored signals are determined once. */
static void test_ignored_signals_stay_ignored(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGHUP, SIG_IGN);
        proc_block_signals();
        kill(getpid(), SIGHUP);
        int hup = proc_poll_signal(20 * NS_PER_MS);
        kill(getpid(), SIGINT);
        _exit(hup == 0 && proc_poll_signal(20 * NS_PER_MS) == SIGINT ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_own_cpu_time_and_memory_grow(void **state)
{
    (void)state;
    struct own_cost before, after;
    proc_own_cost(&before);
    for (volatile long i = 0; i < 20000000; i = i + 1)
        ;
    proc_own_cost(&after);
    assert_true(after.cpu_s > before.cpu_s);
    assert_true(after.rss_mb >= before.rss_mb && before.rss_mb > 0);
}

/* ---- filters ---- */

static void test_programs_are_found_in_path(void **state)
{
    (void)state;
    const char *now = getenv("PATH");
    char *path = proc_find("sh"), *before = strdup(now ? now : "");
    assert_non_null(path);
    assert_int_equal(access(path, X_OK), 0);
    free(path);
    assert_null(proc_find("ipw-no-such-program"));
    /* Neither the working directory, nor a folder, nor a file that is not executable. */
    for (size_t i = 0; i < 3; i++) {
        static const char *const PATHS[] = {"", "::", "/:/etc"};
        static const char *const NAMES[] = {"sh", "tests", "passwd"};
        setenv("PATH", PATHS[i], 1);
        assert_null(proc_find(NAMES[i]));
    }
    unsetenv("PATH");
    assert_null(proc_find("sh"));
    setenv("PATH", before, 1);
    free(before);
}

/* Runs a shell script as a filter; `shown` gets its output. */
static enum err filter_script(const char *script, const char *input, char *shown, size_t size,
                              struct error *why)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct text text = {0};
    int file;
    assert_int_equal(file_open_scratch(&file, why), ERR_OK);
    text_add(&text, input);
    enum err err = proc_filter(argv, &text, file, why);
    ssize_t length = pread(file, shown, size - 1, 0);
    assert_true(length >= 0);
    shown[length] = '\0';
    text_release(&text);
    close(file);
    return err;
}

static void test_a_filter_reads_and_writes(void **state)
{
    (void)state;
    char shown[64];
    struct error why = {0};
    assert_int_equal(filter_script("cat", "one\ntwo", shown, sizeof shown, &why), ERR_OK);
    assert_string_equal(shown, "one\ntwo");
    assert_int_equal(filter_script("cat", "", shown, sizeof shown, &why), ERR_OK);
    assert_string_equal(shown, "");
    assert_int_equal(filter_script("echo noise >&2; echo good", "", shown, sizeof shown, &why),
                     ERR_OK);
    assert_string_equal(shown, "good\n");
}

static void test_errors_of_a_filter_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *script, *words;
    } CASES[] = {
        {"echo >&2; echo 'no such terminal' >&2; echo more >&2; exit 3",
         "failed (3): no such terminal"},
        {"exit 1", "no message"},
        {"kill -9 $$", "signal 9"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char shown[64];
        struct error why = {0};
        assert_int_equal(filter_script(CASES[i].script, "", shown, sizeof shown, &why), ERR_IO);
        assert_contains(why.text, CASES[i].words);
    }
    struct error why = {0};
    const char *const argv[] = {"/ipw-no-such-program", NULL};
    assert_int_equal(proc_filter(argv, &(struct text){0}, 1, &why), ERR_NOT_FOUND);
    assert_contains(why.text, "/ipw-no-such-program");
}

int main(void)
{
    proc_ignore_write_signals();
    proc_block_signals();
    proc_adopt_orphans();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_runs_before_go),
        cmocka_unit_test(test_abandoned_child_is_never_executed),
        cmocka_unit_test(test_exit_codes_and_signals_are_reported),
        cmocka_unit_test(test_errors_of_exec),
        cmocka_unit_test(test_child_inherits_the_original_signal_state),
        cmocka_unit_test(test_signals_interrupt_the_wait),
        cmocka_unit_test(test_poll_returns_a_signal_or_times_out),
        cmocka_unit_test(test_orphans_are_adopted_and_waited_for),
        cmocka_unit_test(test_a_helper_is_read_and_is_not_an_orphan),
        cmocka_unit_test(test_errors_of_a_helper),
        cmocka_unit_test(test_a_signal_ends_the_wait_for_orphans),
        cmocka_unit_test(test_waits_end_at_their_deadline),
        cmocka_unit_test(test_signals_to_processes_below_spare_helpers),
        cmocka_unit_test(test_ignored_signals_stay_ignored),
        cmocka_unit_test(test_own_cpu_time_and_memory_grow),
        cmocka_unit_test(test_programs_are_found_in_path),
        cmocka_unit_test(test_a_filter_reads_and_writes),
        cmocka_unit_test(test_errors_of_a_filter_are_reported),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
