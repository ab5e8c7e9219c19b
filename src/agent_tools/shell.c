/* shell and python: programs that a model wrote, run in the query's workspace with limits of time, memory, file size and
 * output, without sockets and without our environment, which may hold keys.  Their whole process group is killed at the
 * end.  They read whatever this user may read: see docs/agents.md. */
#include <stdlib.h>
#include <string.h>

#include "agent_tools/tool.h"
#include "port/proc.h"
#include "port/subprocess.h"

enum { MEMORY_MB = 1024, MEMORY_MOST_MB = 1 << 20, FILE_MB = 64 };

struct program {
    char path[1024];
    size_t memory_bytes;
};

static const struct param_spec PARAMS[] = {
    {"memory_mb", "MB", "address space of each process (default 1024)"},
    {NULL, NULL, NULL},
};

static enum err open_program(const char *name, const struct tool_config *config, void *state,
                             struct error *why)
{
    struct program *program = state;
    uint64_t mb;
    enum err err = params_count(config->params, "memory_mb", MEMORY_MB, &mb, why);
    if (!err && (mb < 1 || mb > MEMORY_MOST_MB))
        err = err_set(why, ERR_USAGE, "memory_mb: expected 1 to %d", MEMORY_MOST_MB);
    if (!err && proc_find(name, program->path, sizeof program->path))
        err = err_set(why, ERR_NOT_FOUND, "%s is not installed", name);
    program->memory_bytes = (size_t)mb << 20;
    if (!err)
        subprocess_guard();
    return err;
}

static void close_program(void *state)
{
    (void)state;
    subprocess_unguard();
}

static void describe_end(const struct subprocess_result *result, const struct tool_request *call,
                         struct tool_result *out)
{
    out->cpu_s = result->end.cpu_s;
    out->timed_out = result->timed_out;
    out->is_error = result->timed_out || result->end.exit_code != 0;
    out->is_truncated = result->dropped > 0;
    if (result->timed_out)
        text_addf(&out->output, "\n[timed out after %.3g s: killed]", seconds(call->timeout));
    else if (result->end.signal)
        text_addf(&out->output, "\n[killed by signal %d]", result->end.signal);
    else if (result->end.exit_code)
        text_addf(&out->output, "\n[exit code %d]", result->end.exit_code);
    else if (!out->output.length)
        text_add(&out->output, "(no output)");
}

static enum err run_program(const struct program *program, const char *const argv[],
                            const struct tool_request *call, struct tool_result *out,
                            struct error *why)
{
    enum { NOTE = 64 }; /* room for how it ended, within the limit of the output */
    char home[1040], temporary[1040], workspace[1060], path[4096];
    const char *ours = getenv("PATH");
    const char *const environment[] = {home,           temporary,   workspace, path,
                                       "LANG=C.UTF-8", "TERM=dumb", NULL};
    str_join(home, sizeof home, "HOME=", call->workspace->path, "");
    str_join(temporary, sizeof temporary, "TMPDIR=", call->workspace->path, "");
    str_join(workspace, sizeof workspace, "IPW_WORKSPACE=", call->workspace->path, "");
    str_join(path, sizeof path, "PATH=", ours ? ours : "/usr/bin:/bin", "");
    const struct subprocess_options options = {
        .argv = argv,
        .environment = environment,
        .directory = call->workspace->fd,
        .memory_bytes = program->memory_bytes,
        .file_bytes = (size_t)FILE_MB << 20,
        .cpu_s = call->timeout > 0 ? (unsigned)(call->timeout / NS_PER_S) + 2 : 0,
        .confined = true,
    };
    const struct subprocess_run run = {
        .timeout = call->timeout,
        .cancel = call->cancel,
        .output_limit = call->output_limit > NOTE ? call->output_limit - NOTE : 1,
    };
    struct subprocess_result result;
    struct error reason = {0};
    enum err err = subprocess_run(&options, &run, &out->output, &result, &reason);
    if (err == ERR_NO_MEMORY)
        return err_no_memory(why);
    if (err)
        return tool_fail(out, "%s", reason.text);
    if (result.canceled)
        return err_set(why, ERR_INTERRUPTED, "%s: the call was canceled", argv[0]);
    describe_end(&result, call, out);
    return ERR_OK;
}

/* ---- shell ---- */

static enum err shell_open(const struct tool_config *config, void *state, struct error *why)
{
    return open_program("sh", config, state, why);
}

static enum err shell_call(void *state, const struct tool_spec *spec,
                           const struct tool_request *call, struct tool_result *out,
                           struct error *why)
{
    const struct program *program = state;
    (void)spec;
    const char *const argv[] = {program->path, "-c", call->texts[0], NULL};
    return run_program(program, argv, call, out, why);
}

const struct tool_driver tool_shell = {
    .name = "shell",
    .summary = "runs a shell command in the workspace; limits of time and memory, no network",
    .params = PARAMS,
    .must_be_named = true,
    .available = subprocess_can_confine,
    .state_size = sizeof(struct program),
    .open = shell_open,
    .close = close_program,
    .spec = {"shell",
             "Run a command with sh in the workspace and return its output. There is no network.",
             "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\"}},"
             "\"required\":[\"command\"]}",
             true,
             {"command"}},
    .call = shell_call,
};

/* ---- python ---- */

static enum err python_available(struct error *why)
{
    char path[1024];
    if (proc_find("python3", path, sizeof path))
        return err_set(why, ERR_NOT_FOUND, "python3 is not installed: apt install python3");
    return subprocess_can_confine(why);
}

static enum err python_open(const struct tool_config *config, void *state, struct error *why)
{
    return open_program("python3", config, state, why);
}

static enum err python_call(void *state, const struct tool_spec *spec,
                            const struct tool_request *call, struct tool_result *out,
                            struct error *why)
{
    const struct program *program = state;
    (void)spec;
    /* -I: modules that an earlier call left in the workspace do not shadow Python's own. */
    const char *const argv[] = {program->path, "-I", "-B", "-c", call->texts[0], NULL};
    return run_program(program, argv, call, out, why);
}

const struct tool_driver tool_python = {
    .name = "python",
    .summary = "runs Python code in the workspace; limits of time and memory, no network",
    .params = PARAMS,
    .must_be_named = true,
    .available = python_available,
    .state_size = sizeof(struct program),
    .open = python_open,
    .close = close_program,
    .spec = {"python",
             "Run Python 3 code in the workspace and return what it prints. There is no network.",
             "{\"type\":\"object\",\"properties\":{\"code\":{\"type\":\"string\",\"description\":"
             "\"must print its results\"}},\"required\":[\"code\"]}",
             true,
             {"code"}},
    .call = python_call,
};
