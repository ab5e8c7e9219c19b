/* An MCP server at a URL (streamable HTTP, protocol revision 2025-03-26 and later): every message is a POST.  The
 * response to a request is its body, as JSON or as a stream of events, in which the server may send notifications and
 * requests before the response.  The optional stream of messages outside requests (GET) is not opened.
 *
 * A request runs in the thread of its caller, with a connection of its own. */
#include <stdlib.h>
#include <string.h>

#include "agent_tools/mcp/mcp_session.h"
#include "core/jv.h"
#include "core/params.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/http.h"
#include "port/url.h"
#include "wire/sse.h"

#define ID_HEADER      "Mcp-Session-Id"
#define VERSION_HEADER "MCP-Protocol-Version"

enum { CONNECTIONS_MAX = 64 }; /* kept between requests */

struct http_peer {
    const char *address; /* the URL; lives as long as the session */
    char *authorization; /* value of the header; NULL: none */
    bool is_withheld;    /* there is a token, but the connection is not secure */
    pthread_mutex_t lock;
    struct http *idle[CONNECTIONS_MAX];
    size_t idle_count;
};

/* ---- connections ---- */

static enum err take_connection(struct http_peer *peer, struct http **out, struct error *why)
{
    *out = NULL;
    pthread_mutex_lock(&peer->lock);
    if (peer->idle_count)
        *out = peer->idle[--peer->idle_count];
    pthread_mutex_unlock(&peer->lock);
    return *out ? ERR_OK : http_open(out, why);
}

static void keep_connection(struct http_peer *peer, struct http *http)
{
    pthread_mutex_lock(&peer->lock);
    if (peer->idle_count < CONNECTIONS_MAX) {
        peer->idle[peer->idle_count++] = http;
        http = NULL;
    }
    pthread_mutex_unlock(&peer->lock);
    http_close(http);
}

/* ---- one message ---- */

struct post {
    struct mcp_session *session;
    const struct mcp_message *message;
    struct http_response response;
    struct text body; /* of a response in JSON */
    struct sse events;
    bool is_answered;
    struct error *why;
};

static bool is_answered(struct post *post)
{
    const struct mcp_pending *pending = post->message->pending;
    pthread_mutex_lock(&post->session->lock);
    bool answered = pending && pending->answer;
    pthread_mutex_unlock(&post->session->lock);
    return answered;
}

static void take(struct post *post, const char *bytes, size_t length)
{
    mcp_session_take(post->session, bytes, length, post->message->identity,
                     &post->message->patience);
    post->is_answered = is_answered(post);
}

/* A server that sends one request after another must not outlast the caller's patience: libcurl does not check it while
 * it has data to deliver. */
static enum err check_patience(const struct post *post)
{
    const struct mcp_patience *patience = &post->message->patience;
    if (mcp_is_canceled(patience))
        return err_set(post->why, ERR_INTERRUPTED, "the call was canceled");
    return clock_now() >= patience->deadline
               ? err_set(post->why, ERR_TIMEOUT, "the MCP server did not respond in time")
               : ERR_OK;
}

/* The first event after the response, or any other error, ends the request: a server may leave the stream open. */
static enum err take_event(void *context, const struct sse_event *event)
{
    struct post *post = context;
    take(post, event->data, event->length);
    return post->is_answered ? ERR_INTERRUPTED : check_patience(post);
}

static enum err take_body(void *context, const char *bytes, size_t length, nanos t)
{
    struct post *post = context;
    if (str_equal(post->response.content_type, "text/event-stream")) {
        enum err err = sse_feed(&post->events, bytes, length, t);
        return err == ERR_BAD_VALUE ? mcp_too_long(post->why) : err;
    }
    if (length > LINE_LIMIT - post->body.length)
        return mcp_too_long(post->why);
    text_add_bytes(&post->body, bytes, length);
    return ERR_OK;
}

static void add_headers(const struct http_peer *peer, const struct mcp_identity *identity,
                        struct params *headers)
{
    const struct {
        const char *name, *value;
    } HEADERS[] = {
        {"Content-Type", "application/json"},   {"Accept", "application/json, text/event-stream"},
        {"Authorization", peer->authorization}, {ID_HEADER, identity->id},
        {VERSION_HEADER, identity->version},
    };
    for (size_t i = 0; i < COUNT_OF(HEADERS); i++)
        if (HEADERS[i].value && HEADERS[i].value[0])
            params_set(headers, HEADERS[i].name, HEADERS[i].value);
}

/* The whole exchange of one POST or DELETE. */
static enum err perform(struct post *post, const char *method, struct error *why)
{
    struct http_peer *peer = post->session->state;
    const struct mcp_message *message = post->message;
    struct params headers = {0};
    struct http *http;
    nanos left = message->patience.deadline - clock_now();
    enum err err = take_connection(peer, &http, why);
    if (err)
        return err;
    add_headers(peer, message->identity, &headers);
    const struct http_request request = {
        .method = method,
        .url = peer->address,
        .kept_header = ID_HEADER,
        .headers = &headers,
        .body = message->json ? text_get(message->json) : NULL,
        .body_length = message->json ? message->json->length : 0,
        .timeout = left > 0 ? left : 1,
        .cancel = message->patience.cancel,
        .take = take_body,
        .context = post,
    };
    err = http_perform(http, &request, &post->response, why);
    params_release(&headers);
    keep_connection(peer, http);
    return err;
}

/* ---- what came back ---- */

/* Words of the response: a JSON-RPC error, or a line of text; "" for an HTML page. */
static void read_reason(const struct text *body, char *to, size_t size)
{
    struct jv *tree = NULL;
    const char *text = text_get(body);
    size_t length = body->length;
    to[0] = '\0';
    if (length && !jv_parse(text, length, &tree, NULL)) {
        const char *message = jv_text(jv_path(tree, "error.message"));
        text = message ? message : "";
        length = strlen(text);
    }
    if (length && *text != '<')
        secret_one_line(to, size, text, length);
    jv_free(tree);
}

static const char *advice_of(const struct http_peer *peer, int status)
{
    if (status >= 300 && status < 400)
        return ": redirects are not followed: give its final URL";
    bool is_refused = status == 401 || status == 403;
    if (is_refused && peer->is_withheld)
        return ": IPW_MCP_TOKEN is sent over https or to 127.0.0.1 only";
    if (is_refused && peer->authorization)
        return ": access denied for the token in IPW_MCP_TOKEN";
    if (is_refused)
        return ": set IPW_MCP_TOKEN";
    if (status == 404 || status == 405)
        return ": is this the URL of an MCP server (streamable HTTP)?";
    return "";
}

static enum err check_status(struct post *post, struct error *why)
{
    const struct http_peer *peer = post->session->state;
    struct mcp_pending *pending = post->message->pending;
    int status = post->response.status;
    char reason[160];
    if (status >= 200 && status < 300)
        return ERR_OK;
    if (status == 404 && post->message->identity->id[0] && pending)
        pending->is_expired = true;
    read_reason(&post->response.error_body, reason, sizeof reason);
    return err_set(why, status == 401 || status == 403 ? ERR_DENIED : ERR_IO,
                   "the MCP server returned HTTP status %d%s%s%s", status, reason[0] ? ": " : "",
                   reason, advice_of(peer, status));
}

/* After a complete exchange: the response must be in it. */
static enum err check_answer(struct post *post, struct error *why)
{
    const char *type = post->response.content_type;
    if (str_equal(type, "text/event-stream")) {
        enum err err = sse_end(&post->events, post->response.done);
        if (err && !post->is_answered)
            return err;
    } else if (str_equal(type, "application/json")) {
        take(post, text_get(&post->body), post->body.length);
    } else if (post->body.length) {
        return err_set(why, ERR_BAD_VALUE,
                       "unexpected content type '%.60s': is this the URL of an MCP server?",
                       plain_text(type).text);
    }
    return post->is_answered ? ERR_OK
                             : err_set(why, ERR_LOST, "the MCP server sent no response (status %d)",
                                       post->response.status);
}

/* Visible ASCII, as the protocol requires: it is sent back in a header. */
static enum err keep_id(const struct post *post, struct error *why)
{
    const char *id = text_get(&post->response.kept);
    for (const char *c = id; *c; c++)
        if (*c <= 0x20 || *c > 0x7e)
            return err_set(why, ERR_BAD_VALUE, "the MCP server sent an invalid session ID");
    post->message->pending->new_id = xstrdup(id);
    return ERR_OK;
}

static enum err http_exchange(struct mcp_session *session, const struct mcp_message *message,
                              struct error *why)
{
    struct error reason = {0};
    struct post post = {.session = session, .message = message, .why = &reason};
    sse_init(&post.events, take_event, &post, &reason);
    enum err err = perform(&post, "POST", &reason);
    if (message->pending)
        message->pending->is_sent = post.response.connected;
    if (post.is_answered)
        err = ERR_OK; /* the stream was left */
    else if (!err)
        err = check_status(&post, &reason);
    if (!err && message->pending && !post.is_answered)
        err = check_answer(&post, &reason);
    if (!err && message->pending)
        err = keep_id(&post, &reason);
    sse_release(&post.events);
    text_release(&post.body);
    http_response_release(&post.response);
    return err ? err_set(why, err, "%s", reason.text) : ERR_OK;
}

/* ---- start and end ---- */

/* As for datasets: a token is sent over https, or to a numeric loopback address. */
static void set_token(struct http_peer *peer, const struct url *url, const char *token)
{
    if (!token || !*token)
        return;
    peer->is_withheld = !str_equal(url->scheme, "https") && !url_is_loopback(url);
    if (!peer->is_withheld)
        peer->authorization = xformat("Bearer %s", token);
}

static enum err http_peer_open(struct mcp_session *session, const struct mcp_target *target,
                               struct error *why)
{
    struct url url;
    enum err err = http_available(why);
    if (!err)
        err = url_read(target->address, &url, why);
    if (err)
        return err;
    struct http_peer *peer = XNEW(peer);
    set_token(peer, &url, target->token);
    peer->address = target->address;
    pthread_mutex_init(&peer->lock, NULL);
    session->state = peer;
    return ERR_OK;
}

/* Ends the session on the server, which need not support that. */
static void end_session(struct mcp_session *session)
{
    const struct mcp_message message = {.identity = &session->identity,
                                        .patience = mcp_patience_of(NS_PER_S, NULL)};
    struct post post = {.session = session, .message = &message};
    sse_init(&post.events, take_event, &post, NULL);
    (void)perform(&post, "DELETE", NULL);
    sse_release(&post.events);
    text_release(&post.body);
    http_response_release(&post.response);
}

static void http_peer_close(struct mcp_session *session)
{
    struct http_peer *peer = session->state;
    if (session->identity.id[0])
        end_session(session);
    while (peer->idle_count)
        http_close(peer->idle[--peer->idle_count]);
    pthread_mutex_destroy(&peer->lock);
    free(peer->authorization);
    free(peer);
}

const struct mcp_transport mcp_http = {
    .to_open = "cannot use",
    .open = http_peer_open,
    .exchange = http_exchange,
    .close = http_peer_close,
};
