/* Tools of an MCP server (Model Context Protocol), a child process that speaks JSON-RPC over stdin and stdout, one
 * message per line.  A thread reads its responses, so that several calls may be in flight.  If a server exits or does
 * not respond in time, its pending calls fail, and it is restarted for the next call.
 *
 * A command that contains {workspace} starts one server per query, at the first tool call; any other server is shared
 * by the whole run. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_tools/tool.h"
#include "core/clock.h"
#include "core/json.h"
#include "port/json_read.h"
#include "port/subprocess.h"
#include "port/thread.h"
#include "wire/sse.h"

#define PROTOCOL_VERSION "2025-06-18"
#define WORKSPACE_MARK   "{workspace}"

enum {
    TOOLS_MAX = 512,
    PAGES_MAX = 64,
    RESTARTS_MAX = 3,
    WATCH_MS = 50,
    GRACE_MS = 500,       /* time for a server to exit after its stdin was closed */
    START_TIMEOUT_S = 60, /* a package manager may have to download the server */
    METHOD_NOT_FOUND = -32601,
};

/* ---- a running server ---- */

/* A request waiting for its response. */
struct pending {
    int64_t id;
    struct jv *answer; /* NULL: not received yet */
    struct pending *next;
};

struct server {
    struct subprocess process;
    pthread_t reader;
    pthread_mutex_t lock;   /* guards the following fields */
    pthread_cond_t changed; /* a response arrived, or the server exited */
    struct pending *first;
    int64_t next_id;
    bool has_ended;
    bool is_too_long;           /* it sent a message beyond the limit */
    char last_stderr_line[160]; /* the last line of its stderr */
    pthread_mutex_t writing;
    atomic_bool stop;
    struct line_reader lines, log; /* incomplete lines, used by the reader thread */
};

/* When to give up waiting for a server. */
struct patience {
    nanos deadline;
    const atomic_bool *cancel; /* may be NULL */
};

static struct patience patience_of(nanos timeout, const atomic_bool *cancel)
{
    return (struct patience){clock_now() + timeout, cancel};
}

static bool is_canceled(const struct patience *patience)
{
    return patience->cancel && atomic_load(patience->cancel);
}

/* Writes the whole line, or gives up: a server that does not read must not block us. */
static bool send_line(struct server *server, const struct text *line, struct patience patience)
{
    size_t sent = 0;
    bool failed = line->failed;
    pthread_mutex_lock(&server->writing);
    while (!failed && sent < line->length) {
        ssize_t n = write(server->process.input, line->bytes + sent, line->length - sent);
        if (n > 0)
            sent += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd polled = {.fd = server->process.input, .events = POLLOUT};
            poll(&polled, 1, WATCH_MS);
            failed = clock_now() >= patience.deadline || is_canceled(&patience) ||
                     atomic_load(&server->stop);
        } else {
            failed = errno != EINTR;
        }
    }
    pthread_mutex_unlock(&server->writing);
    return !failed;
}

/* id 0: a notification, which has no response.  params is JSON, or NULL. */
static bool send_message(struct server *server, int64_t id, const char *method, const char *params,
                         struct patience patience)
{
    struct text line = {0};
    struct json json;
    json_init(&json, &line, false);
    json_object(&json, NULL);
    json_string(&json, "jsonrpc", "2.0");
    if (id)
        json_integer(&json, "id", id);
    json_string(&json, "method", method);
    if (params)
        json_raw(&json, "params", params);
    json_object_end(&json);
    text_add(&line, "\n");
    bool sent = send_line(server, &line, patience);
    text_release(&line);
    return sent;
}

/* Responds to a request from the server: only ping is supported. */
static void respond_to_server(struct server *server, const struct jv *message)
{
    struct text line = {0};
    struct json json;
    const char *method = jv_text(jv_get(message, "method"));
    json_init(&json, &line, false);
    json_object(&json, NULL);
    json_string(&json, "jsonrpc", "2.0");
    enum err err = jv_to_json(jv_get(message, "id"), "id", &json);
    if (method && !strcmp(method, "ping")) {
        json_object(&json, "result");
        json_object_end(&json);
    } else {
        json_object(&json, "error");
        json_integer(&json, "code", METHOD_NOT_FOUND);
        json_string(&json, "message", "not supported by this client");
        json_object_end(&json);
    }
    json_object_end(&json);
    text_add(&line, "\n");
    if (!err)
        (void)send_line(server, &line, patience_of(NS_PER_S, NULL));
    text_release(&line);
}

static enum err handle_message(void *context, const char *bytes, size_t length, nanos t)
{
    struct server *server = context;
    struct jv *message = NULL;
    int64_t id;
    (void)t;
    if (jv_parse(bytes, length, &message, NULL)) /* a log line: some servers print them to stdout */
        return ERR_OK;
    bool is_answer = jv_get(message, "result") || jv_get(message, "error");
    if (!is_answer && jv_get(message, "method") && jv_get(message, "id"))
        respond_to_server(server, message);
    if (is_answer && jv_integer(jv_get(message, "id"), &id)) {
        pthread_mutex_lock(&server->lock);
        for (struct pending *pending = server->first; pending; pending = pending->next)
            if (pending->id == id && !pending->answer) {
                pending->answer = message;
                message = NULL;
                break;
            }
        pthread_cond_broadcast(&server->changed);
        pthread_mutex_unlock(&server->lock);
    }
    jv_free(message); /* a late response, or a notification */
    return ERR_OK;
}

/* Reads the available data; false at end of file, or after a line that is too long. */
static bool read_lines(struct server *server, int fd, struct line_reader *lines,
                       line_handler handle)
{
    char bytes[16384];
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0)
        return false;
    enum err err = line_reader_feed(lines, bytes, (size_t)n, 0, handle, server, NULL);
    if (err == ERR_BAD_VALUE && lines == &server->lines) {
        pthread_mutex_lock(&server->lock);
        server->is_too_long = true;
        pthread_mutex_unlock(&server->lock);
    }
    return !err;
}

static enum err handle_log(void *context, const char *bytes, size_t length, nanos t)
{
    struct server *server = context;
    (void)t;
    if (length == 0)
        return ERR_OK;
    pthread_mutex_lock(&server->lock);
    str_format(server->last_stderr_line, sizeof server->last_stderr_line, "%.*s",
               (int)(length < 150 ? length : 150), bytes);
    str_plain(server->last_stderr_line, sizeof server->last_stderr_line);
    pthread_mutex_unlock(&server->lock);
    return ERR_OK;
}

static void *read_server(void *context)
{
    struct server *server = context;
    bool is_open = true, has_log = true;
    thread_name("ipw-mcp", -1);
    while (is_open && !atomic_load(&server->stop)) {
        struct pollfd polled[2] = {
            {.fd = server->process.output, .events = POLLIN},
            {.fd = has_log ? server->process.messages : -1, .events = POLLIN},
        };
        poll(polled, 2, WATCH_MS);
        if (polled[1].revents)
            has_log = read_lines(server, server->process.messages, &server->log, handle_log);
        if (polled[0].revents)
            is_open = read_lines(server, server->process.output, &server->lines, handle_message);
    }
    while (has_log && !atomic_load(&server->stop)) { /* the reason for its exit */
        struct pollfd polled = {.fd = server->process.messages, .events = POLLIN};
        if (poll(&polled, 1, WATCH_MS) <= 0)
            break;
        has_log = read_lines(server, server->process.messages, &server->log, handle_log);
    }
    pthread_mutex_lock(&server->lock);
    server->has_ended = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static void server_close(struct server *server)
{
    if (!server)
        return;
    nanos until = clock_now() + GRACE_MS * NS_PER_MS;
    pthread_mutex_lock(&server->writing);
    close(server->process.input); /* a server exits when its stdin is closed */
    server->process.input = -1;
    pthread_mutex_unlock(&server->writing);
    while (!subprocess_has_ended(&server->process) && clock_now() < until)
        thread_sleep(5 * NS_PER_MS);
    atomic_store(&server->stop, true);
    pthread_join(server->reader, NULL);
    subprocess_end(&server->process, NULL);
    pthread_mutex_destroy(&server->lock);
    pthread_mutex_destroy(&server->writing);
    pthread_cond_destroy(&server->changed);
    line_reader_release(&server->lines);
    line_reader_release(&server->log);
    free(server);
}

static void remove_pending(struct server *server, struct pending *gone)
{
    for (struct pending **at = &server->first; *at; at = &(*at)->next)
        if (*at == gone) {
            *at = gone->next;
            return;
        }
}

/* Adds the last line of stderr, after a short wait for the reader thread.  Caller holds the lock. */
static enum err report_exit(struct server *server, struct error *why)
{
    nanos until = clock_now() + GRACE_MS * NS_PER_MS;
    while (!server->has_ended && clock_now() < until)
        thread_wait(&server->changed, &server->lock, WATCH_MS * NS_PER_MS);
    if (server->is_too_long)
        return err_set(why, ERR_BAD_VALUE,
                       "the MCP server sent a message of more than %d MiB, which is the limit",
                       LINE_LIMIT >> 20);
    return err_set(why, ERR_LOST, "the MCP server exited%s%s",
                   server->last_stderr_line[0] ? ": " : "", server->last_stderr_line);
}

/* Waits for the response.  Caller holds the lock. */
static enum err await_response(struct server *server, struct pending *pending,
                               const struct patience *patience, struct error *why)
{
    while (!pending->answer) {
        nanos left = patience->deadline - clock_now();
        if (server->has_ended)
            return report_exit(server, why);
        if (is_canceled(patience))
            return err_set(why, ERR_INTERRUPTED, "the call was canceled");
        if (left <= 0)
            return err_set(why, ERR_TIMEOUT, "the MCP server did not respond in time");
        thread_wait(&server->changed, &server->lock,
                    left < WATCH_MS * NS_PER_MS ? left : WATCH_MS * NS_PER_MS);
    }
    return ERR_OK;
}

static void cancel_request(struct server *server, int64_t id)
{
    char params[64];
    str_format(params, sizeof params, "{\"requestId\":%lld}", (long long)id);
    (void)send_message(server, 0, "notifications/cancelled", params, patience_of(NS_PER_S, NULL));
}

/* Sends one request; the caller frees *answer, which has a "result" or an "error". */
static enum err request(struct server *server, const char *method, const char *params,
                        nanos timeout, const atomic_bool *cancel, struct jv **answer,
                        struct error *why)
{
    const struct patience patience = patience_of(timeout, cancel);
    struct pending pending = {0};
    *answer = NULL;
    pthread_mutex_lock(&server->lock);
    pending.id = ++server->next_id;
    pending.next = server->first;
    /* cppcheck-suppress autoVariables ; remove_pending() removes it before this function returns */
    server->first = &pending;
    pthread_mutex_unlock(&server->lock);
    bool sent = send_message(server, pending.id, method, params, patience);
    pthread_mutex_lock(&server->lock);
    enum err err;
    if (sent)
        err = await_response(server, &pending, &patience, why);
    else if (is_canceled(&patience))
        err = err_set(why, ERR_INTERRUPTED, "the call was canceled");
    else if (clock_now() >= patience.deadline)
        err = err_set(why, ERR_TIMEOUT, "the MCP server does not read its stdin");
    else
        err = report_exit(server, why);
    remove_pending(server, &pending);
    pthread_mutex_unlock(&server->lock);
    if (sent && (err == ERR_TIMEOUT || err == ERR_INTERRUPTED))
        cancel_request(server, pending.id);
    if (err)
        jv_free(pending.answer);
    else
        *answer = pending.answer;
    return err;
}

/* The result of a request; an error reported by the server is returned as ours. */
static enum err request_result(struct server *server, const char *method, const char *params,
                               nanos timeout, const atomic_bool *cancel, struct jv **answer,
                               struct error *why)
{
    enum err err = request(server, method, params, timeout, cancel, answer, why);
    if (err || jv_get(*answer, "result"))
        return err;
    const char *message = jv_text(jv_path(*answer, "error.message"));
    err = err_set(why, ERR_IO, "MCP %s: %s", method,
                  message ? plain_text(message).text : "the server reported an error");
    jv_free(*answer);
    *answer = NULL;
    return err;
}

static enum err initialize(struct server *server, nanos timeout, const atomic_bool *cancel,
                           struct error *why)
{
    static const char PARAMS[] = "{\"protocolVersion\":\"" PROTOCOL_VERSION
                                 "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"ipw\","
                                 "\"version\":\"" IPW_VERSION "\"}}";
    struct jv *answer;
    enum err err = request_result(server, "initialize", PARAMS, timeout, cancel, &answer, why);
    jv_free(answer);
    if (!err &&
        !send_message(server, 0, "notifications/initialized", NULL, patience_of(timeout, cancel))) {
        pthread_mutex_lock(&server->lock);
        err = report_exit(server, why);
        pthread_mutex_unlock(&server->lock);
    }
    return err;
}

static enum err spawn(struct server *server, const char *command, const struct workspace *workspace,
                      struct error *why)
{
    static const char *const NAMES[] = {"workspace", NULL};
    struct text line = {0};
    text_add(&line, "export IPW_WORKSPACE=\"$1\"; shift; ");
    subprocess_command(command, NAMES, &line);
    const char *const argv[] = {"/bin/sh", "-c", text_get(&line), "sh", workspace->path, NULL};
    const struct subprocess_options options = {.argv = argv, .directory = -1};
    enum err err =
        line.failed ? err_no_memory(why) : subprocess_start(&server->process, &options, why);
    text_release(&line);
    if (!err)
        fcntl(server->process.input, F_SETFL, O_NONBLOCK);
    return err;
}

static enum err server_open(const char *command, const struct workspace *workspace, nanos timeout,
                            const atomic_bool *cancel, struct server **out, struct error *why)
{
    struct server *server = calloc(1, sizeof *server);
    *out = NULL;
    if (!server)
        return err_no_memory(why);
    enum err err = spawn(server, command, workspace, why);
    if (err) {
        free(server);
        return err;
    }
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->writing, NULL);
    pthread_cond_init(&server->changed, NULL);
    if (thread_start(&server->reader, read_server, server)) {
        subprocess_end(&server->process, NULL);
        free(server);
        return err_set(why, ERR_BUSY, "cannot start a thread");
    }
    struct error reason = {0};
    if ((err = initialize(server, timeout, cancel, &reason))) {
        err_set(why, err, "cannot start the MCP server '%.80s': %s", plain_text(command).text,
                reason.text);
        server_close(server);
        return err;
    }
    *out = server;
    return ERR_OK;
}

/* ---- the driver ---- */

/* Scope of a server: the whole run, or one query. */
struct server_scope {
    pthread_mutex_t lock;
    struct server *server; /* NULL: not started */
    unsigned users;        /* calls in flight */
    unsigned restarts;
};

struct mcp {
    char *command, *prefix;
    bool is_per_query;
    nanos timeout; /* time limit for starting a server */
    struct server_scope shared;
    struct tool_spec *specs;
    char **server_names; /* original names of the tools */
    size_t count;
};

static const struct param_spec PARAMS[] = {
    {"command", "COMMAND", "command of the server; with {workspace}: one server per query"},
    {"prefix", "TEXT", "prefix of its tools' names (default none)"},
    {"start_timeout_s", "S", "time limit for starting it (default 60)"},
    {NULL, NULL, NULL},
};

static bool has_ended(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    bool ended = server->has_ended;
    pthread_mutex_unlock(&server->lock);
    return ended;
}

/* The server of a scope, started if it is not running; call release_server when done.  The first start has its own time
 * limit, by which *deadline of the call is extended; a restart after a crash counts against the call. */
static enum err acquire_server(const struct mcp *mcp, struct server_scope *scope,
                               const struct tool_request *call, nanos *deadline,
                               struct server **out, struct error *why)
{
    enum err err = ERR_OK;
    pthread_mutex_lock(&scope->lock);
    if (scope->server && !scope->users && has_ended(scope->server)) {
        if (++scope->restarts > RESTARTS_MAX)
            err = err_set(why, ERR_LOST, "the MCP server exited %d times", RESTARTS_MAX + 1);
        if (!err) {
            server_close(scope->server);
            scope->server = NULL;
        }
    }
    if (!err && !scope->server) {
        nanos began = clock_now(), left = *deadline - began;
        nanos limit = scope->restarts && left < mcp->timeout ? left : mcp->timeout;
        err = server_open(mcp->command, call->workspace, limit, call->cancel, &scope->server, why);
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
    return strdup(joined);
}

static enum err add_spec(struct mcp *mcp, const struct jv *tool, struct error *why)
{
    const char *name = jv_text(jv_get(tool, "name"));
    const char *description = jv_text(jv_get(tool, "description"));
    const struct jv *schema = jv_get(tool, "inputSchema");
    struct text parameters = {0};
    if (!name || !*name)
        return err_set(why, ERR_BAD_VALUE, "MCP tools/list: a tool without a name");
    if (mcp->count == TOOLS_MAX)
        return err_set(why, ERR_BAD_VALUE, "MCP tools/list: more than %d tools", TOOLS_MAX);
    enum err err = ERR_OK;
    if (jv_is_object(schema))
        err = jv_print(schema, &parameters);
    else
        text_add(&parameters, "{\"type\":\"object\"}");
    struct tool_spec spec = {make_tool_name(mcp->prefix, name),
                             strdup(description ? description : ""),
                             parameters.bytes,
                             !jv_bool(jv_path(tool, "annotations.readOnlyHint"), false),
                             {NULL}};
    char *own = strdup(name);
    if (err || parameters.failed || !spec.name || !spec.description || !own) {
        free_spec(&spec);
        free(own);
        return err_no_memory(why);
    }
    mcp->specs[mcp->count] = spec;
    mcp->server_names[mcp->count++] = own;
    return ERR_OK;
}

static enum err list_tools(struct mcp *mcp, struct server *server, const atomic_bool *cancel,
                           struct error *why)
{
    struct text params = {0};
    enum err err = ERR_OK;
    bool is_more = true;
    for (unsigned page = 0; is_more && !err; page++) {
        struct jv *answer;
        if (page == PAGES_MAX)
            err = err_set(why, ERR_BAD_VALUE, "MCP tools/list: more than %d pages", PAGES_MAX);
        else
            err = request_result(server, "tools/list", params.length ? params.bytes : "{}",
                                 mcp->timeout, cancel, &answer, why);
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
                      plain_text(mcp->command).text);
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
    server_close(mcp->shared.server);
    pthread_mutex_destroy(&mcp->shared.lock);
    for (size_t i = 0; i < mcp->count; i++) {
        free_spec(&mcp->specs[i]);
        free(mcp->server_names[i]);
    }
    free(mcp->specs);
    free(mcp->server_names);
    free(mcp->command);
    free(mcp->prefix);
}

/* Lists the tools once.  A per-query server is started for that in a temporary directory, which is then removed. */
static enum err find_tools(struct mcp *mcp, const atomic_bool *cancel, struct error *why)
{
    struct workspace workspace = {.fd = -1};
    struct server *server;
    if (mcp->is_per_query) {
        const char *folder = getenv("TMPDIR");
        str_join(workspace.path, sizeof workspace.path, folder && *folder ? folder : "/tmp",
                 "/ipw-mcp-XXXXXX", "");
        if (!mkdtemp(workspace.path))
            return err_set(why, err_from_errno(errno), "cannot create a directory in %s: %s",
                           folder ? folder : "/tmp", strerror(errno));
    }
    const struct tool_request start = {.workspace = &workspace, .cancel = cancel};
    nanos deadline = 0; /* not part of a call: the first start */
    enum err err = acquire_server(mcp, &mcp->shared, &start, &deadline, &server, why);
    if (!err) {
        err = list_tools(mcp, server, cancel, why);
        release_server(&mcp->shared);
    }
    if (mcp->is_per_query) {
        server_close(mcp->shared.server);
        mcp->shared.server = NULL;
        rmdir(workspace.path); /* fails if the server left files there */
    }
    return err;
}

static enum err mcp_open(const struct tool_config *config, void *state, struct error *why)
{
    struct mcp *mcp = state;
    const char *command = params_get(config->params, "command");
    const char *prefix = params_get(config->params, "prefix");
    double start_s;
    enum err err = params_number(config->params, "start_timeout_s", START_TIMEOUT_S, &start_s, why);
    if (!err && !(start_s > 0 && start_s <= 3600))
        err = err_set(why, ERR_USAGE, "start_timeout_s: expected more than 0, up to 3600");
    if (!err && (!command || !*command))
        err = err_set(why, ERR_USAGE, "mcp needs the command of a server: --mcp 'COMMAND'");
    if (err)
        return err;
    pthread_mutex_init(&mcp->shared.lock, NULL);
    mcp->timeout = from_seconds(start_s);
    mcp->command = strdup(command);
    mcp->prefix = strdup(prefix ? prefix : "");
    mcp->specs = calloc(TOOLS_MAX, sizeof *mcp->specs);
    mcp->server_names = calloc(TOOLS_MAX, sizeof *mcp->server_names);
    mcp->is_per_query = strstr(command, WORKSPACE_MARK);
    if (!mcp->command || !mcp->prefix || !mcp->specs || !mcp->server_names)
        err = err_no_memory(why);
    if (!err)
        err = find_tools(mcp, config->cancel, why);
    if (err)
        mcp_close(mcp);
    return err;
}

static enum err mcp_begin(void *state, const struct workspace *workspace, void **session,
                          struct error *why)
{
    const struct mcp *mcp = state;
    (void)workspace;
    if (!mcp->is_per_query)
        return ERR_OK;
    struct server_scope *scope = calloc(1, sizeof *scope);
    if (!scope)
        return err_no_memory(why);
    pthread_mutex_init(&scope->lock, NULL);
    *session = scope;
    return ERR_OK;
}

static void mcp_end(void *state, void *session)
{
    struct server_scope *scope = session;
    (void)state;
    server_close(scope->server);
    pthread_mutex_destroy(&scope->lock);
    free(scope);
}

/* ---- calls ---- */

/* A result is a list of content parts, of which only text is passed to the model. */
static enum err add_result(const struct jv *result, struct tool_result *out, struct error *why)
{
    const struct jv *content = jv_get(result, "content");
    out->is_error = jv_bool(jv_get(result, "isError"), false);
    for (const struct jv *part = jv_first(content); part; part = jv_next(part)) {
        const char *text = jv_text(jv_get(part, "text"));
        const char *type = jv_text(jv_get(part, "type"));
        const char *uri = jv_text(jv_get(part, "uri"));
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
    if (!out->output.length && structured && jv_print(structured, &out->output))
        return err_no_memory(why);
    if (!out->output.length)
        text_add(&out->output, "(no output)");
    return ERR_OK;
}

static enum err call_server(struct server *server, const char *own_name,
                            const struct tool_request *call, nanos deadline,
                            struct tool_result *out, struct error *why)
{
    struct text params = {0};
    struct json json;
    struct jv *answer = NULL;
    json_init(&json, &params, false);
    json_object(&json, NULL);
    json_string(&json, "name", own_name);
    enum err err = jv_to_json(call->arguments, "arguments", &json);
    json_object_end(&json);
    if (err || params.failed)
        err = err_no_memory(why);
    else
        err = request(server, "tools/call", text_get(&params), deadline - clock_now(), call->cancel,
                      &answer, why);
    text_release(&params);
    if (err)
        return err;
    const char *message = jv_text(jv_path(answer, "error.message"));
    if (jv_get(answer, "result"))
        err = add_result(jv_get(answer, "result"), out, why);
    else
        tool_fail(out, "%s", message ? message : "the MCP server reported an error");
    jv_free(answer);
    return err;
}

static enum err mcp_call(void *state, const struct tool_spec *spec, const struct tool_request *call,
                         struct tool_result *out, struct error *why)
{
    struct mcp *mcp = state;
    struct server_scope *scope = call->session ? call->session : &mcp->shared;
    struct server *server;
    struct error reason = {0};
    size_t at = 0;
    nanos deadline = clock_now() + (call->timeout > 0 ? call->timeout : 3600 * NS_PER_S);
    while (strcmp(mcp->specs[at].name, spec->name) != 0)
        at++; /* always found: toolset_open took the spec from this list */
    enum err err = acquire_server(mcp, scope, call, &deadline, &server, &reason);
    if (!err) {
        err = call_server(server, mcp->server_names[at], call, deadline, out, &reason);
        release_server(scope);
    }
    out->timed_out = err == ERR_TIMEOUT;
    if (err == ERR_INTERRUPTED || err == ERR_NO_MEMORY)
        return err_set(why, err, "%s", reason.text);
    return err ? tool_fail(out, "%s", reason.text) : ERR_OK;
}

const struct tool_driver tool_mcp = {
    .name = "mcp",
    .summary = "tools of an MCP server over stdio (--mcp COMMAND)",
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
