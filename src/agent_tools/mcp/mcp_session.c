/* JSON-RPC as MCP uses it: every request has a number, by which its response is found, whatever thread receives it.
 * A server may send requests too; only ping is answered. */
#include "agent_tools/mcp/mcp_session.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "port/json_read.h"
#include "wire/sse.h"

#define PROTOCOL_VERSION "2025-06-18"

enum { METHOD_NOT_FOUND = -32601 };

#define REPLY_TIMEOUT NS_PER_S /* of a message whose delivery is not essential */

enum err mcp_too_long(struct error *why)
{
    return err_set(why, ERR_BAD_VALUE,
                   "the MCP server sent a message of more than %d MiB, which is the limit",
                   LINE_LIMIT >> 20);
}

/* ---- messages to the server ---- */

static enum err send_json(struct mcp_session *session, const struct text *json,
                          struct mcp_pending *pending, const struct mcp_patience *patience,
                          struct error *why)
{
    const struct mcp_message message = {json, pending, *patience};
    return json->failed ? err_no_memory(why) : session->transport->exchange(session, &message, why);
}

/* pending NULL: a notification, which has no response.  params is JSON, or NULL. */
static enum err send_message(struct mcp_session *session, struct mcp_pending *pending,
                             const char *method, const char *params,
                             const struct mcp_patience *patience, struct error *why)
{
    struct text text = {0};
    struct json json;
    json_init(&json, &text, false);
    json_object(&json, NULL);
    json_string(&json, "jsonrpc", "2.0");
    if (pending)
        json_integer(&json, "id", pending->id);
    json_string(&json, "method", method);
    if (params)
        json_raw(&json, "params", params);
    json_object_end(&json);
    enum err err = send_json(session, &text, pending, patience, why);
    text_release(&text);
    return err;
}

/* ---- messages of the server ---- */

/* Responds to a request from the server: only ping is supported. */
static void respond(struct mcp_session *session, const struct jv *message)
{
    const struct mcp_patience patience = mcp_patience_of(REPLY_TIMEOUT, NULL);
    struct text text = {0};
    struct json json;
    const char *method = jv_text(jv_get(message, "method"));
    json_init(&json, &text, false);
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
    if (!err)
        (void)send_json(session, &text, NULL, &patience, NULL);
    text_release(&text);
}

void mcp_session_take(struct mcp_session *session, const char *bytes, size_t length)
{
    struct jv *message = NULL;
    int64_t id;
    if (jv_parse(bytes, length, &message, NULL))
        return;
    bool is_answer = jv_get(message, "result") || jv_get(message, "error");
    if (!is_answer && jv_get(message, "method") && jv_get(message, "id"))
        respond(session, message);
    if (is_answer && jv_integer(jv_get(message, "id"), &id)) {
        pthread_mutex_lock(&session->lock);
        for (struct mcp_pending *pending = session->first; pending; pending = pending->next)
            if (pending->id == id && !pending->answer) {
                pending->answer = message;
                message = NULL;
                break;
            }
        pthread_cond_broadcast(&session->changed);
        pthread_mutex_unlock(&session->lock);
    }
    jv_free(message); /* a late response, or a notification */
}

/* ---- requests ---- */

static void add_pending(struct mcp_session *session, struct mcp_pending *pending)
{
    pthread_mutex_lock(&session->lock);
    pending->id = ++session->next_id;
    pending->next = session->first;
    session->first = pending;
    pthread_mutex_unlock(&session->lock);
}

static void remove_pending(struct mcp_session *session, const struct mcp_pending *gone)
{
    pthread_mutex_lock(&session->lock);
    for (struct mcp_pending **at = &session->first; *at; at = &(*at)->next)
        if (*at == gone) {
            *at = gone->next;
            break;
        }
    pthread_mutex_unlock(&session->lock);
}

static void cancel_request(struct mcp_session *session, int64_t id)
{
    const struct mcp_patience patience = mcp_patience_of(REPLY_TIMEOUT, NULL);
    char params[64];
    str_format(params, sizeof params, "{\"requestId\":%lld}", (long long)id);
    (void)send_message(session, NULL, "notifications/cancelled", params, &patience, NULL);
}

enum err mcp_session_request(struct mcp_session *session, const struct mcp_request *request,
                             struct jv **answer, struct error *why)
{
    const struct mcp_patience patience = mcp_patience_of(request->timeout, request->cancel);
    struct mcp_pending pending = {0};
    *answer = NULL;
    add_pending(session, &pending); /* until remove_pending, below */
    enum err err =
        send_message(session, &pending, request->method, request->params, &patience, why);
    remove_pending(session, &pending);
    if (pending.is_sent && (err == ERR_TIMEOUT || err == ERR_INTERRUPTED))
        cancel_request(session, pending.id);
    if (err)
        jv_free(pending.answer);
    else
        *answer = pending.answer;
    return err;
}

enum err mcp_session_result(struct mcp_session *session, const struct mcp_request *request,
                            struct jv **answer, struct error *why)
{
    enum err err = mcp_session_request(session, request, answer, why);
    if (err || jv_get(*answer, "result"))
        return err;
    const char *message = jv_text(jv_path(*answer, "error.message"));
    err = err_set(why, ERR_IO, "MCP %s: %s", request->method,
                  message ? plain_text(message).text : "the server reported an error");
    jv_free(*answer);
    *answer = NULL;
    return err;
}

/* ---- start and end ---- */

static enum err initialize(struct mcp_session *session, nanos timeout, const atomic_bool *cancel,
                           struct error *why)
{
    static const char PARAMS[] = "{\"protocolVersion\":\"" PROTOCOL_VERSION
                                 "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"ipw\","
                                 "\"version\":\"" IPW_VERSION "\"}}";
    const struct mcp_request request = {"initialize", PARAMS, timeout, cancel};
    const struct mcp_patience patience = mcp_patience_of(timeout, cancel);
    struct jv *answer;
    enum err err = mcp_session_result(session, &request, &answer, why);
    jv_free(answer);
    return err ? err
               : send_message(session, NULL, "notifications/initialized", NULL, &patience, why);
}

enum err mcp_session_open(const struct mcp_transport *transport, const struct mcp_target *target,
                          nanos timeout, const atomic_bool *cancel, struct mcp_session **out,
                          struct error *why)
{
    struct mcp_session *session = calloc(1, sizeof *session);
    struct error reason = {0};
    *out = NULL;
    if (!session)
        return err_no_memory(why);
    session->transport = transport;
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->changed, NULL);
    enum err err = transport->open(session, target, &reason);
    if (!err)
        err = initialize(session, timeout, cancel, &reason);
    if (err) {
        err_set(why, err, "cannot start the MCP server '%.80s': %s",
                plain_text(target->command).text, reason.text);
        mcp_session_close(session);
        return err;
    }
    *out = session;
    return ERR_OK;
}

void mcp_session_close(struct mcp_session *session)
{
    if (!session)
        return;
    if (session->state)
        session->transport->close(session);
    pthread_mutex_destroy(&session->lock);
    pthread_cond_destroy(&session->changed);
    free(session);
}

bool mcp_session_has_ended(struct mcp_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool ended = session->has_ended;
    pthread_mutex_unlock(&session->lock);
    return ended;
}
