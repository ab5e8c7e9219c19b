/* The tools that touch files and run programs: what leaves the workspace, takes too long, too much memory or too much
 * output, opens a socket or stays in the background.  Programs of the machine are the oracle: sh, python3, ls. */
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
#include "support/tool_results.h"

struct place {
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

static void open_place(struct place *place, const char *names, double timeout_s)
{
    struct error why = {0};
    char path[128];
    /* cppcheck-suppress ctuuninitvar ; the address of an array */
    snprintf(place->folder, sizeof place->folder, "/tmp/ipw-place-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(path, sizeof path, "%s/secret.txt", place->folder);
    put_file(path, "the secret");
    snprintf(path, sizeof path, "%s/workspace", place->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    struct params params = {0};
    if (strstr(names, "shell"))
        assert_int_equal(params_add(&params, "shell.memory_mb=512"), ERR_OK);
    struct toolset_options options = {.names = names,
                                      .params = &params,
                                      .timeout = from_seconds(timeout_s),
                                      .output_limit = 2000};
    enum err err = toolset_open(&options, &place->set, &why);
    if (err)
        print_error("%s\n", why.text);
    assert_int_equal(err, ERR_OK);
    params_release(&params);
    assert_int_equal(tool_session_open(&place->set, path, &place->session, &why), ERR_OK);
}

static void close_place(struct place *place)
{
    tool_session_close(&place->session);
    toolset_close(&place->set);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", place->folder);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct text output = {0};
    struct subprocess_result result;
    assert_int_equal(subprocess_run(&(struct subprocess_options){.argv = argv, .directory = -1},
                                    &(struct subprocess_run){0}, &output, &result, NULL),
                     ERR_OK);
    text_release(&output);
}

/* Calls a tool with one or two string arguments. */
static struct tool_result call(struct place *place, const char *tool, const char *key,
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
        tool_session_call(&place->session, tool, text_get(&arguments), NULL, &result, &why),
        ERR_OK);
    text_release(&arguments);
    return result;
}

static struct tool_result shell(struct place *place, const char *command)
{
    return call(place, "shell", "command", command, NULL, NULL);
}

/* ---- files ---- */

static void files_are_written_and_read(void **state)
{
    (void)state;
    struct place place;
    open_place(&place, "file_read,file_write", 10);
    expect(call(&place, "file_write", "path", "a/b/c.txt", "content", "h\xC3\xA4llo\n"), false,
           "Wrote 7 bytes");
    expect(call(&place, "file_read", "path", "a//./b/c.txt", NULL, NULL), false, "h\xC3\xA4llo\n");
    expect(call(&place, "file_write", "path", "a/b/c.txt", "content", "new"), false, "Wrote 3");
    struct tool_result result = call(&place, "file_read", "path", "a/b/c.txt", NULL, NULL);
    assert_string_equal(text_get(&result.output), "new");
    tool_result_release(&result);
    expect(call(&place, "file_read", "path", ".", NULL, NULL), false, "a/\n");
    expect(call(&place, "file_read", "path", ".", NULL, NULL), false, "a/\n"); /* and again */
    expect(call(&place, "file_read", "path", "a/b", NULL, NULL), false, "c.txt\n");
    expect(call(&place, "file_read", "path", "missing", NULL, NULL), true, "No such file");
    expect(call(&place, "file_write", "path", "a/b/c.txt/d", "content", "x"), true,
           "Not a directory");
    expect(call(&place, "file_write", "path", "a", "content", "x"), true, "directory");
    close_place(&place);
}

static void no_path_leaves_the_workspace(void **state)
{
    (void)state;
    struct place place;
    char link[128], target[128];
    open_place(&place, "file_read,file_write", 10);
    snprintf(target, sizeof target, "%s/secret.txt", place.folder);
    snprintf(link, sizeof link, "%s/workspace/link", place.folder);
    assert_int_equal(symlink(target, link), 0);
    snprintf(link, sizeof link, "%s/workspace/up", place.folder);
    assert_int_equal(symlink(place.folder, link), 0);
    snprintf(link, sizeof link, "%s/workspace/dangling", place.folder);
    assert_int_equal(symlink("../made.txt", link), 0);
    static const char *const PATHS[] = {
        "../secret.txt",    "a/../../secret.txt", "..",           "./..",          "a/..",
        "workspace/../../", "/etc/passwd",        "link",         "up/secret.txt", "up",
        "dangling",         "~/secret.txt",       "//etc/passwd",
    };
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        struct tool_result result = call(&place, "file_read", "path", PATHS[i], NULL, NULL);
        if (!result.is_error || strstr(text_get(&result.output), "the secret"))
            print_error("%s was read: %s\n", PATHS[i], text_get(&result.output));
        assert_true(result.is_error);
        tool_result_release(&result);
        result = call(&place, "file_write", "path", PATHS[i], "content", "changed");
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
    snprintf(link, sizeof link, "%s/made.txt", place.folder);
    assert_int_equal(access(link, F_OK), -1);
    close_place(&place);
}

static void a_pipe_is_no_file_and_long_files_are_cut(void **state)
{
    (void)state;
    struct place place;
    char path[128], content[5001];
    open_place(&place, "file_read,file_write", 10);
    snprintf(path, sizeof path, "%s/workspace/pipe", place.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect(call(&place, "file_read", "path", "pipe", NULL, NULL), true, "not a file");
    struct tool_result result = call(&place, "file_write", "path", "pipe", "content", "x");
    assert_true(result.is_error); /* and did not wait for a reader */
    tool_result_release(&result);
    memset(content, 'y', sizeof content - 1);
    content[sizeof content - 1] = '\0';
    expect(call(&place, "file_write", "path", "long", "content", content), false, "5000 bytes");
    result = call(&place, "file_read", "path", "long", NULL, NULL);
    assert_true(result.is_truncated);
    assert_true(result.output.length < 2100);
    assert_contains(text_get(&result.output), "truncated to 2000 bytes");
    tool_result_release(&result);
    close_place(&place);
}

/* ---- programs ---- */

static void commands_run_in_the_workspace(void **state)
{
    (void)state;
    struct place place;
    char path[128];
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 20);
    snprintf(path, sizeof path, "%s/workspace\n", place.folder);
    expect(shell(&place, "pwd"), false, path);
    expect(shell(&place, "echo out; echo err >&2"), false, "err");
    expect(shell(&place, "exit 3"), true, "[exit code 3]");
    expect(shell(&place, "true"), false, "(no output)");
    expect(shell(&place, "cat"), false, "(no output)"); /* its input is empty, not ours */
    struct tool_result result = shell(&place, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    assert_false(result.is_error);
    assert_true(result.cpu_s > 0);
    tool_result_release(&result);
    close_place(&place);
}

static void our_api_keys_are_not_passed_on(void **state)
{
    (void)state;
    struct place place;
    SKIP_WITHOUT(confine_available);
    setenv("OPENAI_API_KEY", "sk-secret", 1);
    open_place(&place, "shell", 20);
    struct tool_result result = shell(&place, "env");
    assert_null(strstr(text_get(&result.output), "sk-secret"));
    assert_contains(text_get(&result.output), "PATH=");
    tool_result_release(&result);
    close_place(&place);
    unsetenv("OPENAI_API_KEY");
}

static void output_is_limited_and_repaired(void **state)
{
    (void)state;
    struct place place;
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 20);
    struct tool_result result = shell(&place, "yes | head -c 3000000");
    assert_true(result.is_truncated);
    assert_true(result.output.length < 2100);
    tool_result_release(&result);
    expect(shell(&place, "printf 'a\\377b'"), false,
           "a\xEF\xBF\xBD"
           "b");
    close_place(&place);
}

static void a_slow_command_is_killed_with_its_children(void **state)
{
    (void)state;
    struct place place;
    char path[128], number[32] = "";
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 1);
    nanos start = clock_now();
    struct tool_result result = shell(&place, "sleep 300 & echo $! > pid; sleep 300");
    assert_true(result.timed_out);
    assert_true(result.is_error);
    assert_contains(text_get(&result.output), "timed out");
    assert_true(clock_now() - start < 60 * NS_PER_S);
    tool_result_release(&result);
    snprintf(path, sizeof path, "%s/workspace/pid", place.folder);
    int fd = open(path, O_RDONLY);
    assert_true(read(fd, number, sizeof number - 1) > 0);
    close(fd);
    pid_t pid = (pid_t)strtol(number, NULL, 10);
    for (int i = 0; i < 500 && kill(pid, 0) == 0; i++)
        thread_sleep(20 * NS_PER_MS); /* until init has seen its end */
    assert_int_equal(kill(pid, 0), -1);
    close_place(&place);
}

static void nothing_stays_in_the_background(void **state)
{
    (void)state;
    struct place place;
    char path[128];
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 30);
    nanos start = clock_now();
    expect(shell(&place, "(sleep 1; touch late) & setsid sh -c 'sleep 1; touch later' & echo ok"),
           false, "ok");
    assert_true(clock_now() - start < 20 * NS_PER_S); /* not until they end */
    thread_sleep(1500 * NS_PER_MS);
    snprintf(path, sizeof path, "%s/workspace/late", place.folder);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/workspace/later", place.folder);
    assert_int_equal(access(path, F_OK), -1);
    close_place(&place);
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

static void cpu_time_of_what_is_killed_counts(void **state)
{
    (void)state;
    struct place place;
    char path[128];
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 60);
    snprintf(path, sizeof path, "%s/workspace/used", place.folder);
    /* In the background; in that of a program that has ended; and under one that is killed by a signal. */
    static const char *const COMMANDS[] = {
        WORK " & " AWAIT,
        "(" WORK " &); " AWAIT,
        "(" AWAIT "; kill -9 $$) & " WORK "; true",
    };
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        unlink(path);
        struct tool_result result = shell(&place, COMMANDS[i]);
        assert_false(result.timed_out);
        double used = read_times(path);
        if (!(result.cpu_s >= used))
            print_error("%s: %g s of %g s\n", COMMANDS[i], result.cpu_s, used);
        assert_true(used > 0.02);
        assert_true(result.cpu_s >= used);
        tool_result_release(&result);
    }
    close_place(&place);
}

/* Of this process, by a program that is not confined: the oracle of the one that is. */
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

enum { GUARDED = 0, EXPOSED = 41, STILL_HIDDEN, NO_ORACLE };

/* As a user to whom the kernel does not grant everything. */
static int look_into_ourselves(void)
{
    enum { NOBODY = 65534 };
    struct place place;
    if (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY)))
        return NO_ORACLE;
    prctl(PR_SET_DUMPABLE, 1); /* which a change of the user ends */
    if (!can_read_environment())
        return NO_ORACLE;
    open_place(&place, "shell,python", 60);
    struct tool_result result = shell(&place, "cat /proc/$PPID/environ > copy");
    bool was_read = !result.is_error;
    tool_result_release(&result);
    close_place(&place);
    return was_read ? EXPOSED : can_read_environment() ? GUARDED : STILL_HIDDEN;
}

static void our_own_environment_cannot_be_read(void **state)
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
        _exit(look_into_ourselves());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_ORACLE)
        SKIP("%s", "the kernel hides the environment of processes");
    assert_int_equal(WEXITSTATUS(status), GUARDED);
}

static void sockets_are_refused(void **state)
{
    (void)state;
    struct place place;
    struct error why = {0};
    SKIP_WITHOUT(confine_available);
    for (size_t i = 0; TOOL_DRIVERS[i]; i++)
        if (!strcmp(TOOL_DRIVERS[i]->name, "python") && TOOL_DRIVERS[i]->available(&why))
            SKIP("%s", why.text);
    open_place(&place, "python,shell", 60);
    expect(call(&place, "python", "code", "print(6 * 7)", NULL, NULL), false, "42");
    expect(call(&place, "python", "code",
                "import socket\n"
                "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):\n"
                "    try:\n"
                "        socket.socket(family)\n"
                "        print('opened', family)\n"
                "    except PermissionError:\n"
                "        print('refused')\n",
                NULL, NULL),
           false, "refused\nrefused\nrefused");
    /* What a program starts is held to the same. */
    expect(shell(&place, "python3 -c 'import socket; socket.socket()' 2>&1 | tail -1"), false,
           "PermissionError");
    expect(call(&place, "python", "code", "1/0", NULL, NULL), true, "ZeroDivisionError");
    close_place(&place);
}

/* Python is the oracle of what a file's owner may do: what is denied here is not for the lack of a file's own rights. */
static void files_outside_the_workspace_are_closed(void **state)
{
    (void)state;
    struct place place;
    char command[512], home[] = "/tmp/ipw-home-XXXXXX", key[64];
    SKIP_WITHOUT(confine_available);
    SKIP_WITHOUT(confine_files_available);
    assert_non_null(mkdtemp(home));
    snprintf(key, sizeof key, "%s/key", home);
    put_file(key, "sk-secret");
    open_place(&place, "shell,python", 60);
    /* Reading, listing and writing beside the workspace; and the same inside it. */
    static const char *const DENIED[] = {"cat ../secret.txt",
                                         "ls ..",
                                         "echo x > ../made",
                                         "echo x >> ../secret.txt",
                                         "rm ../secret.txt",
                                         "mkdir ../made",
                                         "mv ../secret.txt here",
                                         "ln -s ../secret.txt l; cat l",
                                         "ls /tmp",
                                         "ls ~root",
                                         "cat /etc/shadow",
                                         "echo x > /tmp/ipw-made"};
    for (size_t i = 0; i < sizeof DENIED / sizeof *DENIED; i++)
        expect(shell(&place, DENIED[i]), true, "Permission denied");
    snprintf(command, sizeof command, "cat %s", key);
    expect(shell(&place, command), true, "Permission denied");
    expect(shell(&place,
                 "mkdir -p a/b; echo hi > a/b/c; mv a/b/c a/d; ln -s a/d e; cat e; rm -r a; "
                 "echo gone > /dev/null; cat /etc/passwd | head -1 | cut -c 1-4; nproc > n"),
           false, "hi\nroot");
    expect(call(&place, "python", "code",
                "import json, tempfile, subprocess, pathlib\n"
                "tempfile.NamedTemporaryFile().write(b'x')\n"
                "print(subprocess.run(['ls'], capture_output=True).returncode)\n"
                "try:\n    pathlib.Path('../secret.txt').read_text()\n"
                "except PermissionError:\n    print('refused')",
                NULL, NULL),
           false, "0\nrefused");
    /* Programs of the system find what they need. */
    if (access("/usr/lib/ssl/openssl.cnf", R_OK) == 0) /* a link into /etc */
        expect(shell(&place, "cat /usr/lib/ssl/openssl.cnf > c && echo read"), false, "read");
    close_place(&place);
    unlink(key);
    rmdir(home);
}

/* Of other processes neither, by root either; nor are they its to signal. */
static void other_processes_are_closed(void **state)
{
    (void)state;
    struct place place;
    char command[128];
    SKIP_WITHOUT(confine_available);
    SKIP_WITHOUT(confine_files_available);
    open_place(&place, "shell", 60);
    snprintf(command, sizeof command, "cat /proc/%d/environ", (int)getpid());
    expect(shell(&place, command), true, "Permission denied");
    expect(shell(&place, "cat /proc/$PPID/environ"), true, "Permission denied");
    close_place(&place);
}

static void what_the_user_names_can_be_read(void **state)
{
    (void)state;
    struct place place;
    struct params params = {0};
    struct error why = {0};
    char word[160];
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 60);
    toolset_close(&place.set);
    tool_session_close(&place.session);
    snprintf(word, sizeof word, "shell.read=/no/such/file;%s/secret.txt", place.folder);
    assert_int_equal(params_add(&params, word), ERR_OK);
    struct toolset_options options = {.names = "shell", .params = &params};
    assert_int_equal(toolset_open(&options, &place.set, &why), ERR_OK);
    snprintf(word, sizeof word, "%s/workspace", place.folder);
    assert_int_equal(tool_session_open(&place.set, word, &place.session, &why), ERR_OK);
    expect(shell(&place, "cat ../secret.txt"), false, "the secret");
    close_place(&place);
    assert_int_equal(params_add(&params, "shell.read=data"), ERR_OK);
    assert_int_equal(toolset_open(&options, &place.set, &why), ERR_USAGE);
    assert_contains(why.text, "absolute");
    params_release(&params);
}

/* coreutils' timeout makes a group of its own, and kills that. */
static void a_command_may_have_groups_and_sessions_of_its_own(void **state)
{
    (void)state;
    struct place place;
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell,python", 60);
    expect(shell(&place, "timeout 0.2 sleep 50; echo $? after"), false, "124 after");
    expect(shell(&place, "setsid sh -c 'echo apart' | cat; echo ok"), false, "apart\nok");
    /* And signals, none of which is ignored from the start. */
    expect(shell(&place, "kill -USR1 $$; echo ignored"), true, "[killed by signal 10]");
    expect(shell(&place, "kill -QUIT $$; echo ignored"), true, "[killed by signal 3]");
    close_place(&place);
}

static void inherited_descriptors_are_not_passed_on(void **state)
{
    (void)state;
    struct place place;
    int ends[2];
    char command[64], byte;
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 20);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); /* not close-on-exec */
    snprintf(command, sizeof command, "echo leaked >&%d", ends[0]);
    struct tool_result result = shell(&place, command);
    assert_true(result.is_error);
    tool_result_release(&result);
    assert_int_equal(recv(ends[1], &byte, 1, MSG_DONTWAIT), -1);
    close(ends[0]);
    close(ends[1]);
    /* The pipe that tells of a failed start is not among what is closed. */
    const char *const argv[] = {"/no/such/program", NULL};
    struct subprocess_result ended;
    struct text output = {0};
    struct subprocess_options options = {.argv = argv, .directory = -1, .confined = true};
    assert_int_equal(
        subprocess_run(&options, &(struct subprocess_run){0}, &output, &ended, &(struct error){0}),
        ERR_NOT_FOUND);
    text_release(&output);
    close_place(&place);
}

static void memory_is_limited(void **state)
{
    (void)state;
    struct place place;
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 60);
    struct tool_result result =
        shell(&place, "python3 -c 'x = bytearray(700 << 20); print(len(x))' 2>&1");
    assert_null(strstr(text_get(&result.output), "734003200"));
    tool_result_release(&result);
    result = shell(&place, "head -c 100000000 /dev/zero > big");
    assert_true(result.is_error); /* beyond the largest file */
    tool_result_release(&result);
    close_place(&place);
}

static void a_canceled_call_is_no_result(void **state)
{
    (void)state;
    struct place place;
    struct tool_result result;
    struct error why = {0};
    atomic_bool cancel = true;
    SKIP_WITHOUT(confine_available);
    open_place(&place, "shell", 60);
    assert_int_equal(tool_session_call(&place.session, "shell", "{\"command\":\"sleep 50\"}",
                                       &cancel, &result, &why),
                     ERR_INTERRUPTED);
    tool_result_release(&result);
    close_place(&place);
}

static void an_unknown_tool_is_reported_to_the_model(void **state)
{
    (void)state;
    struct place place;
    open_place(&place, "file_read,null", 10);
    expect(call(&place, "file_raed", "path", "x", NULL, NULL), true, "did you mean 'file_read'");
    close_place(&place);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_written_and_read),
        cmocka_unit_test(no_path_leaves_the_workspace),
        cmocka_unit_test(a_pipe_is_no_file_and_long_files_are_cut),
        cmocka_unit_test(commands_run_in_the_workspace),
        cmocka_unit_test(our_api_keys_are_not_passed_on),
        cmocka_unit_test(output_is_limited_and_repaired),
        cmocka_unit_test(a_slow_command_is_killed_with_its_children),
        cmocka_unit_test(nothing_stays_in_the_background),
        cmocka_unit_test(cpu_time_of_what_is_killed_counts),
        cmocka_unit_test(our_own_environment_cannot_be_read),
        cmocka_unit_test(sockets_are_refused),
        cmocka_unit_test(files_outside_the_workspace_are_closed),
        cmocka_unit_test(other_processes_are_closed),
        cmocka_unit_test(what_the_user_names_can_be_read),
        cmocka_unit_test(a_command_may_have_groups_and_sessions_of_its_own),
        cmocka_unit_test(inherited_descriptors_are_not_passed_on),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(a_canceled_call_is_no_result),
        cmocka_unit_test(an_unknown_tool_is_reported_to_the_model),
    };
    return RUN_TESTS_WITH(jv_available, tests);
}
