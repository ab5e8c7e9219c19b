/* shell and python: programs written by a model, run in the query's workspace with limits on time, memory, file size
 * and output, without sockets and without our environment, which may contain keys.  All processes that they started are
 * killed at the end. They can write to the workspace only, and read besides it only what programs need: those in PATH,
 * the installation of Python, and paths named by the user. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent_tools/tool.h"
#include "core/log.h"
#include "core/xalloc.h"
#include "port/confine.h"
#include "port/proc.h"
#include "port/subprocess.h"

enum { MEMORY_MB = 1024, MEMORY_MOST_MB = 1 << 20, FILE_MB = 64 };
enum { PROCESSES = 256, PROCESSES_MOST = 4096 };

enum { READABLE_MAX = 64 };

struct program {
    char *path;
    size_t memory_bytes;
    unsigned processes;
    struct text paths; /* readable paths, each NUL-terminated */
    size_t path_count;
    const char *readable[READABLE_MAX + 1]; /* the same as an array */
};

static const struct param_spec PARAMS[] = {
    {"memory_mb", "MB", "address space of each process (default 1024)"},
    {"processes", "N", "processes and threads of a call at the same time (default 256)"},
    {"read", "PATH;PATH", "files and directories that may be read besides the workspace"},
    {NULL, NULL, NULL},
};

/* ---- readable paths ---- */

static void add_readable(struct program *program, const char *path, size_t length)
{
    if (!length || program->path_count == READABLE_MAX)
        return;
    text_add_bytes(&program->paths, path, length);
    text_add_bytes(&program->paths, "", 1);
    program->path_count++;
}

/* A directory of programs, unless it contains the user's own files. */
static void add_installation(struct program *program, const char *path, size_t length)
{
    const char *home = getenv("HOME");
    while (length && path[length - 1] == '/')
        length--;
    bool has_home =
        home && strncmp(home, path, length) == 0 && (home[length] == '\0' || home[length] == '/');
    if (length && path[0] == '/' && !has_home)
        add_readable(program, path, length);
}

/* PREFIX of PREFIX/bin/python3, which contains its libraries.  Not ~/.local, which contains more than programs. */
static void add_prefix_of(struct program *program, const char *path)
{
    static const char LOCAL[] = "/.local";
    const char *end = strrchr(path, '/');
    while (end && end > path) {
        end--;
        if (*end == '/')
            break;
    }
    size_t length = end ? (size_t)(end - path) : 0;
    size_t own = sizeof LOCAL - 1;
    if (length < own || memcmp(path + length - own, LOCAL, own) != 0)
        add_installation(program, path, length);
}

/* Adds both the path as called, which may be in a virtual environment, and the resolved path. */
static void add_prefix(struct program *program, const char *path)
{
    char *resolved = realpath(path, NULL);
    add_prefix_of(program, path);
    if (resolved)
        add_prefix_of(program, resolved);
    free(resolved);
}

static enum err add_named(struct program *program, const char *given, struct error *why)
{
    for (const char *at = given ? given : ""; *at; at += strspn(at, ";")) {
        size_t length = strcspn(at, ";");
        if (*at != '/')
            return err_set(why, ERR_USAGE, "read: %.100s: expected absolute paths, separated by ;",
                           at);
        add_readable(program, at, length);
        at += length;
    }
    return ERR_OK;
}

static enum err find_readable(struct program *program, const char *given, struct error *why)
{
    enum err err = add_named(program, given, why);
    for (const char *at = getenv("PATH"); !err && at && *at; at += strspn(at, ":")) {
        size_t length = strcspn(at, ":");
        add_installation(program, at, length);
        at += length;
    }
    char *python = proc_find("python3"); /* shell scripts may call it, too */
    add_prefix(program, program->path);
    if (python)
        add_prefix(program, python);
    free(python);
    if (err)
        return err;
    const char *at = program->paths.bytes;
    for (size_t i = 0; i < program->path_count; i++, at += strlen(at) + 1)
        program->readable[i] = at;
    return ERR_OK;
}

/* What this machine does not enforce. */
static enum err check_confined(struct error *why)
{
    struct error reason = {0};
    if (confine_files_available(&reason))
        return err_set(why, ERR_UNSUPPORTED, "not confined to the workspace: %s", reason.text);
    if (confine_tasks_available(&reason))
        return err_set(why, ERR_UNSUPPORTED, "killed when it exceeds its limit on processes: %s",
                       reason.text);
    return ERR_OK;
}

/* Warns once, since it applies to all queries. */
static void warn_unconfined(void)
{
    static atomic_bool warned;
    struct error why = {0};
    if (confine_files_available(&why) && !atomic_exchange(&warned, true))
        log_warn("%s: shell and python may read and write all files of this user", why.text);
}

/* ---- shared by both ---- */

static enum err open_program(const char *name, const struct tool_config *config, void *state,
                             struct error *why)
{
    struct program *program = state;
    struct params_reader read = {config->params, why, ERR_OK};
    program->memory_bytes = (size_t)params_count(&read, "memory_mb", MEMORY_MB, 1, MEMORY_MOST_MB)
                            << 20;
    program->processes = (unsigned)params_count(&read, "processes", PROCESSES, 1, PROCESSES_MOST);
    if (read.err)
        return read.err;
    program->path = proc_find(name);
    if (!program->path)
        return err_set(why, ERR_NOT_FOUND, "%s is not installed", name);
    enum err err = find_readable(program, params_get(config->params, "read"), why);
    if (err) {
        text_release(&program->paths);
        free(program->path);
        return err;
    }
    warn_unconfined();
    confine_guard();
    return ERR_OK;
}

static void close_program(void *state)
{
    struct program *program = state;
    text_release(&program->paths);
    free(program->path);
    confine_unguard();
}

static void describe_exit(const struct program *program, const struct subprocess_result *result,
                          const struct tool_request *call, struct tool_result *out)
{
    out->cpu_s = result->end.cpu_s;
    out->timed_out = result->timed_out;
    out->is_error =
        result->timed_out || result->end.has_reached_tasks || result->end.exit_code != 0;
    out->is_truncated = result->dropped > 0;
    if (result->end.has_reached_tasks)
        text_addf(&out->output, "\n[limit of %u processes and threads reached]",
                  program->processes);
    if (result->timed_out)
        text_addf(&out->output, "\n[timed out after %.3g s: killed]", seconds(call->timeout));
    else if (result->end.signal)
        text_addf(&out->output, "\n[killed by signal %d]", result->end.signal);
    else if (result->end.exit_code)
        text_addf(&out->output, "\n[exit code %d]", result->end.exit_code);
    else if (!out->output.length)
        text_add(&out->output, "(no output)");
}

/* What a program knows of its surroundings; ends with NULL. */
enum { ENVIRONMENT_OWNED = 4, ENVIRONMENT_SIZE = 7 };

static void make_environment(const struct workspace *workspace, char *out[static ENVIRONMENT_SIZE])
{
    static char locale[] = "LANG=C.UTF-8", terminal[] = "TERM=dumb";
    const char *ours = getenv("PATH");
    out[0] = xformat("HOME=%s", workspace->path);
    out[1] = xformat("TMPDIR=%s", workspace->path);
    out[2] = xformat("IPW_WORKSPACE=%s", workspace->path);
    out[3] = xformat("PATH=%s", ours ? ours : "/usr/bin:/bin");
    out[ENVIRONMENT_OWNED] = locale;
    out[ENVIRONMENT_OWNED + 1] = terminal;
    out[ENVIRONMENT_OWNED + 2] = NULL;
}

static enum err run_program(const struct program *program, const char *const argv[],
                            const struct tool_request *call, struct tool_result *out,
                            struct error *why)
{
    enum { NOTE = 128 }; /* reserved for the exit status, within the output limit */
    char *environment[ENVIRONMENT_SIZE];
    make_environment(call->workspace, environment);
    const struct subprocess_options options = {
        .argv = argv,
        .environment = (const char *const *)environment,
        .directory = call->workspace->fd,
        .memory_bytes = program->memory_bytes,
        .file_bytes = (size_t)FILE_MB << 20,
        .cpu_s = call->timeout > 0 ? (unsigned)(call->timeout / NS_PER_S) + 2 : 0,
        .confined = true,
        .readable = program->readable,
        .tasks_max = program->processes,
    };
    const struct subprocess_run run = {
        .timeout = call->timeout,
        .cancel = call->cancel,
        .output_limit = call->output_limit > NOTE ? call->output_limit - NOTE : 1,
    };
    struct subprocess_result result;
    struct error reason = {0};
    enum err err = subprocess_run(&options, &run, &out->output, &result, &reason);
    for (size_t i = 0; i < ENVIRONMENT_OWNED; i++)
        free(environment[i]);
    if (err)
        return tool_fail(out, "%s", reason.text);
    if (result.canceled)
        return err_set(why, ERR_INTERRUPTED, "%s: the call was canceled", argv[0]);
    describe_exit(program, &result, call, out);
    return ERR_OK;
}

/* ---- shell ---- */

static enum err shell_open(const struct tool_config *config, void *state, struct error *why)
{
    return open_program("sh", config, state, why);
}

static enum err shell_call(const struct tool_request *call, struct tool_result *out,
                           struct error *why)
{
    const struct program *program = call->state;
    const char *const argv[] = {program->path, "-c", call->texts[0], NULL};
    return run_program(program, argv, call, out, why);
}

const struct tool_driver tool_shell = {
    .name = "shell",
    .summary = "runs a shell command confined to the workspace; time and memory limits, no network",
    .params = PARAMS,
    .is_opt_in = true,
    .available = confine_available,
    .confined = check_confined,
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
    char *path = proc_find("python3");
    bool is_found = path;
    free(path);
    if (!is_found)
        return err_set(why, ERR_NOT_FOUND, "python3 is not installed: apt install python3");
    return confine_available(why);
}

static enum err python_open(const struct tool_config *config, void *state, struct error *why)
{
    return open_program("python3", config, state, why);
}

static enum err python_call(const struct tool_request *call, struct tool_result *out,
                            struct error *why)
{
    const struct program *program = call->state;
    /* -I: modules that an earlier call wrote to the workspace cannot shadow Python's own. */
    const char *const argv[] = {program->path, "-I", "-B", "-c", call->texts[0], NULL};
    return run_program(program, argv, call, out, why);
}

const struct tool_driver tool_python = {
    .name = "python",
    .summary = "runs Python code confined to the workspace; time and memory limits, no network",
    .params = PARAMS,
    .is_opt_in = true,
    .available = python_available,
    .confined = check_confined,
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
