/* An agent as a whole: its tools, its settings and the workspaces of its queries.  loop.c has the turns. */
#define _GNU_SOURCE
#include "runner/agent/agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
    [AGENT_AUTO] = "native, or react where the service or the model takes no tools",
    [AGENT_NATIVE] = "the tool calls of the service's own interface",
    [AGENT_HERMES] = "in text: <tool_call>{...}</tool_call>",
    [AGENT_REACT] = "in text: lines of Thought, Action, Action Input, Observation, Final Answer",
};

/* ---- workspaces ---- */

enum { DEPTH_MAX = 64 };

/* Empties a directory, through no link; takes `fd` over.  A tool may have made anything in it. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void empty_folder(int fd, unsigned depth)
{
    DIR *folder = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
    if (!folder) {
        close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || unlinkat(fd, name, 0) == 0)
            continue;
        int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0)
            empty_folder(inner, depth + 1);
        unlinkat(fd, name, AT_REMOVEDIR);
    }
    closedir(folder);
}

static void remove_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        empty_folder(fd, 0);
    rmdir(path);
}

/* Of one query: empty, whatever an earlier start left there. */
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

/* ---- all of them ---- */

static enum err write_settings(struct agent *agent, struct error *why)
{
    struct json json;
    const struct agent_options *options = agent->options;
    json_init(&json, &agent->settings, false);
    json_object(&json, NULL);
    if (options->command)
        json_string(&json, "exec", options->command);
    json_array(&json, "tools");
    for (size_t i = 0; i < agent->tools.count; i++)
        json_string(&json, NULL, agent->tools.tools[i].spec.name);
    json_array_end(&json);
    json_integer(&json, "max_turns", options->max_turns);
    json_string(&json, "protocol", AGENT_PROTOCOLS[options->protocol]);
    json_number(&json, "tool_timeout_s", (double)agent->tools.timeout / NS_PER_S);
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
