/* test: real time, tsan */
/* MCP servers: tests/fakes/mcp_server.py, which lists its tools in pages, is slow, crashes and
 * prints lines that are not protocol messages; a Python HTTP server that redirects. */
#include "support/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent_tools/tool.h"
#include "core/clock.h"
#include "port/json_read.h"
#include "port/proc.h"
#include "port/thread.h"
#include "support/tool_results.h"

#define SERVER "python3 " IPW_FIXTURES "/../fakes/mcp_server.py"

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

static enum err try_open(struct fixture *fixture, const char *command, double timeout_s,
                         struct error *why)
{
    const char *const servers[] = {command};
    struct toolset_options options = {
        .names = "none", .servers = servers, .server_count = 1, .timeout = from_seconds(timeout_s)};
    return toolset_open(&options, &fixture->set, why);
}

static void open_fixture(struct fixture *fixture, const char *command, double timeout_s)
{
    struct error why = {0};
    /* cppcheck-suppress ctuuninitvar ; the address of an array */
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/ipw mcp-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    enum err err = try_open(fixture, command, timeout_s, &why);
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
    open_fixture(&fixture, SERVER " --pages 3", 60);
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
    open_fixture(&fixture, "first=" SERVER, 60);
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
    open_fixture(&fixture, SERVER " {workspace}", 60);
    expect_result(call(&fixture, "where", "{}"), false, fixture.folder); /* with a space in it */
    close_fixture(&fixture);
}

/* The server would be up after 20 s: longer than the call's timeout. */
static void a_slow_restart_counts_toward_the_call_timeout(void **state)
{
    (void)state;
    struct fixture fixture;
    char folder[] = "/tmp/ipw-mcp-XXXXXX", command[512];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "rmdir %s || sleep 20; exec " SERVER, folder);
    open_fixture(&fixture, command, 5);
    expect_result(call(&fixture, "crash", "{}"), true, "out of cheese");
    struct tool_result result = call(&fixture, "add", "{\"a\":1,\"b\":2}");
    assert_true(result.timed_out);
    expect_result(result, true, "cannot start the MCP server");
    close_fixture(&fixture);
}

static void a_crash_fails_the_call_and_the_next_one_works(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, SERVER, 60);
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
    open_fixture(&fixture, SERVER, 2);
    struct tool_result result = call(&fixture, "slow", "{}");
    assert_true(result.timed_out);
    assert_true(result.is_error);
    tool_result_release(&result);
    expect_result(call(&fixture, "add", "{\"a\":1,\"b\":2}"), false, "3");
    close_fixture(&fixture);
}

struct parallel {
    const struct fixture *fixture;
    struct tool_result result;
    const char *tool;
    nanos done;
};

static void *call_parallel(void *context)
{
    struct parallel *parallel = context;
    parallel->result = call(parallel->fixture, parallel->tool, "{\"s\":1.5,\"a\":1,\"b\":1}");
    parallel->done = clock_now();
    return NULL;
}

static void calls_run_concurrently(void **state)
{
    (void)state;
    struct fixture fixture;
    open_fixture(&fixture, SERVER, 60);
    struct parallel slow = {.fixture = &fixture, .tool = "slow"};
    struct parallel quick = {.fixture = &fixture, .tool = "add"};
    pthread_t threads[2];
    assert_int_equal(thread_start(&threads[0], call_parallel, &slow), ERR_OK);
    thread_sleep(200 * NS_PER_MS);
    assert_int_equal(thread_start(&threads[1], call_parallel, &quick), ERR_OK);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    expect_result(slow.result, false, "done");
    expect_result(quick.result, false, "2");
    assert_true(quick.done < slow.done);
    close_fixture(&fixture);
}

static void *set_soon(void *context)
{
    thread_sleep(NS_PER_S);
    atomic_store((atomic_bool *)context, true);
    return NULL;
}

static void a_start_that_hangs_can_be_canceled(void **state)
{
    (void)state;
    static const char *const COMMANDS[] = {
        SERVER " --mute initialize",
        SERVER " --mute tools/list",
        SERVER " --mute tools/list {workspace}",
    };
    for (size_t i = 0; i < sizeof COMMANDS / sizeof *COMMANDS; i++) {
        struct toolset set;
        struct error why = {0};
        atomic_bool cancel = false;
        pthread_t thread;
        const struct toolset_options options = {
            .names = "none", .servers = &COMMANDS[i], .server_count = 1, .cancel = &cancel};
        assert_int_equal(thread_start(&thread, set_soon, &cancel), ERR_OK);
        assert_int_equal(toolset_open(&options, &set, &why), ERR_INTERRUPTED);
        pthread_join(thread, NULL);
    }
}

static void a_message_beyond_the_limit_is_reported(void **state)
{
    (void)state;
    struct fixture fixture;
    struct error why = {0};
    assert_int_equal(try_open(&fixture, SERVER " --long tools/list", 60, &why), ERR_BAD_VALUE);
    assert_contains(why.text, "a message of more than 16 MiB");
    open_fixture(&fixture, SERVER " --long tools/call", 60);
    expect_result(call(&fixture, "add", "{\"a\":1,\"b\":2}"), true,
                  "a message of more than 16 MiB");
    close_fixture(&fixture);
}

static void a_server_that_does_not_start_is_an_error(void **state)
{
    (void)state;
    struct fixture fixture;
    struct error why = {0};
    assert_int_not_equal(try_open(&fixture, SERVER " --dead", 60, &why), ERR_OK);
    assert_contains(why.text, "no configuration");
    assert_int_not_equal(try_open(&fixture, "/no/such/server", 60, &why), ERR_OK);
    assert_contains(why.text, "not found");
    struct params params = {0};
    const char *const mute[] = {SERVER " --mute initialize"};
    assert_int_equal(params_add(&params, "mcp.start_timeout_s=1"), ERR_OK);
    struct toolset_options options = {
        .names = "none", .params = &params, .servers = mute, .server_count = 1};
    assert_int_equal(toolset_open(&options, &fixture.set, &why), ERR_TIMEOUT);
    params_release(&params);
}

int main(void)
{
    /* As the program does: a server may exit before it has read its input. */
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_are_listed_and_called),
        cmocka_unit_test(a_prefix_is_added_to_tool_names),
        cmocka_unit_test(a_per_query_server_runs_in_its_workspace),
        cmocka_unit_test(a_crash_fails_the_call_and_the_next_one_works),
        cmocka_unit_test(a_slow_restart_counts_toward_the_call_timeout),
        cmocka_unit_test(a_slow_call_times_out_and_the_server_survives),
        cmocka_unit_test(calls_run_concurrently),
        cmocka_unit_test(a_server_that_does_not_start_is_an_error),
        cmocka_unit_test(a_start_that_hangs_can_be_canceled),
        cmocka_unit_test(a_message_beyond_the_limit_is_reported),
    };
    return RUN_TESTS_WITH(python_available, tests);
}
