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
#include "core/xalloc.h"
#include "port/json_read.h"
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
        if (str_equal(name, ".") || str_equal(name, "..") || unlinkat(fd, name, 0) == 0)
            continue;
        chars_format(moved, ".deep-%llu", (unsigned long long)entry->d_ino);
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
static enum err make_workspace(const char *path, struct error *why)
{
    remove_folder(path);
    if (mkdir(path, 0700) == 0)
        return ERR_OK;
    return err_errno(why, errno, "cannot create the workspace %s", path);
}

static void remove_at_last(void *context)
{
    const struct agent *agent = context;
    remove_folder(agent->workspaces);
}

static enum err open_workspaces(struct agent *agent, struct error *why)
{
    const char *given = agent->options->workspaces;
    const char *folder = getenv("TMPDIR");
    if (given) {
        if (mkdir(given, 0777) == 0 || errno == EEXIST)
            agent->workspaces = realpath(given, NULL);
        if (!agent->workspaces)
            return err_set(why, ERR_USAGE, "--workspaces %s: %s", given, strerror(errno));
        return ERR_OK;
    }
    agent->workspaces = path_join(folder && *folder ? folder : "/tmp", "ipw-agent-XXXXXX");
    agent->is_temporary = mkdtemp(agent->workspaces) != NULL;
    if (agent->is_temporary) {
        agent->remove = (struct last_action){.run = remove_at_last, .context = agent};
        last_action_add(&agent->remove);
        return ERR_OK;
    }
    return err_errno(why, errno, "cannot create a directory for workspaces");
}

/* ---- queries ---- */

enum err agent_answer(struct agent *agent, const struct agent_query *query, struct completion *out,
                      struct error *why)
{
    char *workspace = path_join(agent->workspaces, query->key);
    enum err err = make_workspace(workspace, why);
    if (err)
        out->sent = out->done = clock_now();
    else if (agent->options->command)
        err = agent_external(agent, query, workspace, out, why);
    else
        err = agent_loop(agent, query, workspace, out, why);
    if (agent->is_temporary)
        remove_folder(workspace);
    free(workspace);
    return err;
}

/* ---- settings ---- */

static struct jv *tool_names(const struct toolset *tools)
{
    struct jv *list = jv_new_array();
    for (size_t i = 0; i < tools->count; i++)
        jv_add(list, NULL, jv_new_text(tools->tools[i].spec.name));
    return list;
}

static struct jv *server_commands(const struct toolset_options *tools)
{
    struct jv *list = jv_new_array();
    for (size_t i = 0; i < tools->server_count; i++)
        jv_add(list, NULL, jv_new_text(tools->servers[i]));
    return list;
}

static struct jv *tool_params(const struct params *params)
{
    struct jv *object = jv_new_object();
    for (size_t i = 0; params && i < params->count; i++)
        jv_add(object, params->items[i].key, jv_new_text(params->items[i].value));
    return object;
}

/* Only options that were given, so that a run without them has the default. */
static struct jv *settings_value(const struct agent *agent)
{
    const struct agent_options *options = agent->options;
    const struct toolset_options *tools = &options->tools;
    bool is_limited = tools->output_limit != TOOL_OUTPUT_DEFAULT;
    const struct jv_member MEMBERS[] = {
        {options->command ? "exec" : NULL, jv_new_text(options->command)},
        {options->no_inject_usage ? "inject_usage" : NULL, jv_new_bool(false)},
        {"tools", tool_names(&agent->tools)},
        {"max_turns", jv_new_integer(options->max_turns)},
        {"protocol", jv_new_text(AGENT_PROTOCOLS[options->protocol])},
        {"tool_timeout_s", jv_new_number((double)agent->tools.timeout / NS_PER_S)},
        {is_limited ? "tool_output_bytes" : NULL, jv_new_integer((int64_t)tools->output_limit)},
        {tools->server_count ? "mcp" : NULL, server_commands(tools)},
        {tools->params && tools->params->count ? "tool_params" : NULL, tool_params(tools->params)},
        {options->query_timeout ? "query_timeout_s" : NULL,
         jv_new_number((double)options->query_timeout / NS_PER_S)},
    };
    return jv_new_members(MEMBERS, COUNT_OF(MEMBERS));
}

enum err agent_open(struct agent *agent, const struct agent_options *options, struct error *why)
{
    *agent = (struct agent){.options = options};
    enum err err = toolset_open(&options->tools, &agent->tools, why);
    if (!err)
        err = open_workspaces(agent, why);
    if (err) {
        agent_close(agent);
        return err;
    }
    agent->settings = settings_value(agent);
    jv_hide_secrets(agent->settings); /* the URL of a server may have a password */
    return ERR_OK;
}

void agent_close(struct agent *agent)
{
    toolset_close(&agent->tools);
    if (agent->is_temporary) {
        last_action_remove(&agent->remove);
        remove_folder(agent->workspaces);
    }
    free(agent->workspaces);
    jv_free(agent->settings);
    agent->workspaces = NULL;
    agent->settings = NULL;
    agent->is_temporary = false;
}
