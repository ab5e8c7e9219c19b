/* test: real time, tsan */
/* MCP servers: tests/fakes/mcp_server.py, which lists its tools in pages, is slow, crashes and prints lines that are not
 * protocol messages.  Timeouts are long, and pass when the log of the server says that it is where it is to hang; real is
 * the half second that a server has to say why it ends. */
#include "support/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent_tools/tool.h"
#include "core/clock.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/thread.h"
#include "support/shifted_clock.h"
#include "support/tool_results.h"

#define SERVER          "python3 " IPW_FIXTURES "/../fakes/mcp_server.py"

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(text)  #text

/* Of calls, and of a start, if no call waits for it. */
#define TIMEOUT_S       600
#define START_TIMEOUT_S 660

/* Of the servers of a test, which append their messages to it. */
static char log_path[32];

static int set_up(void **state)
{
    (void)state;
    snprintf(log_path, sizeof log_path, "/tmp/ipw-mcp-log-XXXXXX");
    int fd = mkstemp(log_path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(log_path);
}

/* The command line of a server that writes the log. */
static const char *logged(const char *command)
{
    static char line[512];
    snprintf(line, sizeof line, "%s --log %s", command, log_path);
    return line;
}

/* A thread that lets the time pass, or cancels, once a server has received this. */
static pthread_t shift_at(struct shift_at *at, const char *text)
{
    pthread_t thread;
    at->path = log_path;
    at->text = text;
    assert_int_equal(thread_start(&thread, shifted_clock_main, at), ERR_OK);
    return thread;
}

struct fixture {
    char folder[64];
    struct toolset set;
    struct tool_session session;
};

static enum err python_available(struct error *why)
{
    char *path = proc_find("python3");
    bool is_found = path;
    free(path);
    return is_found ? ERR_OK : err_set(why, ERR_NOT_FOUND, "python3 is not installed");
}

static enum err try_open(struct fixture *fixture, const char *command, struct error *why)
{
    const char *const servers[] = {command};
    struct params params = {0};
    assert_int_equal(params_add(&params, "mcp.start_timeout_s=" TEXT_OF(START_TIMEOUT_S)), ERR_OK);
    struct toolset_options options = {.names = "none",
                                      .params = &params,
                                      .servers = servers,
                                      .server_count = 1,
                                      .timeout = TIMEOUT_S * NS_PER_S};
    enum err err = toolset_open(&options, &fixture->set, why);
    params_release(&params);
    return err;
}

static void open_fixture(struct fixture *fixture, const char *command)
{
    struct error why = {0};
    /* cppcheck-suppress ctuuninitvar ; the address of an array */
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/ipw mcp-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    enum err err = try_open(fixture, command, &why);
    if (err)
        print_error("%s\n", why.text);
    assert_int_equal(err, ERR_OK);
    assert_int_equal(tool_session_open(&fixture->set, fixture->folder, &fixture->session, &why),
                     ERR_OK);
}

static void close_fixture(struct fixture *fixture)
{
    tool_session_close(&fixture->session);
    toolset_close(&fixture->set);
    rmdir(fixture->folder);
}

static struct tool_result call(const struct fixture *fixture, const char *tool,
                               const char *arguments)
{
    struct tool_result result;
    struct error why = {0};
    assert_int_equal(tool_session_call(&fixture->session, tool, arguments, NULL, &result, &why),
                     ERR_OK);
    return result;
}

static void tools_are_listed_and_called(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, SERVER " --pages 3");
    assert_int_equal(fixture.set.count, 10);
    expect_result(call(&fixture, "add", "{\"a\":2,\"b\":40}"), false, "42");
    expect_result(call(&fixture, "echo", "{\"x\":{\"y\":[1,null]}}"), false,
                  "{\"x\": {\"y\": [1, null]}}");
    expect_result(call(&fixture, "fail", "{}"), true, "it failed");
    expect_result(call(&fixture, "parts", "{}"), false, "one\n[image, not shown]\ntwo");
    expect_result(call(&fixture, "noise", "{}"), false, "quiet");
    expect_result(call(&fixture, "ask", "{}"), false, "asked");
    struct tool_result result = call(&fixture, "huge", "{}");
    assert_true(result.is_truncated);
    tool_result_release(&result);
    close_fixture(&fixture);
}

static void a_prefix_is_added_to_tool_names(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, "first=" SERVER);
    expect_result(call(&fixture, "first_add", "{\"a\":1,\"b\":1}"), false, "2");
    close_fixture(&fixture);
    const char *const twice[] = {SERVER, SERVER};
    struct toolset_options options = {.names = "none", .servers = twice, .server_count = 2};
    struct error why = {0};
    assert_int_equal(toolset_open(&options, &fixture.set, &why), ERR_USAGE);
    assert_contains(why.text, "PREFIX=COMMAND");
}

static void a_per_query_server_runs_in_its_workspace(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, SERVER " {workspace}");
    expect_result(call(&fixture, "where", "{}"), false, fixture.folder); /* with a space in it */
    close_fixture(&fixture);
}

/* The second start hangs. */
static void a_slow_restart_counts_toward_the_call_timeout(void **state)
{
    (void)state;
    struct fixture fixture;
    struct shift_at at = {.length = TIMEOUT_S * NS_PER_S};
    char first[] = "/tmp/ipw-mcp-XXXXXX", command[512];
    assert_non_null(mkdtemp(first));
    snprintf(command, sizeof command,
             "rmdir %s || { echo restarted >%s; cat >/dev/null; exit; }; exec " SERVER, first,
             log_path);
    open_fixture(&fixture, command);
    expect_result(call(&fixture, "crash", "{}"), true, "out of cheese");
    pthread_t thread = shift_at(&at, "restarted");
    nanos began = clock_now();
    struct tool_result result = call(&fixture, "add", "{\"a\":1,\"b\":2}");
    assert_true(clock_now() - began < START_TIMEOUT_S * NS_PER_S);
    assert_true(result.timed_out);
    expect_result(result, true, "cannot start the MCP server");
    pthread_join(thread, NULL);
    close_fixture(&fixture);
}

static void a_crash_fails_the_call_and_the_next_one_works(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, SERVER);
    for (int i = 0; i < 3; i++) {
        expect_result(call(&fixture, "crash", "{}"), true, "out of cheese");
        expect_result(call(&fixture, "add", "{\"a\":1,\"b\":2}"), false, "3");
    }
    expect_result(call(&fixture, "crash", "{}"), true, "exited");
    expect_result(call(&fixture, "add", "{\"a\":1,\"b\":2}"), true, "exited 4 times");
    close_fixture(&fixture);
}

static void a_slow_call_times_out_and_the_server_survives(void **state)
{
    (void)state;
    struct fixture fixture;
    struct shift_at at = {.length = TIMEOUT_S * NS_PER_S};
    open_fixture(&fixture, logged(SERVER));
    pthread_t thread = shift_at(&at, "slow");
    struct tool_result result = call(&fixture, "slow", "{}");
    assert_true(result.timed_out);
    assert_true(result.is_error);
    tool_result_release(&result);
    pthread_join(thread, NULL);
    await_text(log_path, "notifications/cancelled");
    expect_result(call(&fixture, "add", "{\"a\":1,\"b\":2}"), false, "3");
    close_fixture(&fixture);
}

struct parallel {
    const struct fixture *fixture;
    struct tool_result result;
    char arguments[128];
    atomic_bool is_done;
};

static void *call_parallel(void *context)
{
    struct parallel *parallel = context;
    parallel->result = call(parallel->fixture, "slow", parallel->arguments);
    parallel->is_done = true;
    return NULL;
}

/* The slow call ends when the quick one has. */
static void calls_run_concurrently(void **state)
{
    (void)state;
    struct fixture fixture;
    pthread_t thread;
    open_fixture(&fixture, logged(SERVER));
    struct parallel slow = {.fixture = &fixture};
    char until[] = "/tmp/ipw-mcp-XXXXXX";
    close(mkstemp(until));
    unlink(until);
    snprintf(slow.arguments, sizeof slow.arguments, "{\"until\":\"%s\"}", until);
    assert_int_equal(thread_start(&thread, call_parallel, &slow), ERR_OK);
    await_text(log_path, "slow");
    expect_result(call(&fixture, "add", "{\"a\":1,\"b\":1}"), false, "2");
    assert_false(slow.is_done);
    close(open(until, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    pthread_join(thread, NULL);
    unlink(until);
    expect_result(slow.result, false, "done");
    close_fixture(&fixture);
}

static void a_start_that_hangs_can_be_canceled(void **state)
{
    static const struct {
        const char *command, *hangs_at;
    } CASES[] = {
        {SERVER " --mute initialize", "initialize"},
        {SERVER " --mute tools/list", "tools/list"},
        {SERVER " --mute tools/list {workspace}", "tools/list"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct toolset set;
        struct error why = {0};
        atomic_bool cancel = false;
        struct shift_at at = {.cancel = &cancel};
        const char *command = logged(CASES[i].command);
        const struct toolset_options options = {
            .names = "none", .servers = &command, .server_count = 1, .cancel = &cancel};
        pthread_t thread = shift_at(&at, CASES[i].hangs_at);
        assert_int_equal(toolset_open(&options, &set, &why), ERR_INTERRUPTED);
        pthread_join(thread, NULL);
        tear_down(state);
        assert_int_equal(set_up(state), 0);
    }
}

static void a_message_beyond_the_limit_is_reported(void **state)
{
    (void)state;
    struct fixture fixture;
    struct error why = {0};
    assert_int_equal(try_open(&fixture, SERVER " --long tools/list", &why), ERR_BAD_VALUE);
    assert_contains(why.text, "a message of more than 16 MiB");
    open_fixture(&fixture, SERVER " --long tools/call");
    expect_result(call(&fixture, "add", "{\"a\":1,\"b\":2}"), true,
                  "a message of more than 16 MiB");
    close_fixture(&fixture);
}

static void a_server_that_does_not_start_is_an_error(void **state)
{
    (void)state;
    struct fixture fixture;
    struct error why = {0};
    assert_int_not_equal(try_open(&fixture, SERVER " --dead", &why), ERR_OK);
    assert_contains(why.text, "no configuration");
    assert_int_not_equal(try_open(&fixture, "/no/such/server", &why), ERR_OK);
    assert_contains(why.text, "not found");
    struct shift_at at = {.length = START_TIMEOUT_S * NS_PER_S};
    pthread_t thread = shift_at(&at, "initialize");
    assert_int_equal(try_open(&fixture, logged(SERVER " --mute initialize"), &why), ERR_TIMEOUT);
    pthread_join(thread, NULL);
}

#define MCP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    /* As the program does: a server may exit before it has read its input. */
    signal(SIGPIPE, SIG_IGN);
    shifted_clock_start();
    const struct CMUnitTest tests[] = {
        MCP_TEST(tools_are_listed_and_called),
        MCP_TEST(a_prefix_is_added_to_tool_names),
        MCP_TEST(a_per_query_server_runs_in_its_workspace),
        MCP_TEST(a_crash_fails_the_call_and_the_next_one_works),
        MCP_TEST(a_slow_restart_counts_toward_the_call_timeout),
        MCP_TEST(a_slow_call_times_out_and_the_server_survives),
        MCP_TEST(calls_run_concurrently),
        MCP_TEST(a_server_that_does_not_start_is_an_error),
        MCP_TEST(a_start_that_hangs_can_be_canceled),
        MCP_TEST(a_message_beyond_the_limit_is_reported),
    };
    return RUN_TESTS_WITH(python_available, tests);
}
