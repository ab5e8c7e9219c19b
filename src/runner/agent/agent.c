/* An agent: its tools, its settings and the workspaces of its queries.  The turns are in loop.c. */
#define _GNU_SOURCE
#include "runner/agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/json.h"
#include "wire/completion.h"

const char *const AGENT_PROTOCOLS[] = {
    [AGENT_AUTO] = "auto",
    [AGENT_NATIVE] = "native",
    [AGENT_HERMES] = "hermes",
    [AGENT_REACT] = "react",
    NULL,
};

const char *const AGENT_SUMMARIES[] = {
    [AGENT_AUTO] = "native, or react if the service or the model does not support tools",
    [AGENT_NATIVE] = "tool calls of the service's API",
    [AGENT_HERMES] = "in text: <tool_call>{...}</tool_call>",
    [AGENT_REACT] = "in text: lines of Thought, Action, Action Input, Observation, Final Answer",
};

/* ---- workspaces ---- */

enum { DEPTH_MAX = 64 };

/* Empties a directory without following links; takes ownership of `fd`.  A tool may have created anything in it:
 * directories without permissions, or nested deeper than there are descriptors, which are moved up to `top`. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void empty_folder(int fd, int top, unsigned depth)
{
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        char moved[32];
        if (!strcmp(name, ".") || !strcmp(name, "..") || unlinkat(fd, name, 0) == 0)
            continue;
        str_format(moved, sizeof moved, ".deep-%llu", (unsigned long long)entry->d_ino);
        if (depth == DEPTH_MAX && renameat(fd, name, top, moved) == 0)
            continue;
        int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0 && errno == EACCES && fchmodat(fd, name, 0700, 0) == 0)
            inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0 && fchmod(inner, 0700) == 0 && depth < DEPTH_MAX)
            empty_folder(inner, top, depth + 1);
        else if (inner >= 0)
            close(inner);
        unlinkat(fd, name, AT_REMOVEDIR);
    }
    closedir(folder);
}

/* One pass per level of directories that were nested too deeply. */
static void remove_folder(const char *path)
{
    enum { ROUNDS_MAX = 1000 };
    for (int i = 0; i < ROUNDS_MAX && rmdir(path) != 0 && errno != ENOENT; i++) {
        int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int fd = top >= 0 ? fcntl(top, F_DUPFD_CLOEXEC, 0) : -1;
        if (fd >= 0)
            empty_folder(fd, top, 0);
        if (top >= 0)
            close(top);
        if (fd < 0)
            return;
    }
}

/* The empty workspace of one query; removes leftovers of an earlier start. */
static enum err make_workspace(const struct agent *agent, const char *key, char *path, size_t size,
                               struct error *why)
{
    if (!str_format(path, size, "%s/%s", agent->workspaces, key))
        return err_set(why, ERR_USAGE, "the path of the workspaces is too long");
    remove_folder(path);
    if (mkdir(path, 0700) == 0)
        return ERR_OK;
    return err_set(why, err_from_errno(errno), "cannot create the workspace %s: %s",
                   plain_text(path).text, strerror(errno));
}

static enum err open_workspaces(struct agent *agent, struct error *why)
{
    const char *given = agent->options->workspaces;
    const char *folder = getenv("TMPDIR");
    if (given) {
        char *absolute = mkdir(given, 0777) == 0 || errno == EEXIST ? realpath(given, NULL) : NULL;
        if (!absolute)
            return err_set(why, ERR_USAGE, "--workspaces %.100s: %s", plain_text(given).text,
                           strerror(errno));
        bool fits = str_copy(agent->workspaces, sizeof agent->workspaces, absolute);
        free(absolute);
        return fits ? ERR_OK : err_set(why, ERR_USAGE, "--workspaces: the path is too long");
    }
    str_join(agent->workspaces, sizeof agent->workspaces, folder && *folder ? folder : "/tmp",
             "/ipw-agent-XXXXXX", "");
    agent->is_temporary = mkdtemp(agent->workspaces) != NULL;
    if (agent->is_temporary)
        return ERR_OK;
    return err_set(why, err_from_errno(errno), "cannot create a directory for workspaces: %s",
                   strerror(errno));
}

/* ---- queries ---- */

enum err agent_answer(struct agent *agent, const struct agent_query *query, struct completion *out,
                      struct error *why)
{
    char workspace[600];
    enum err err = make_workspace(agent, query->key, workspace, sizeof workspace, why);
    if (err) {
        out->sent = out->done = clock_now();
        return err;
    }
    err = agent->options->command ? agent_external(agent, query, workspace, out, why)
                                  : agent_loop(agent, query, workspace, out, why);
    if (agent->is_temporary)
        remove_folder(workspace);
    return err;
}

/* ---- settings ---- */

/* Only options that were given, so that a run without them has the default. */
static void write_tool_settings(const struct toolset_options *tools, struct json *json)
{
    if (tools->server_count) {
        json_array(json, "mcp");
        for (size_t i = 0; i < tools->server_count; i++)
            json_string(json, NULL, tools->servers[i]);
        json_array_end(json);
    }
    if (tools->params && tools->params->count) {
        json_object(json, "tool_params");
        for (size_t i = 0; i < tools->params->count; i++)
            json_string(json, tools->params->items[i].key, tools->params->items[i].value);
        json_object_end(json);
    }
}

static enum err write_settings(struct agent *agent, struct error *why)
{
    struct json json;
    const struct agent_options *options = agent->options;
    json_init(&json, &agent->settings, false);
    json_object(&json, NULL);
    json_optional_string(&json, "exec", options->command);
    if (options->no_inject_usage)
        json_bool(&json, "inject_usage", false);
    json_array(&json, "tools");
    for (size_t i = 0; i < agent->tools.count; i++)
        json_string(&json, NULL, agent->tools.tools[i].spec.name);
    json_array_end(&json);
    json_integer(&json, "max_turns", options->max_turns);
    json_string(&json, "protocol", AGENT_PROTOCOLS[options->protocol]);
    json_number(&json, "tool_timeout_s", (double)agent->tools.timeout / NS_PER_S);
    if (options->tools.output_limit != TOOL_OUTPUT_DEFAULT)
        json_integer(&json, "tool_output_bytes", (int64_t)options->tools.output_limit);
    write_tool_settings(&options->tools, &json);
    if (options->query_timeout)
        json_number(&json, "query_timeout_s", (double)options->query_timeout / NS_PER_S);
    json_object_end(&json);
    return agent->settings.failed ? err_no_memory(why) : ERR_OK;
}

enum err agent_open(struct agent *agent, const struct agent_options *options, struct error *why)
{
    *agent = (struct agent){.options = options};
    enum err err = toolset_open(&options->tools, &agent->tools, why);
    if (!err)
        err = open_workspaces(agent, why);
    if (!err)
        err = write_settings(agent, why);
    if (err)
        agent_close(agent);
    return err;
}

void agent_close(struct agent *agent)
{
    toolset_close(&agent->tools);
    if (agent->is_temporary)
        remove_folder(agent->workspaces);
    text_release(&agent->settings);
    agent->is_temporary = false;
}
