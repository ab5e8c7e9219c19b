/* test: real time */
/* The tools that access files and run programs: paths outside the workspace, time, memory and output limits, sockets,
 * background processes.  Programs of the machine are the reference: sh, python3, ls.  Real are the seconds that a
 * supervisor has to end. */
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_tools/tool.h"
#include "core/clock.h"
#include "core/json.h"
#include "port/confine.h"
#include "port/json_read.h"
#include "port/subprocess.h"
#include "port/thread.h"
#include "support/shifted_clock.h"
#include "support/tool_results.h"

#define TIMEOUT_S 600

struct fixture {
    char folder[64]; /* inside it: workspace/ and secret.txt */
    struct toolset set;
    struct tool_session session;
};

static void put_file(const char *path, const char *content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
}

static void open_fixture(struct fixture *fixture, const char *names)
{
    struct error why = {0};
    char path[128];
    /* cppcheck-suppress ctuuninitvar ; the address of an array */
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/ipw-fixture-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(path, sizeof path, "%s/secret.txt", fixture->folder);
    put_file(path, "the secret");
    snprintf(path, sizeof path, "%s/workspace", fixture->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    struct params params = {0};
    if (strstr(names, "shell"))
        assert_int_equal(params_add(&params, "shell.memory_mb=512"), ERR_OK);
    struct toolset_options options = {
        .names = names, .params = &params, .timeout = TIMEOUT_S * NS_PER_S, .output_limit = 2000};
    enum err err = toolset_open(&options, &fixture->set, &why);
    if (err)
        print_error("%s\n", why.text);
    assert_int_equal(err, ERR_OK);
    params_release(&params);
    assert_int_equal(tool_session_open(&fixture->set, path, &fixture->session, &why), ERR_OK);
}

static void close_fixture(struct fixture *fixture)
{
    tool_session_close(&fixture->session);
    toolset_close(&fixture->set);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", fixture->folder);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct text output = {0};
    struct subprocess_result result;
    assert_int_equal(subprocess_run(&(struct subprocess_options){.argv = argv, .directory = -1},
                                    &(struct subprocess_run){0}, &output, &result, NULL),
                     ERR_OK);
    text_release(&output);
}

/* Calls a tool with one or two string arguments. */
static struct tool_result call(struct fixture *fixture, const char *tool, const char *key,
                               const char *value, const char *key2, const char *value2)
{
    struct text arguments = {0};
    struct json json;
    struct tool_result result;
    struct error why = {0};
    json_init(&json, &arguments, false);
    json_object(&json, NULL);
    json_string(&json, key, value);
    if (key2)
        json_string(&json, key2, value2);
    json_object_end(&json);
    assert_int_equal(
        tool_session_call(&fixture->session, tool, text_get(&arguments), NULL, &result, &why),
        ERR_OK);
    text_release(&arguments);
    return result;
}

static struct tool_result shell(struct fixture *fixture, const char *command)
{
    return call(fixture, "shell", "command", command, NULL, NULL);
}

/* ---- files ---- */

static void files_are_written_and_read(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "file_read,file_write");
    expect_result(call(&fixture, "file_write", "path", "a/b/c.txt", "content", "h\xC3\xA4llo\n"),
                  false, "Wrote 7 bytes");
    expect_result(call(&fixture, "file_read", "path", "a//./b/c.txt", NULL, NULL), false,
                  "h\xC3\xA4llo\n");
    expect_result(call(&fixture, "file_write", "path", "a/b/c.txt", "content", "new"), false,
                  "Wrote 3");
    struct tool_result result = call(&fixture, "file_read", "path", "a/b/c.txt", NULL, NULL);
    assert_string_equal(text_get(&result.output), "new");
    tool_result_release(&result);
    expect_result(call(&fixture, "file_read", "path", ".", NULL, NULL), false, "a/\n");
    expect_result(call(&fixture, "file_read", "path", ".", NULL, NULL), false,
                  "a/\n"); /* overwritten */
    expect_result(call(&fixture, "file_read", "path", "a/b", NULL, NULL), false, "c.txt\n");
    expect_result(call(&fixture, "file_read", "path", "missing", NULL, NULL), true, "No such file");
    expect_result(call(&fixture, "file_write", "path", "a/b/c.txt/d", "content", "x"), true,
                  "Not a directory");
    expect_result(call(&fixture, "file_write", "path", "a", "content", "x"), true, "directory");
    close_fixture(&fixture);
}

static void paths_cannot_escape_the_workspace(void **state)
{
    (void)state;
    struct fixture fixture;
    char link[128], target[128];
    open_fixture(&fixture, "file_read,file_write");
    snprintf(target, sizeof target, "%s/secret.txt", fixture.folder);
    snprintf(link, sizeof link, "%s/workspace/link", fixture.folder);
    assert_int_equal(symlink(target, link), 0);
    snprintf(link, sizeof link, "%s/workspace/up", fixture.folder);
    assert_int_equal(symlink(fixture.folder, link), 0);
    snprintf(link, sizeof link, "%s/workspace/dangling", fixture.folder);
    assert_int_equal(symlink("../made.txt", link), 0);
    static const char *const PATHS[] = {
        "../secret.txt",    "a/../../secret.txt", "..",           "./..",          "a/..",
        "workspace/../../", "/etc/passwd",        "link",         "up/secret.txt", "up",
        "dangling",         "~/secret.txt",       "//etc/passwd",
    };
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        struct tool_result result = call(&fixture, "file_read", "path", PATHS[i], NULL, NULL);
        if (!result.is_error || strstr(text_get(&result.output), "the secret"))
            print_error("%s was read: %s\n", PATHS[i], text_get(&result.output));
        assert_true(result.is_error);
        tool_result_release(&result);
        result = call(&fixture, "file_write", "path", PATHS[i], "content", "changed");
        if (!result.is_error)
            print_error("%s was written\n", PATHS[i]);
        assert_true(result.is_error);
        tool_result_release(&result);
    }
    char content[32] = "";
    int fd = open(target, O_RDONLY);
    assert_true(read(fd, content, sizeof content - 1) > 0);
    close(fd);
    assert_string_equal(content, "the secret");
    snprintf(link, sizeof link, "%s/made.txt", fixture.folder);
    assert_int_equal(access(link, F_OK), -1);
    close_fixture(&fixture);
}

static void pipes_are_rejected_and_long_files_are_truncated(void **state)
{
    (void)state;
    struct fixture fixture;
    char path[128], content[5001];
    open_fixture(&fixture, "file_read,file_write");
    snprintf(path, sizeof path, "%s/workspace/pipe", fixture.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_result(call(&fixture, "file_read", "path", "pipe", NULL, NULL), true, "not a file");
    struct tool_result result = call(&fixture, "file_write", "path", "pipe", "content", "x");
    assert_true(result.is_error); /* and it did not block for a reader */
    tool_result_release(&result);
    memset(content, 'y', sizeof content - 1);
    content[sizeof content - 1] = '\0';
    expect_result(call(&fixture, "file_write", "path", "long", "content", content), false,
                  "5000 bytes");
    result = call(&fixture, "file_read", "path", "long", NULL, NULL);
    assert_true(result.is_truncated);
    assert_true(result.output.length < 2100);
    assert_contains(text_get(&result.output), "truncated to 2000 bytes");
    tool_result_release(&result);
    close_fixture(&fixture);
}

/* ---- programs ---- */

static void commands_run_in_the_workspace(void **state)
{
    (void)state;
    struct fixture fixture;
    char path[128];
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    snprintf(path, sizeof path, "%s/workspace\n", fixture.folder);
    expect_result(shell(&fixture, "pwd"), false, path);
    expect_result(shell(&fixture, "echo out; echo err >&2"), false, "err");
    expect_result(shell(&fixture, "exit 3"), true, "[exit code 3]");
    expect_result(shell(&fixture, "true"), false, "(no output)");
    expect_result(shell(&fixture, "cat"), false, "(no output)"); /* its stdin is empty, not ours */
    struct tool_result result = shell(&fixture, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    assert_false(result.is_error);
    assert_true(result.cpu_s > 0);
    tool_result_release(&result);
    close_fixture(&fixture);
}

static void api_keys_are_not_inherited(void **state)
{
    (void)state;
    struct fixture fixture;
    SKIP_WITHOUT(confine_available);
    setenv("OPENAI_API_KEY", "sk-secret", 1);
    open_fixture(&fixture, "shell");
    struct tool_result result = shell(&fixture, "env");
    assert_null(strstr(text_get(&result.output), "sk-secret"));
    assert_contains(text_get(&result.output), "PATH=");
    tool_result_release(&result);
    close_fixture(&fixture);
    unsetenv("OPENAI_API_KEY");
}

static void output_is_limited_and_made_valid_utf8(void **state)
{
    (void)state;
    struct fixture fixture;
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    struct tool_result result = shell(&fixture, "yes | head -c 3000000");
    assert_true(result.is_truncated);
    assert_true(result.output.length < 2100);
    tool_result_release(&result);
    expect_result(shell(&fixture, "printf 'a\\377b'"), false,
                  "a\xEF\xBF\xBD"
                  "b");
    close_fixture(&fixture);
}

/* The number that a program in the workspace has written, and whether its process ends. */
static pid_t read_pid(const struct fixture *fixture, const char *name)
{
    char path[128], number[32] = "";
    snprintf(path, sizeof path, "%s/workspace/%s", fixture->folder, name);
    int fd = open(path, O_RDONLY);
    assert_true(read(fd, number, sizeof number - 1) > 0);
    close(fd);
    return (pid_t)strtol(number, NULL, 10);
}

static bool ends(pid_t pid)
{
    for (int i = 0; i < 3000 && kill(pid, 0) == 0; i++)
        thread_sleep(10 * NS_PER_MS); /* until init has reaped it */
    return kill(pid, 0) < 0;
}

static void a_slow_command_is_killed_with_its_children(void **state)
{
    (void)state;
    struct fixture fixture;
    char path[128];
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    snprintf(path, sizeof path, "%s/workspace/pid", fixture.folder);
    struct shift_at at = {.path = path, .text = "\n", .length = TIMEOUT_S * NS_PER_S};
    pthread_t thread;
    assert_int_equal(thread_start(&thread, shifted_clock_main, &at), ERR_OK);
    nanos start = clock_now();
    struct tool_result result = shell(&fixture, "sleep 3000 & echo $! > pid; sleep 3000");
    pthread_join(thread, NULL);
    assert_true(result.timed_out);
    assert_true(result.is_error);
    assert_contains(text_get(&result.output), "timed out");
    assert_true(clock_now() - start < 2 * TIMEOUT_S * NS_PER_S);
    tool_result_release(&result);
    assert_true(ends(read_pid(&fixture, "pid")));
    close_fixture(&fixture);
}

static void background_processes_are_killed(void **state)
{
    (void)state;
    struct fixture fixture;
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    nanos start = clock_now();
    expect_result(shell(&fixture, "(sleep 3000) & echo $! > pid;"
                                  "setsid sh -c 'echo $$ > own.new; mv own.new own; sleep 3000' &"
                                  "until test -e own; do sleep 0.01; done; echo ok"),
                  false, "ok");
    assert_true(clock_now() - start < TIMEOUT_S * NS_PER_S); /* without waiting for them */
    assert_true(ends(read_pid(&fixture, "pid")));
    assert_true(ends(read_pid(&fixture, "own")));
    close_fixture(&fixture);
}

/* The first line of `times`: "0m0.310s 0m0.020s". */
static double read_times(const char *path)
{
    char line[128] = "";
    double user_m, user_s, system_m, system_s;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, line, sizeof line - 1) > 0);
    close(fd);
    assert_int_equal(sscanf(line, "%lfm%lfs %lfm%lfs", &user_m, &user_s, &system_m, &system_s), 4);
    return 60 * (user_m + system_m) + user_s + system_s;
}

#define WORK                                                                                       \
    "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times > t; mv t used; sleep 300'"
#define AWAIT "while [ ! -e used ]; do sleep 0.05; done"

static void cpu_time_of_killed_processes_is_counted(void **state)
{
    (void)state;
    struct fixture fixture;
    char path[128];
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    snprintf(path, sizeof path, "%s/workspace/used", fixture.folder);
    /* In the background; in the background of a program that has exited; and below one that is killed by a signal. */
    static const char *const COMMANDS[] = {
        WORK " & " AWAIT,
        "(" WORK " &); " AWAIT,
        "(" AWAIT "; kill -9 $$) & " WORK "; true",
    };
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        unlink(path);
        struct tool_result result = shell(&fixture, COMMANDS[i]);
        assert_false(result.timed_out);
        double used = read_times(path);
        if (!(result.cpu_s >= used))
            print_error("%s: %g s of %g s\n", COMMANDS[i], result.cpu_s, used);
        assert_true(used > 0.02);
        assert_true(result.cpu_s >= used);
        tool_result_release(&result);
    }
    close_fixture(&fixture);
}

/* Of this process, by an unconfined program: the reference for the confined one. */
static bool can_read_environment(void)
{
    const char *const argv[] = {"/bin/sh", "-c", "cat /proc/$PPID/environ", NULL};
    struct text output = {0};
    struct subprocess_result result = {.end.exit_code = 1};
    enum err err = subprocess_run(&(struct subprocess_options){.argv = argv, .directory = -1},
                                  &(struct subprocess_run){0}, &output, &result, NULL);
    text_release(&output);
    return !err && result.end.exit_code == 0;
}

enum { GUARDED = 0, EXPOSED = 41, STILL_HIDDEN = 42, NO_ORACLE = 43 };

/* As an unprivileged user. */
static int read_own_environment(void)
{
    enum { NOBODY = 65534 };
    struct fixture fixture;
    if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
        return NO_ORACLE;
    prctl(PR_SET_DUMPABLE, 1); /* reset by setuid */
    if (!can_read_environment())
        return NO_ORACLE;
    open_fixture(&fixture, "shell,python");
    struct tool_result result = shell(&fixture, "cat /proc/$PPID/environ > copy");
    bool was_read = !result.is_error;
    tool_result_release(&result);
    close_fixture(&fixture);
    return was_read ? EXPOSED : can_read_environment() ? GUARDED : STILL_HIDDEN;
}

static void environment_of_ipw_cannot_be_read(void **state)
{
    (void)state;
    struct error why = {0};
    int status = 0;
    SKIP_WITHOUT(confine_available);
    for (size_t i = 0; TOOL_DRIVERS[i]; i++)
        if (!strcmp(TOOL_DRIVERS[i]->name, "python") && TOOL_DRIVERS[i]->available(&why))
            SKIP("%s", why.text);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(read_own_environment());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_ORACLE)
        SKIP("%s", "the kernel hides the environment of processes");
    assert_int_equal(WEXITSTATUS(status), GUARDED);
}

static void sockets_are_denied(void **state)
{
    (void)state;
    struct fixture fixture;
    struct error why = {0};
    SKIP_WITHOUT(confine_available);
    for (size_t i = 0; TOOL_DRIVERS[i]; i++)
        if (!strcmp(TOOL_DRIVERS[i]->name, "python") && TOOL_DRIVERS[i]->available(&why))
            SKIP("%s", why.text);
    open_fixture(&fixture, "python,shell");
    expect_result(call(&fixture, "python", "code", "print(6 * 7)", NULL, NULL), false, "42");
    expect_result(call(&fixture, "python", "code",
                       "import socket\n"
                       "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):\n"
                       "    try:\n"
                       "        socket.socket(family)\n"
                       "        print('opened', family)\n"
                       "    except PermissionError:\n"
                       "        print('refused')\n",
                       NULL, NULL),
                  false, "refused\nrefused\nrefused");
    /* Child processes are confined too. */
    expect_result(shell(&fixture, "python3 -c 'import socket; socket.socket()' 2>&1 | tail -1"),
                  false, "PermissionError");
    expect_result(call(&fixture, "python", "code", "1/0", NULL, NULL), true, "ZeroDivisionError");
    close_fixture(&fixture);
}

/* Denied by the mount, which is read-only where the sandbox has its own, or else by Landlock. */
static void expect_denied_change(struct tool_result result)
{
    const char *output = text_get(&result.output);
    const char *reason =
        strstr(output, "Read-only file system") ? "Read-only file system" : "Permission denied";
    expect_result(result, true, reason);
}

/* Python shows what the file's owner may do, so that a denial here is not due to file permissions. */
static void files_outside_the_workspace_are_inaccessible(void **state)
{
    (void)state;
    struct fixture fixture;
    char command[512], home[] = "/tmp/ipw-home-XXXXXX", key[64];
    SKIP_WITHOUT(confine_available);
    SKIP_WITHOUT(confine_files_available);
    assert_non_null(mkdtemp(home));
    snprintf(key, sizeof key, "%s/key", home);
    put_file(key, "sk-secret");
    open_fixture(&fixture, "shell,python");
    /* Reading, listing and writing next to the workspace; and the same inside it. */
    static const char *const DENIED[] = {
        "cat ../secret.txt", "ls ..",    "ln -s ../secret.txt l; cat l",
        "ls /tmp",           "ls ~root", "cat /etc/shadow"};
    for (size_t i = 0; i < sizeof DENIED / sizeof *DENIED; i++)
        expect_result(shell(&fixture, DENIED[i]), true, "Permission denied");
    static const char *const CHANGES[] = {"echo x > ../made",      "echo x >> ../secret.txt",
                                          "rm ../secret.txt",      "mkdir ../made",
                                          "mv ../secret.txt here", "echo x > /tmp/ipw-made"};
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++)
        expect_denied_change(shell(&fixture, CHANGES[i]));
    snprintf(command, sizeof command, "cat %s", key);
    expect_result(shell(&fixture, command), true, "Permission denied");
    expect_result(shell(&fixture,
                        "mkdir -p a/b; echo hi > a/b/c; mv a/b/c a/d; ln -s a/d e; cat e; rm -r a; "
                        "echo gone > /dev/null; cat /etc/passwd | head -1 | cut -c 1-4; nproc > n"),
                  false, "hi\nroot");
    expect_result(call(&fixture, "python", "code",
                       "import json, tempfile, subprocess, pathlib\n"
                       "tempfile.NamedTemporaryFile().write(b'x')\n"
                       "print(subprocess.run(['ls'], capture_output=True).returncode)\n"
                       "try:\n    pathlib.Path('../secret.txt').read_text()\n"
                       "except PermissionError:\n    print('refused')",
                       NULL, NULL),
                  false, "0\nrefused");
    /* System programs find their files. */
    if (access("/usr/lib/ssl/openssl.cnf", R_OK) == 0) /* a symlink into /etc */
        expect_result(shell(&fixture, "cat /usr/lib/ssl/openssl.cnf > c && echo read"), false,
                      "read");
    close_fixture(&fixture);
    unlink(key);
    rmdir(home);
}

/* Nor of other processes, even as root; nor can it signal them. */
static void other_processes_are_inaccessible(void **state)
{
    (void)state;
    struct fixture fixture;
    char command[128];
    SKIP_WITHOUT(confine_available);
    SKIP_WITHOUT(confine_files_available);
    open_fixture(&fixture, "shell");
    snprintf(command, sizeof command, "cat /proc/%d/environ", (int)getpid());
    expect_result(shell(&fixture, command), true, "Permission denied");
    expect_result(shell(&fixture, "cat /proc/$PPID/environ"), true, "Permission denied");
    close_fixture(&fixture);
}

static void paths_named_by_the_user_are_readable(void **state)
{
    (void)state;
    struct fixture fixture;
    struct params params = {0};
    struct error why = {0};
    char word[160];
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    toolset_close(&fixture.set);
    tool_session_close(&fixture.session);
    snprintf(word, sizeof word, "shell.read=/no/such/file;%s/secret.txt", fixture.folder);
    assert_int_equal(params_add(&params, word), ERR_OK);
    struct toolset_options options = {.names = "shell", .params = &params};
    assert_int_equal(toolset_open(&options, &fixture.set, &why), ERR_OK);
    snprintf(word, sizeof word, "%s/workspace", fixture.folder);
    assert_int_equal(tool_session_open(&fixture.set, word, &fixture.session, &why), ERR_OK);
    expect_result(shell(&fixture, "cat ../secret.txt"), false, "the secret");
    close_fixture(&fixture);
    assert_int_equal(params_add(&params, "shell.read=data"), ERR_OK);
    assert_int_equal(toolset_open(&options, &fixture.set, &why), ERR_USAGE);
    assert_contains(why.text, "absolute");
    params_release(&params);
}

/* coreutils' timeout creates its own process group, and kills that. */
static void a_command_may_create_process_groups_and_sessions(void **state)
{
    (void)state;
    struct fixture fixture;
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell,python");
    expect_result(shell(&fixture, "timeout 0.2 sleep 50; echo $? after"), false, "124 after");
    expect_result(shell(&fixture, "setsid sh -c 'echo apart' | cat; echo ok"), false, "apart\nok");
    /* Signal dispositions are the defaults: none is ignored. */
    expect_result(shell(&fixture, "kill -USR1 $$; echo ignored"), true, "[killed by signal 10]");
    expect_result(shell(&fixture, "kill -QUIT $$; echo ignored"), true, "[killed by signal 3]");
    close_fixture(&fixture);
}

static void descriptors_are_not_inherited(void **state)
{
    (void)state;
    struct fixture fixture;
    int ends[2];
    char command[64], byte;
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); /* not close-on-exec */
    snprintf(command, sizeof command, "echo leaked >&%d", ends[0]);
    struct tool_result result = shell(&fixture, command);
    assert_true(result.is_error);
    tool_result_release(&result);
    assert_int_equal(recv(ends[1], &byte, 1, MSG_DONTWAIT), -1);
    close(ends[0]);
    close(ends[1]);
    /* The pipe that reports a failed exec is kept open. */
    const char *const argv[] = {"/no/such/program", NULL};
    struct subprocess_result ended;
    struct text output = {0};
    struct subprocess_options options = {.argv = argv, .directory = -1, .confined = true};
    assert_int_equal(
        subprocess_run(&options, &(struct subprocess_run){0}, &output, &ended, &(struct error){0}),
        ERR_NOT_FOUND);
    text_release(&output);
    close_fixture(&fixture);
}

static void memory_is_limited(void **state)
{
    (void)state;
    struct fixture fixture;
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    struct tool_result result =
        shell(&fixture, "python3 -c 'x = bytearray(700 << 20); print(len(x))' 2>&1");
    assert_null(strstr(text_get(&result.output), "734003200"));
    tool_result_release(&result);
    result = shell(&fixture, "head -c 100000000 /dev/zero > big");
    assert_true(result.is_error); /* above the file size limit */
    tool_result_release(&result);
    close_fixture(&fixture);
}

static void a_canceled_call_has_no_result(void **state)
{
    (void)state;
    struct fixture fixture;
    struct tool_result result;
    struct error why = {0};
    atomic_bool cancel = true;
    SKIP_WITHOUT(confine_available);
    open_fixture(&fixture, "shell");
    assert_int_equal(tool_session_call(&fixture.session, "shell", "{\"command\":\"sleep 50\"}",
                                       &cancel, &result, &why),
                     ERR_INTERRUPTED);
    tool_result_release(&result);
    close_fixture(&fixture);
}

static void an_unknown_tool_is_reported_to_the_model(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "file_read,null");
    expect_result(call(&fixture, "file_raed", "path", "x", NULL, NULL), true,
                  "did you mean 'file_read'");
    close_fixture(&fixture);
    struct toolset set;
    struct error why = {0};
    assert_int_equal(toolset_open(&(struct toolset_options){.names = "calculater"}, &set, &why),
                     ERR_USAGE);
    assert_contains(why.text, "did you mean 'calculator'");
    assert_int_equal(toolset_open(&(struct toolset_options){.names = "think,think"}, &set, &why),
                     ERR_USAGE);
    assert_int_equal(toolset_open(&(struct toolset_options){.names = "http_get"}, &set, &why),
                     ERR_USAGE);
    assert_contains(why.text, "http_get.allow");
}

int main(void)
{
    shifted_clock_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_written_and_read),
        cmocka_unit_test(paths_cannot_escape_the_workspace),
        cmocka_unit_test(pipes_are_rejected_and_long_files_are_truncated),
        cmocka_unit_test(commands_run_in_the_workspace),
        cmocka_unit_test(api_keys_are_not_inherited),
        cmocka_unit_test(output_is_limited_and_made_valid_utf8),
        cmocka_unit_test(a_slow_command_is_killed_with_its_children),
        cmocka_unit_test(background_processes_are_killed),
        cmocka_unit_test(cpu_time_of_killed_processes_is_counted),
        cmocka_unit_test(environment_of_ipw_cannot_be_read),
        cmocka_unit_test(sockets_are_denied),
        cmocka_unit_test(files_outside_the_workspace_are_inaccessible),
        cmocka_unit_test(other_processes_are_inaccessible),
        cmocka_unit_test(paths_named_by_the_user_are_readable),
        cmocka_unit_test(a_command_may_create_process_groups_and_sessions),
        cmocka_unit_test(descriptors_are_not_inherited),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(a_canceled_call_has_no_result),
        cmocka_unit_test(an_unknown_tool_is_reported_to_the_model),
    };
    return RUN_TESTS(tests);
}
