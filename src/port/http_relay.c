/* Plain HTTP connections to this machine use port/http_plain.h; all others libcurl's multi interface, driven by the
 * loop's ready sockets (curl_multi_socket_action).  Easy handles are reused: creating one costs more than a short
 * request. */
#include "port/http_relay.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/xalloc.h"
#include "port/event_loop.h"
#include "port/http_library.h"
#include "port/http_plain.h"

enum {
    HANDLES_KEPT = 64,
    CONNECTIONS_KEPT = 1024,
    BUFFER = 16 * 1024,
};

struct relay_socket {
    struct http_relay *relay;
    struct event_watch watch;
};

struct curl_call {
    struct relay_call base;
    struct http_relay *relay;
    CURL *easy;
    struct curl_slist *headers;
    struct relay_request request;
    size_t body_given; /* bytes of the request's body that libcurl has taken */
    struct text head;  /* of the response */
    int status;
    bool has_head;
    char detail[CURL_ERROR_SIZE]; /* libcurl's error message; "" if none */
    struct curl_call *next, *previous;
};

struct http_relay {
    struct event_loop *loop;
    CURLM *multi;
    nanos due; /* of libcurl's timer; INT64_MAX: none */
    CURL *kept[HANDLES_KEPT];
    size_t kept_count;
    struct curl_call *calls;
    struct plain_pool *plain;
};

/* ---- sockets and timer ---- */

static void on_ready(void *context, unsigned events)
{
    struct relay_socket *socket = context;
    int running, what = 0;
    if (events & (EPOLLIN | EPOLLHUP))
        what |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (events & EPOLLERR)
        what |= CURL_CSELECT_ERR;
    curl.multi_socket_action(socket->relay->multi, socket->watch.fd, what, &running);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *data)
{
    struct http_relay *relay = context;
    struct relay_socket *socket = data;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (socket)
            event_loop_unwatch(relay->loop, &socket->watch);
        free(socket);
        curl.multi_assign(relay->multi, fd, NULL);
        return 0;
    }
    if (!socket) {
        socket = XNEW(socket);
        *socket = (struct relay_socket){relay, {.fd = fd, .ready = on_ready, .context = socket}};
        curl.multi_assign(relay->multi, fd, socket);
    }
    unsigned events = (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
    return event_loop_watch(relay->loop, &socket->watch, events) ? -1 : 0;
}

static int on_timer(CURLM *multi, long wait_ms, void *context)
{
    struct http_relay *relay = context;
    (void)multi;
    relay->due = wait_ms < 0 ? INT64_MAX : clock_now() + wait_ms * NS_PER_MS;
    return 0;
}

/* ---- the relay ---- */

enum err http_relay_new(struct event_loop *loop, struct http_relay **out, struct error *why)
{
    *out = NULL;
    enum err err = curl_load(why);
    if (err)
        return err;
    struct http_relay *relay = XNEW(relay);
    relay->plain = plain_pool_new(loop);
    relay->multi = xneed(curl.multi_init());
    relay->loop = loop;
    relay->due = INT64_MAX;
    curl.multi_setopt(relay->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl.multi_setopt(relay->multi, CURLMOPT_SOCKETDATA, relay);
    curl.multi_setopt(relay->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl.multi_setopt(relay->multi, CURLMOPT_TIMERDATA, relay);
    curl.multi_setopt(relay->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    *out = relay;
    return ERR_OK;
}

static void release(struct curl_call *call)
{
    struct http_relay *relay = call->relay;
    if (call->next)
        call->next->previous = call->previous;
    if (call->previous)
        call->previous->next = call->next;
    else
        relay->calls = call->next;
    curl.multi_remove_handle(relay->multi, call->easy);
    if (relay->kept_count < HANDLES_KEPT) {
        curl.easy_reset(call->easy);
        relay->kept[relay->kept_count++] = call->easy;
    } else {
        curl.easy_cleanup(call->easy);
    }
    curl.slist_free_all(call->headers);
    text_release(&call->head);
    free(call);
}

void http_relay_free(struct http_relay *relay)
{
    if (!relay)
        return;
    for (struct curl_call *call = relay->calls, *next; call; call = next) {
        next = call->next;
        release(call);
    }
    while (relay->kept_count)
        curl.easy_cleanup(relay->kept[--relay->kept_count]);
    curl.multi_cleanup(relay->multi);
    plain_pool_free(relay->plain);
    free(relay);
}

/* ---- a call ---- */

static size_t on_header(char *bytes, size_t unit, size_t count, void *context)
{
    struct curl_call *call = context;
    size_t length = unit * count, trimmed = length;
    while (trimmed && (bytes[trimmed - 1] == '\n' || bytes[trimmed - 1] == '\r'))
        trimmed--;
    if (call->has_head)
        return length; /* trailers */
    if (trimmed >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        const char *space = memchr(bytes, ' ', trimmed);
        call->status = space ? (int)strtol(space + 1, NULL, 10) : 0;
        text_clear(&call->head);
    } else if (trimmed) {
        text_add_bytes(&call->head, bytes, trimmed);
        text_add_bytes(&call->head, "", 1);
    } else if (call->status >= 200) { /* before it come those of "100 Continue" */
        call->has_head = true;
        call->request.head(call->request.context, call->status, &call->head);
    }
    return length;
}

static size_t on_body(char *bytes, size_t unit, size_t count, void *context)
{
    nanos t = clock_now(); /* first, because this is the arrival time */
    struct curl_call *call = context;
    size_t length = unit * count;
    return call->request.take(call->request.context, bytes, length, t) ? length
                                                                       : CURL_WRITEFUNC_PAUSE;
}

/* Not CURLOPT_POSTFIELDS: with it libcurl resends a request when a reused connection turns out to be closed,
 * whatever the server has done with it by then (RFC 9110, 9.2.2).  A body read from this callback cannot be resent. */
static size_t on_upload(char *to, size_t unit, size_t count, void *context)
{
    struct curl_call *call = context;
    size_t left = call->request.body_length - call->body_given, max = unit * count;
    size_t length = left < max ? left : max;
    if (length)
        memcpy(to, call->request.body + call->body_given, length);
    call->body_given += length;
    return length;
}

/* For libcurl "Name:" removes a header, and "Name;" sends it empty. */
static void add_header(struct curl_slist **list, const char *line)
{
    const char *colon = strchr(line, ':');
    char empty[256];
    if (!colon)
        return;
    if (colon[1 + strspn(colon + 1, " \t")])
        curl_add_line(list, line);
    else if (chars_format(empty, "%.*s;", (int)(colon - line), line))
        curl_add_line(list, empty);
}

static bool has_header(const struct text *headers, const char *name)
{
    size_t length = strlen(name);
    for (size_t at = 0; at < headers->length; at += strlen(headers->bytes + at) + 1) {
        char start[64];
        chars_format(start, "%.*s", (int)length + 1, headers->bytes + at);
        if (start[length] == ':') {
            start[length] = '\0';
            if (str_equal_nocase(start, name))
                return true;
        }
    }
    return false;
}

/* The client's headers, and none that libcurl would add. */
static void build_headers(const struct text *headers, struct curl_slist **list)
{
    static const char *const OWN[] = {"Accept", "Content-Type", "User-Agent"};
    curl_add_line(list, "Expect:");
    for (size_t i = 0; i < COUNT_OF(OWN); i++) {
        char line[32];
        chars_format(line, "%s:", OWN[i]);
        if (!has_header(headers, OWN[i]))
            curl_add_line(list, line);
    }
    for (size_t at = 0; at < headers->length; at += strlen(headers->bytes + at) + 1)
        add_header(list, headers->bytes + at);
}

static void set_options(struct curl_call *call)
{
    const struct relay_request *request = &call->request;
    CURL *easy = call->easy;
    curl.easy_setopt(easy, CURLOPT_URL, request->url);
    curl.easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl.easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
    curl.easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl.easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER);
    curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(request->connect_limit / NS_PER_MS));
    if (request->body) {
        curl.easy_setopt(easy, CURLOPT_POST, 1L);
        curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
        curl.easy_setopt(easy, CURLOPT_READFUNCTION, on_upload);
        curl.easy_setopt(easy, CURLOPT_READDATA, call);
    }
    if (str_equal(request->method, "HEAD"))
        curl.easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl.easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl.easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl.easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, call->detail);
    curl_set_peer(easy, request->is_local);
}

enum err http_relay_start(struct http_relay *relay, const struct relay_request *request,
                          struct relay_call **out, struct error *why)
{
    if (plain_pool_serves(relay->plain, request)) {
        struct plain_call *plain;
        enum err err = plain_call_start(relay->plain, request, &plain, why);
        *out = (struct relay_call *)plain;
        return err;
    }
    struct curl_call *call = XNEW(call);
    *out = (struct relay_call *)call;
    *call = (struct curl_call){.relay = relay, .request = *request, .next = relay->calls};
    call->easy = relay->kept_count ? relay->kept[--relay->kept_count] : xneed(curl.easy_init());
    build_headers(request->headers, &call->headers);
    set_options(call);
    if (curl.multi_add_handle(relay->multi, call->easy)) /* refuses only handles that it has */
        end_without_memory();
    if (call->next)
        call->next->previous = call;
    relay->calls = call;
    return ERR_OK;
}

void relay_call_resume(struct relay_call *call)
{
    if (call->is_plain)
        plain_call_resume((struct plain_call *)call);
    else
        curl.easy_pause(((struct curl_call *)call)->easy, CURLPAUSE_CONT);
}

void relay_call_cancel(struct relay_call *call)
{
    if (call->is_plain)
        plain_call_cancel((struct plain_call *)call);
    else
        release((struct curl_call *)call);
}

/* ---- completion ---- */

static enum err err_of(CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return ERR_DENIED;
    case CURLE_OK:
        return ERR_OK;
    case CURLE_OPERATION_TIMEDOUT:
        return ERR_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
        return ERR_NOT_FOUND;
    default:
        return ERR_LOST;
    }
}

static void explain(const struct curl_call *call, CURLcode code, char *to, size_t size)
{
    const char *detail = call->detail[0] ? call->detail : curl.easy_strerror(code);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        str_format(to, size,
                   "its certificate is not trusted: %s (CURL_CA_BUNDLE names a file with the "
                   "certificates to trust)",
                   detail);
    else if (code == CURLE_SEND_FAIL_REWIND)
        str_copy(to, size, "the connection was closed");
    else
        str_copy(to, size, code ? detail : "");
}

static void finish(CURL *easy, CURLcode code)
{
    struct curl_call *call = NULL;
    char why[CURL_ERROR_SIZE + 128];
    curl.easy_getinfo(easy, CURLINFO_PRIVATE, &call);
    struct relay_request request = call->request;
    explain(call, code, why, sizeof why);
    release(call);
    request.done(request.context, err_of(code), why);
}

void http_relay_process(struct http_relay *relay)
{
    int running, left;
    plain_pool_process(relay->plain);
    if (relay->due <= clock_now()) {
        relay->due = INT64_MAX;
        curl.multi_socket_action(relay->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    for (CURLMsg *message; (message = curl.multi_info_read(relay->multi, &left));)
        if (message->msg == CURLMSG_DONE)
            finish(message->easy_handle, message->data.result);
}

nanos http_relay_due(const struct http_relay *relay)
{
    nanos plain = plain_pool_due(relay->plain);
    return plain < relay->due ? plain : relay->due;
}
