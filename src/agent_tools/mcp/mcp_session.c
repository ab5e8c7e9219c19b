/* JSON-RPC as MCP uses it: every request has a number, by which its response is found, whatever thread receives it.
 * A server may send requests too; only ping is answered.
 *
 * A server over HTTP may end a session at any time.  It rejects the next request, which then initializes a new session
 * and is sent again; concurrent requests wait for that. */
#include "agent_tools/mcp/mcp_session.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/jv.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/thread.h"
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

/* Everything that is sent: a request with a response, a notification, and a response to a request of the server. */
struct outgoing {
    struct mcp_pending *pending; /* NULL: no response is expected */
    const struct mcp_identity *identity;
    const struct mcp_patience *patience;
};

static enum err send_json(struct mcp_session *session, const struct text *json,
                          const struct outgoing *outgoing, struct error *why)
{
    const struct mcp_message message = {json, outgoing->pending, outgoing->identity,
                                        *outgoing->patience};
    return session->transport->exchange(session, &message, why);
}

/* params is JSON, or NULL. */
static enum err send_method(struct mcp_session *session, const struct outgoing *outgoing,
                            const char *method, const char *params, struct error *why)
{
    const struct mcp_pending *pending = outgoing->pending;
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
    enum err err = send_json(session, &text, outgoing, why);
    text_release(&text);
    return err;
}

/* ---- messages of the server ---- */

/* Responds to a request from the server: only ping is supported. */
static void respond(struct mcp_session *session, const struct jv *message,
                    const struct mcp_identity *identity, const struct mcp_patience *of_request)
{
    struct mcp_patience patience = mcp_patience_of(REPLY_TIMEOUT, of_request->cancel);
    if (of_request->deadline < patience.deadline)
        patience.deadline = of_request->deadline;
    const struct outgoing outgoing = {NULL, identity, &patience};
    struct text text = {0};
    struct json json;
    const char *method = jv_get_text(message, "method");
    json_init(&json, &text, false);
    json_object(&json, NULL);
    json_string(&json, "jsonrpc", "2.0");
    jv_to_json(jv_get(message, "id"), "id", &json);
    if (method && str_equal(method, "ping")) {
        json_object(&json, "result");
        json_object_end(&json);
    } else {
        json_object(&json, "error");
        json_integer(&json, "code", METHOD_NOT_FOUND);
        json_string(&json, "message", "not supported by this client");
        json_object_end(&json);
    }
    json_object_end(&json);
    (void)send_json(session, &text, &outgoing, NULL);
    text_release(&text);
}

static void take_response(struct mcp_session *session, const struct jv *message)
{
    int64_t id;
    if (!jv_integer(jv_get(message, "id"), &id))
        return;
    pthread_mutex_lock(&session->lock);
    struct mcp_pending *pending = session->first;
    while (pending && (pending->id != id || pending->answer))
        pending = pending->next;
    if (pending) /* otherwise it is late */
        pending->answer = jv_copy(message);
    thread_wake(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

static void take_message(struct mcp_session *session, const struct jv *message,
                         const struct mcp_identity *identity, const struct mcp_patience *patience)
{
    if (jv_get(message, "result") || jv_get(message, "error"))
        take_response(session, message);
    else if (jv_get(message, "method") && jv_get(message, "id"))
        respond(session, message, identity, patience);
}

void mcp_session_take(struct mcp_session *session, const char *bytes, size_t length,
                      const struct mcp_identity *identity, const struct mcp_patience *patience)
{
    struct jv *tree = NULL;
    if (jv_parse(bytes, length, &tree, NULL))
        return;
    if (jv_is_object(tree))
        take_message(session, tree, identity, patience);
    else /* a batch, in revision 2025-03-26 of the protocol */
        JV_EACH (message, jv_first(tree))
            take_message(session, message, identity, patience);
    jv_free(tree);
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

static void cancel_request(struct mcp_session *session, int64_t id,
                           const struct mcp_identity *identity)
{
    const struct mcp_patience patience = mcp_patience_of(REPLY_TIMEOUT, NULL);
    const struct outgoing outgoing = {NULL, identity, &patience};
    char params[64];
    chars_format(params, "{\"requestId\":%lld}", (long long)id);
    (void)send_method(session, &outgoing, "notifications/cancelled", params, NULL);
}

/* Sends a request once.  The caller frees pending->answer and pending->new_id. */
static enum err request_once(struct mcp_session *session, const struct mcp_request *request,
                             const struct mcp_patience *patience,
                             const struct mcp_identity *identity, struct mcp_pending *pending,
                             struct error *why)
{
    const struct outgoing outgoing = {pending, identity, patience};
    *pending = (struct mcp_pending){0};
    add_pending(session, pending);
    enum err err = send_method(session, &outgoing, request->method, request->params, why);
    remove_pending(session, pending);
    if (pending->is_sent && (err == ERR_TIMEOUT || err == ERR_INTERRUPTED))
        cancel_request(session, pending->id, identity);
    if (err) {
        jv_free(pending->answer);
        pending->answer = NULL;
    }
    return err;
}

/* An error reported by the server is returned as ours; the answer is then freed. */
static enum err check_result(const char *method, struct jv **answer, struct error *why)
{
    if (jv_get(*answer, "result"))
        return ERR_OK;
    const char *message = jv_text(jv_path(*answer, "error.message"));
    enum err err = err_set(why, ERR_IO, "MCP %s: %s", method,
                           message ? plain_text(message).text : "the server reported an error");
    jv_free(*answer);
    *answer = NULL;
    return err;
}

/* ---- initialization ---- */

/* Requests initialization; fills the identity that the server assigns. */
static enum err request_identity(struct mcp_session *session, const struct mcp_patience *patience,
                                 struct mcp_identity *identity, struct error *why)
{
    static const char PARAMS[] = "{\"protocolVersion\":\"" PROTOCOL_VERSION
                                 "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"ipw\","
                                 "\"version\":\"" IPW_VERSION "\"}}";
    const struct mcp_request request = {.method = "initialize", .params = PARAMS};
    struct mcp_pending pending;
    *identity = (struct mcp_identity){0};
    enum err err = request_once(session, &request, patience, identity, &pending, why);
    if (!err)
        err = check_result(request.method, &pending.answer, why);
    const char *version = jv_text(jv_path(pending.answer, "result.protocolVersion"));
    if (!err && pending.new_id && !chars_copy(identity->id, pending.new_id))
        err = err_set(why, ERR_BAD_VALUE, "the session ID of the MCP server is too long");
    if (!err)
        chars_copy(identity->version, version && *version ? version : PROTOCOL_VERSION);
    jv_free(pending.answer);
    free(pending.new_id);
    return err;
}

/* Initializes the session, unless another thread has done so since the identity with this number. */
static enum err initialize(struct mcp_session *session, unsigned number,
                           const struct mcp_patience *patience, struct error *why)
{
    struct mcp_identity fresh;
    enum err err = ERR_OK;
    pthread_mutex_lock(&session->initializing);
    if (session->identity.number == number) {
        const struct outgoing outgoing = {NULL, &fresh, patience};
        err = request_identity(session, patience, &fresh, why);
        if (!err)
            err = send_method(session, &outgoing, "notifications/initialized", NULL, why);
        if (!err) {
            fresh.number = number + 1;
            session->identity = fresh;
        }
    }
    pthread_mutex_unlock(&session->initializing);
    return err;
}

static struct mcp_identity identity_of(struct mcp_session *session)
{
    pthread_mutex_lock(&session->initializing);
    struct mcp_identity identity = session->identity;
    pthread_mutex_unlock(&session->initializing);
    return identity;
}

/* ---- requests of the caller ---- */

enum err mcp_session_request(struct mcp_session *session, const struct mcp_request *request,
                             struct jv **answer, struct error *why)
{
    const struct mcp_patience patience = mcp_patience_of(request->timeout, request->cancel);
    struct mcp_pending pending;
    struct mcp_identity identity = identity_of(session);
    enum err err = request_once(session, request, &patience, &identity, &pending, why);
    if (err && pending.is_expired) {
        free(pending.new_id);
        pending.new_id = NULL;
        err = initialize(session, identity.number, &patience, why);
        if (!err) {
            identity = identity_of(session);
            err = request_once(session, request, &patience, &identity, &pending, why);
        }
    }
    free(pending.new_id);
    *answer = err ? NULL : pending.answer;
    return err;
}

enum err mcp_session_result(struct mcp_session *session, const struct mcp_request *request,
                            struct jv **answer, struct error *why)
{
    enum err err = mcp_session_request(session, request, answer, why);
    return err ? err : check_result(request->method, answer, why);
}

/* ---- start and end ---- */

enum err mcp_session_open(const struct mcp_transport *transport, const struct mcp_target *target,
                          nanos timeout, const atomic_bool *cancel, struct mcp_session **out,
                          struct error *why)
{
    struct mcp_session *session = XNEW(session);
    const struct mcp_patience patience = mcp_patience_of(timeout, cancel);
    struct error reason = {0};
    *out = NULL;
    session->transport = transport;
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->changed, NULL);
    pthread_mutex_init(&session->initializing, NULL);
    enum err err = transport->open(session, target, &reason);
    if (!err)
        err = initialize(session, 0, &patience, &reason);
    if (err) {
        err_set(why, err, "%s the MCP server '%.80s': %s", transport->to_open,
                plain_text(target->shown).text, reason.text);
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
    pthread_mutex_destroy(&session->initializing);
    free(session);
}

bool mcp_session_has_ended(struct mcp_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool ended = session->has_ended;
    pthread_mutex_unlock(&session->lock);
    return ended;
}
