/* Tools of MCP servers (Model Context Protocol): programs that are started here, or services at a URL.  A program is
 * started when its tools are listed and stays for the run; if it exits or does not respond in time, its pending calls
 * fail, and it is restarted for the next call.
 *
 * A command that contains {workspace} starts one server per query, at the first tool call; any other server is shared
 * by the whole run. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_tools/mcp/mcp_session.h"
#include "agent_tools/tool.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/secret.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "port/url.h"

#define WORKSPACE_MARK "{workspace}"
#define TOKEN_VARIABLE "IPW_MCP_TOKEN"

enum {
    TOOLS_MAX = 512,
    PAGES_MAX = 64,
    RESTARTS_MAX = 3,
    START_TIMEOUT_S = 60, /* a package manager may have to download the server */
};

/* ---- the driver ---- */

/* Scope of a server: the whole run, or one query. */
struct server_scope {
    pthread_mutex_t lock;
    struct mcp_session *server; /* NULL: not started */
    unsigned users;             /* calls in flight */
    unsigned restarts;
};

struct mcp {
    const struct mcp_transport *transport;
    char *address, *shown; /* a command or a URL; shown has no password */
    char *prefix, *token;  /* token: NULL if there is none */
    bool is_per_query;
    nanos timeout; /* time limit for starting a server */
    struct server_scope shared;
    struct tool_spec *specs;
    char **server_names; /* original names of the tools */
    size_t count;
};

static const struct param_spec PARAMS[] = {
    {"command", "COMMAND", "command of the server, or its URL; {workspace}: one server per query"},
    {"prefix", "TEXT", "prefix of its tools' names (default none)"},
    {"start_timeout_s", "S", "time limit for starting it (default 60)"},
    {NULL, NULL, NULL},
};

/* The server of a scope, started if it is not running; call release_server when done.  The first start has its own time
 * limit, by which *deadline of the call is extended; a restart after a crash counts against the call. */
static enum err acquire_server(const struct mcp *mcp, struct server_scope *scope,
                               const struct tool_request *call, nanos *deadline,
                               struct mcp_session **out, struct error *why)
{
    enum err err = ERR_OK;
    pthread_mutex_lock(&scope->lock);
    if (scope->server && !scope->users && mcp_session_has_ended(scope->server)) {
        if (++scope->restarts > RESTARTS_MAX)
            err = err_set(why, ERR_LOST, "the MCP server exited %d times", RESTARTS_MAX + 1);
        if (!err) {
            mcp_session_close(scope->server);
            scope->server = NULL;
        }
    }
    if (!err && !scope->server) {
        nanos began = clock_now(), left = *deadline - began;
        nanos limit = scope->restarts && left < mcp->timeout ? left : mcp->timeout;
        const struct mcp_target target = {mcp->address, mcp->shown, mcp->token, call->workspace};
        err = mcp_session_open(mcp->transport, &target, limit, call->cancel, &scope->server, why);
        if (!scope->restarts)
            *deadline += clock_now() - began;
    }
    if (!err) {
        scope->users++;
        *out = scope->server;
    }
    pthread_mutex_unlock(&scope->lock);
    return err;
}

static void release_server(struct server_scope *scope)
{
    pthread_mutex_lock(&scope->lock);
    scope->users--;
    pthread_mutex_unlock(&scope->lock);
}

/* ---- its tools ---- */

static void free_spec(struct tool_spec *spec)
{
    free((char *)spec->name);
    free((char *)spec->description);
    free((char *)spec->parameters);
}

/* APIs of models allow fewer characters in a name than MCP does. */
static char *make_tool_name(const char *prefix, const char *name)
{
    char joined[TOOL_NAME_MAX + 1];
    str_join(joined, sizeof joined, prefix, name, "");
    for (char *c = joined; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *c))
            *c = '_';
    return xstrdup(joined);
}

static enum err add_spec(struct mcp *mcp, const struct jv *tool, struct error *why)
{
    const char *name = jv_get_text(tool, "name");
    const char *description = jv_get_text(tool, "description");
    const struct jv *schema = jv_get(tool, "inputSchema");
    struct text parameters = {0};
    if (!name || !*name)
        return err_set(why, ERR_BAD_VALUE, "MCP tools/list: a tool without a name");
    if (mcp->count == TOOLS_MAX)
        return err_set(why, ERR_BAD_VALUE, "MCP tools/list: more than %d tools", TOOLS_MAX);
    if (jv_is_object(schema))
        jv_print(schema, &parameters);
    else
        text_add(&parameters, "{\"type\":\"object\"}");
    struct tool_spec spec = {make_tool_name(mcp->prefix, name),
                             xstrdup(description ? description : ""),
                             parameters.bytes,
                             !jv_bool(jv_path(tool, "annotations.readOnlyHint"), false),
                             {NULL}};
    mcp->specs[mcp->count] = spec;
    mcp->server_names[mcp->count++] = xstrdup(name);
    return ERR_OK;
}

static enum err list_tools(struct mcp *mcp, struct mcp_session *server, const atomic_bool *cancel,
                           struct error *why)
{
    struct text params = {0};
    enum err err = ERR_OK;
    bool is_more = true;
    for (unsigned page = 0; is_more && !err; page++) {
        struct jv *answer;
        if (page == PAGES_MAX)
            err = err_set(why, ERR_BAD_VALUE, "MCP tools/list: more than %d pages", PAGES_MAX);
        const struct mcp_request request = {"tools/list", params.length ? params.bytes : "{}",
                                            mcp->timeout, cancel};
        if (!err)
            err = mcp_session_result(server, &request, &answer, why);
        if (err)
            break;
        const struct jv *tools = jv_path(answer, "result.tools");
        for (const struct jv *tool = jv_first(tools); tool && !err; tool = jv_next(tool))
            err = add_spec(mcp, tool, why);
        const char *cursor = jv_text(jv_path(answer, "result.nextCursor"));
        is_more = cursor && *cursor;
        text_clear(&params);
        struct json json;
        json_init(&json, &params, false);
        json_object(&json, NULL);
        json_string(&json, "cursor", cursor);
        json_object_end(&json);
        jv_free(answer);
    }
    text_release(&params);
    if (!err && !mcp->count)
        err = err_set(why, ERR_NO_DATA, "the MCP server '%.80s' has no tools",
                      plain_text(mcp->shown).text);
    return err;
}

static const struct tool_spec *mcp_list(void *state, size_t *count)
{
    const struct mcp *mcp = state;
    *count = mcp->count;
    return mcp->specs;
}

/* ---- opening ---- */

static void mcp_close(void *state)
{
    struct mcp *mcp = state;
    mcp_session_close(mcp->shared.server);
    pthread_mutex_destroy(&mcp->shared.lock);
    for (size_t i = 0; i < mcp->count; i++) {
        free_spec(&mcp->specs[i]);
        free(mcp->server_names[i]);
    }
    free(mcp->specs);
    free(mcp->server_names);
    free(mcp->address);
    free(mcp->shown);
    free(mcp->prefix);
    free(mcp->token);
}

/* Lists the tools once.  A per-query server is started for that in a temporary directory, which is then removed. */
static enum err find_tools(struct mcp *mcp, const atomic_bool *cancel, struct error *why)
{
    static char no_path[] = "";
    struct workspace workspace = {.fd = -1, .path = no_path};
    struct mcp_session *server;
    if (mcp->is_per_query) {
        const char *given = getenv("TMPDIR");
        const char *folder = given && *given ? given : "/tmp";
        workspace.path = path_join(folder, "ipw-mcp-XXXXXX");
        if (!mkdtemp(workspace.path)) {
            int number = errno;
            free(workspace.path);
            return err_set(why, err_from_errno(number), "cannot create a directory in %s: %s",
                           folder, strerror(number));
        }
    }
    const struct tool_request start = {.workspace = &workspace, .cancel = cancel};
    nanos deadline = 0; /* not part of a call: the first start */
    enum err err = acquire_server(mcp, &mcp->shared, &start, &deadline, &server, why);
    if (!err) {
        err = list_tools(mcp, server, cancel, why);
        release_server(&mcp->shared);
    }
    if (mcp->is_per_query) {
        mcp_session_close(mcp->shared.server);
        mcp->shared.server = NULL;
        rmdir(workspace.path); /* fails if the server left files there */
        free(workspace.path);
    }
    return err;
}

static bool is_url(const char *address)
{
    return str_starts(address, "http://") || str_starts(address, "https://");
}

/* The token for a URL: IPW_MCP_TOKEN_FILES for a server with the prefix "files_", else IPW_MCP_TOKEN. */
static void find_token(struct mcp *mcp)
{
    char name[sizeof TOKEN_VARIABLE + TOOL_NAME_MAX + 1];
    str_join(name, sizeof name, TOKEN_VARIABLE, "_", mcp->prefix);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    size_t length = strlen(name);
    if (length && name[length - 1] == '_') /* the prefix ends with one */
        name[length - 1] = '\0';
    const char *token = getenv(name);
    if (!token || !*token)
        token = getenv(TOKEN_VARIABLE);
    if (!token || !*token)
        return;
    secret_add(token);
    mcp->token = xstrdup(token);
    char *trimmed = str_trim(mcp->token); /* one read from a file often ends with a newline */
    memmove(mcp->token, trimmed, strlen(trimmed) + 1);
    secret_add(mcp->token);
}

static enum err set_address(struct mcp *mcp, const char *address, struct error *why)
{
    struct url url;
    const char *shown = address;
    enum err err = ERR_OK;
    mcp->transport = is_url(address) ? &mcp_http : &mcp_stdio;
    mcp->is_per_query = strstr(address, WORKSPACE_MARK);
    if (is_url(address) && mcp->is_per_query)
        err = err_set(why, ERR_USAGE,
                      "an MCP server at a URL is shared by all queries: " WORKSPACE_MARK
                      " needs a command");
    if (!err && is_url(address)) {
        err = url_read(address, &url, why);
        shown = url.shown;
    }
    if (err)
        return err;
    mcp->address = xstrdup(address);
    mcp->shown = xstrdup(shown);
    if (is_url(address))
        find_token(mcp);
    return ERR_OK;
}

static enum err mcp_open(const struct tool_config *config, void *state, struct error *why)
{
    struct mcp *mcp = state;
    const char *address = params_get(config->params, "command");
    const char *prefix = params_get(config->params, "prefix");
    struct params_reader read = {config->params, why, ERR_OK};
    double start_s = params_number(&read, "start_timeout_s", START_TIMEOUT_S, 0, 3600);
    enum err err = read.err;
    if (!err && start_s == 0)
        err = err_set(why, ERR_USAGE, "start_timeout_s: expected more than 0, up to 3600");
    if (!err && (!address || !*address))
        err = err_set(why, ERR_USAGE, "mcp needs a server: --mcp 'COMMAND' or --mcp URL");
    if (err)
        return err;
    pthread_mutex_init(&mcp->shared.lock, NULL);
    mcp->timeout = from_seconds(start_s);
    mcp->prefix = xstrdup(prefix ? prefix : "");
    mcp->specs = xcalloc(TOOLS_MAX, sizeof *mcp->specs);
    mcp->server_names = xcalloc(TOOLS_MAX, sizeof *mcp->server_names);
    err = set_address(mcp, address, why);
    if (!err)
        err = find_tools(mcp, config->cancel, why);
    if (err)
        mcp_close(mcp);
    return err;
}

static void *mcp_begin(void *state)
{
    const struct mcp *mcp = state;
    if (!mcp->is_per_query)
        return NULL;
    struct server_scope *scope = XNEW(scope);
    pthread_mutex_init(&scope->lock, NULL);
    return scope;
}

static void mcp_end(void *state, void *session)
{
    struct server_scope *scope = session;
    (void)state;
    mcp_session_close(scope->server);
    pthread_mutex_destroy(&scope->lock);
    free(scope);
}

/* ---- calls ---- */

/* A result is a list of content parts, of which only text is passed to the model. */
static void add_result(const struct jv *result, struct tool_result *out)
{
    const struct jv *content = jv_get(result, "content");
    out->is_error = jv_bool(jv_get(result, "isError"), false);
    JV_EACH (part, jv_first(content)) {
        const char *text = jv_get_text(part, "text");
        const char *type = jv_get_text(part, "type");
        const char *uri = jv_get_text(part, "uri");
        if (!text)
            text = jv_text(jv_path(part, "resource.text"));
        if (!uri)
            uri = jv_text(jv_path(part, "resource.uri"));
        if (out->output.length)
            text_add(&out->output, "\n");
        if (text)
            text_add(&out->output, text);
        else
            text_addf(&out->output, "[%s%s%s, not shown]", type ? type : "content", uri ? " " : "",
                      uri ? uri : "");
    }
    const struct jv *structured = jv_get(result, "structuredContent");
    if (!out->output.length && structured)
        jv_print(structured, &out->output);
    if (!out->output.length)
        text_add(&out->output, "(no output)");
}

static enum err call_server(struct mcp_session *server, const char *own_name,
                            const struct tool_request *call, nanos deadline,
                            struct tool_result *out, struct error *why)
{
    struct text params = {0};
    struct json json;
    struct jv *answer = NULL;
    json_init(&json, &params, false);
    json_object(&json, NULL);
    json_string(&json, "name", own_name);
    jv_to_json(call->arguments, "arguments", &json);
    json_object_end(&json);
    const struct mcp_request request = {"tools/call", text_get(&params), deadline - clock_now(),
                                        call->cancel};
    enum err err = mcp_session_request(server, &request, &answer, why);
    text_release(&params);
    if (err)
        return err;
    const char *message = jv_text(jv_path(answer, "error.message"));
    if (jv_get(answer, "result"))
        add_result(jv_get(answer, "result"), out);
    else
        tool_fail(out, "%s", message ? message : "the MCP server reported an error");
    jv_free(answer);
    return ERR_OK;
}

static enum err mcp_call(const struct tool_request *call, struct tool_result *out,
                         struct error *why)
{
    struct mcp *mcp = call->state;
    struct server_scope *scope = call->session ? call->session : &mcp->shared;
    struct mcp_session *server;
    struct error reason = {0};
    size_t at = 0;
    nanos deadline = clock_now() + (call->timeout > 0 ? call->timeout : 3600 * NS_PER_S);
    while (!str_equal(mcp->specs[at].name, call->spec->name))
        at++; /* always found: toolset_open took the spec from this list */
    enum err err = acquire_server(mcp, scope, call, &deadline, &server, &reason);
    if (!err) {
        err = call_server(server, mcp->server_names[at], call, deadline, out, &reason);
        release_server(scope);
    }
    out->timed_out = err == ERR_TIMEOUT;
    if (err == ERR_INTERRUPTED)
        return err_set(why, err, "%s", reason.text);
    return err ? tool_fail(out, "%s", reason.text) : ERR_OK;
}

const struct tool_driver tool_mcp = {
    .name = "mcp",
    .summary = "tools of an MCP server (--mcp COMMAND, --mcp URL)",
    .params = PARAMS,
    .is_opt_in = true,
    .state_size = sizeof(struct mcp),
    .open = mcp_open,
    .close = mcp_close,
    .list = mcp_list,
    .begin = mcp_begin,
    .end = mcp_end,
    .call = mcp_call,
};
