/* One thread and one event loop: the server's connections and those to the upstream server (port/http_server.h,
 * port/http_relay.h).  A transfer is one request that is being forwarded; it lives as long as its exchange with the
 * client.
 *
 *   request -> transfer, upstream call -> headers, data (forwarded first, then observed) -> end -> owner, client
 *
 * A client that disconnects ends its exchange, which cancels the call.  A client that reads slowly pauses the call once
 * UNSENT_MAX bytes are waiting. */
#define _GNU_SOURCE
#include "proxy/proxy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/xalloc.h"
#include "core/json.h"
#include "port/event_loop.h"
#include "port/http_relay.h"
#include "port/proc.h"
#include "port/thread.h"
#include "port/url.h"
#include "proxy/observer.h"
#include "wire/prometheus.h"

enum {
    BODY_MAX = 64 * 1024 * 1024,
    UNSENT_MAX = 256 * 1024,
    CONNECTIONS_MAX = 16384,
    HELD_MAX = 4 * 1024 * 1024,       /* bytes of a response that is held for its energy ... */
    HELD_ALL_MAX = 256 * 1024 * 1024, /* ... and of all of them */
    SHOWN_REQUESTS = 100,
};
#define CONNECT_LIMIT (10 * NS_PER_S)
#define REQUEST_LIMIT (30 * NS_PER_S)
#define IDLE_LIMIT    (60 * NS_PER_S)
#define WRITE_LIMIT   (60 * NS_PER_S)
#define ENERGY_LIMIT  (3 * NS_PER_S) /* maximum delay of a response for its energy */

struct settled {
    uint64_t id;
    struct energy energy;
    bool again;
};

struct proxy {
    struct proxy_options options;
    struct url upstream;
    char origin[300], prefix[256]; /* upstream URL: "http://host:port", "/v1" or "" */
    struct event_loop *loop;
    struct http_server *server;
    struct http_access *access;
    struct http_relay *relay;
    struct status *status;
    struct transfer *transfers;
    uint64_t next_id;
    size_t held; /* bytes of held responses */
    pthread_t thread;
    atomic_bool refuse, stop;
    atomic_uint in_flight;
    atomic_uint_fast64_t forwarded;
    atomic_uint_fast64_t unrecorded;
    pthread_mutex_t lock; /* guards the following fields */
    struct settled *settled;
    size_t settled_count, settled_capacity;
};

struct transfer {
    struct proxy *proxy;
    struct http_exchange *exchange;
    struct relay_call *call; /* NULL: finished */
    struct proxy_request
        *request; /* NULL: not an inference request, or already passed to the owner */
    uint64_t id;  /* id of the request */
    struct observer observer;
    struct client_keys keys;
    struct text connection;         /* the client's Connection headers, as one list */
    struct text url, headers, body; /* of the upstream call; body: only if modified */
    struct usage_filter filter;
    bool filters_usage, is_paused, has_begun;
    bool is_held; /* the response is held until its energy is known */
    bool is_event_stream;
    bool may_infer; /* a request to an unknown endpoint, until it has ended */
    bool is_stream; /* its response is one */
    nanos began;
    int status;            /* status of the held response */
    uint64_t length;       /* of the response's body, or HTTP_LENGTH_UNKNOWN */
    struct text held;      /* body of the held response */
    nanos energy_deadline; /* when a held response is sent without its energy; 0: not waiting */
    struct transfer *next, *previous;
};

/* ---- the proxy's own endpoints ---- */

static void reply_error(struct http_exchange *exchange, int status, const char *type,
                        const char *message)
{
    struct text body = {0};
    struct json json;
    json_init(&json, &body, false);
    json_object(&json, NULL);
    json_object(&json, "error");
    json_string(&json, "message", message);
    json_string(&json, "type", type);
    json_integer(&json, "code", status);
    json_object_end(&json);
    json_object_end(&json);
    http_exchange_reply(exchange, status, "application/json", text_get(&body), body.length);
    text_release(&body);
}

static size_t wanted_count(const char *target)
{
    const char *limit = strstr(target, "limit=");
    unsigned long count = limit ? strtoul(limit + strlen("limit="), NULL, 10) : SHOWN_REQUESTS;
    return count;
}

static void serve_status(struct proxy *proxy, struct http_exchange *exchange, const char *path)
{
    struct text body = {0};
    const char *method = http_exchange_method(exchange);
    if (!str_equal(method, "GET") && !str_equal(method, "HEAD")) {
        reply_error(exchange, 405, "invalid_request_error", "only GET is allowed here");
    } else if (str_equal(path, "/ipw/metrics")) {
        status_metrics(proxy->status, atomic_load(&proxy->unrecorded), &body);
        http_exchange_reply(exchange, 200, exposition_content_type(false), text_get(&body),
                            body.length);
    } else if (str_equal(path, "/ipw/requests")) {
        status_requests(proxy->status, wanted_count(http_exchange_target(exchange)), &body);
        http_exchange_reply(exchange, 200, "application/json", text_get(&body), body.length);
    } else {
        reply_error(exchange, 404, "invalid_request_error",
                    "ipw proxy serves /ipw/metrics and /ipw/requests");
    }
    text_release(&body);
}

/* ---- responses ---- */

static void pass_to_owner(struct transfer *transfer)
{
    struct proxy *proxy = transfer->proxy;
    struct proxy_request *request = transfer->request;
    if (!request)
        return;
    request->reply.done = clock_now();
    observer_release(&transfer->observer);
    transfer->request = NULL;
    status_end(proxy->status, request);
    if (proxy->options.ended)
        proxy->options.ended(proxy->options.context, request);
    else
        proxy_request_free(request);
}

/* Decides whether a request to an unknown endpoint was inference.  Error responses to clients are not: nothing was
 * computed for them. */
static void end_unknown(struct transfer *transfer, bool has_failed)
{
    struct proxy *proxy = transfer->proxy;
    char path[sizeof(((struct proxy_request *)0)->path)] = "";
    nanos now = clock_now();
    if (!transfer->may_infer)
        return;
    transfer->may_infer = false;
    const char *target = http_exchange_target(transfer->exchange);
    chars_format(path, "%.*s", (int)strcspn(target, "?"), target);
    const struct proxy_unknown request = {
        .id = transfer->id,
        .path = path,
        .from = transfer->began,
        .to = now,
        .is_inference = !has_failed && !(transfer->status >= 400 && transfer->status < 500) &&
                        (transfer->is_stream || now - transfer->began >= PROXY_INFERENCE_MIN),
    };
    if (request.is_inference)
        status_count_unknown(proxy->status);
    else
        status_count_other(proxy->status);
    proxy->options.unknown_ended(proxy->options.context, &request);
}

static void release_held(struct transfer *transfer)
{
    transfer->proxy->held -= transfer->held.length;
    text_release(&transfer->held);
}

/* The response becomes too long to be held: its energy is recorded, but not returned. */
static void forward_held(struct transfer *transfer)
{
    transfer->is_held = false;
    transfer->has_begun = true;
    http_exchange_begin(transfer->exchange, transfer->status, transfer->length);
    http_exchange_send(transfer->exchange, text_get(&transfer->held), transfer->held.length);
    release_held(transfer);
}

static void send_held(struct transfer *transfer, const struct energy *energy)
{
    struct http_exchange *exchange = transfer->exchange;
    bool known = energy && is_known(energy->joules);
    char figure[64];
    transfer->energy_deadline = 0;
    if (transfer->is_held) {
        if (known && chars_format(figure, "%.6g", energy->joules))
            http_exchange_add_header(exchange, "x-ipw-energy-joules", figure);
        http_exchange_begin(exchange, transfer->status, transfer->held.length);
        http_exchange_send(exchange, text_get(&transfer->held), transfer->held.length);
        release_held(transfer);
    } else {
        struct text comment = {0};
        if (known)
            text_addf(&comment, ": x-ipw-energy-joules %.6g plus-minus %.3g method %s\n\n",
                      energy->joules, energy->plus_minus, method_name(energy->method));
        else
            text_add(&comment, ": x-ipw-energy-joules unknown\n\n");
        http_exchange_send(exchange, text_get(&comment), comment.length);
        text_release(&comment);
    }
    http_exchange_end(exchange, true);
}

static bool is_type(const char *content_type, const char *wanted)
{
    return content_type && strncasecmp(content_type, wanted, strlen(wanted)) == 0;
}

static void on_headers(void *context, int status, const struct text *headers)
{
    struct transfer *transfer = context;
    struct text connection = {0};
    const char *type = http_header_find(headers, "Content-Type");
    const char *given = http_header_find(headers, "Content-Length");
    const char *encoding = http_header_find(headers, "Content-Encoding");
    if (transfer->request)
        observer_begin(&transfer->observer, status, headers);
    transfer->is_event_stream = is_type(type, "text/event-stream");
    transfer->is_stream = transfer->is_event_stream || is_type(type, "application/x-ndjson") ||
                          is_type(type, "application/jsonl");
    header_lines_connection(headers, &connection);
    for (size_t at = 0; at < headers->length; at += strlen(headers->bytes + at) + 1) {
        char *line = headers->bytes + at, *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = '\0';
        if (!header_is_hop_by_hop(line, text_get(&connection)))
            http_exchange_add_header(transfer->exchange, line,
                                     colon + 1 + strspn(colon + 1, " \t"));
        *colon = ':';
    }
    text_release(&connection);
    bool returns_energy = transfer->proxy->options.energy_header && transfer->request;
    transfer->status = status;
    transfer->filters_usage = transfer->filters_usage && transfer->is_event_stream && !encoding;
    transfer->is_held =
        returns_energy && !transfer->is_event_stream && !is_type(type, "application/x-ndjson");
    if (!given || http_header_find(headers, "Transfer-Encoding") ||
        parse_u64(given, &transfer->length) || transfer->filters_usage ||
        (returns_energy && transfer->is_event_stream))
        transfer->length = HTTP_LENGTH_UNKNOWN;
    if (transfer->is_held)
        return;
    transfer->has_begun = true;
    http_exchange_begin(transfer->exchange, status, transfer->length);
}

static bool on_data(void *context, const char *bytes, size_t length, nanos t)
{
    struct transfer *transfer = context;
    if (http_exchange_unsent(transfer->exchange) > UNSENT_MAX) {
        transfer->is_paused = true;
        return false;
    }
    if (transfer->is_held && (transfer->held.length + length > HELD_MAX ||
                              transfer->proxy->held + length > HELD_ALL_MAX))
        forward_held(transfer);
    if (transfer->is_held) {
        text_add_bytes(&transfer->held, bytes, length);
        transfer->proxy->held += length;
    } else if (transfer->filters_usage) {
        struct text out = {0};
        usage_filter_feed(&transfer->filter, bytes, length, &out);
        if (out.length)
            http_exchange_send(transfer->exchange, text_get(&out), out.length);
        text_release(&out);
    } else {
        http_exchange_send(transfer->exchange, bytes, length);
    }
    if (transfer->request) {
        http_exchange_push(transfer->exchange); /* reading it takes as long as sending it */
        observer_take(&transfer->observer, bytes, length, t);
    }
    return true;
}

/* Reports that the upstream server did not respond, in the error format of the protocol. */
static void reply_failure(struct transfer *transfer, enum err err, const char *why)
{
    char message[400];
    chars_format(message, "ipw proxy: cannot reach %s: %s", transfer->proxy->upstream.server, why);
    reply_error(transfer->exchange, err == ERR_TIMEOUT ? 504 : 502, "upstream_error", message);
}

static void on_done(void *context, enum err err, const char *why)
{
    struct transfer *transfer = context;
    bool returns_energy = transfer->proxy->options.energy_header && transfer->request && !err;
    transfer->call = NULL;
    end_unknown(transfer, err && !transfer->status);
    if (transfer->request) {
        observer_end(&transfer->observer, err, why);
        pass_to_owner(transfer);
    }
    if (transfer->filters_usage) {
        struct text out = {0};
        usage_filter_end(&transfer->filter, &out);
        if (out.length)
            http_exchange_send(transfer->exchange, text_get(&out), out.length);
        text_release(&out);
    }
    if (!transfer->has_begun && !transfer->is_held)
        reply_failure(transfer, err, why);
    else if (returns_energy && (transfer->is_held || transfer->is_event_stream))
        transfer->energy_deadline = clock_now() + ENERGY_LIMIT;
    else if (transfer->is_held && !err)
        send_held(transfer, NULL);
    else
        http_exchange_end(transfer->exchange, !err);
}

/* ---- requests ---- */

static void build_url(struct proxy *proxy, const char *target, struct text *out)
{
    size_t length = strlen(proxy->prefix);
    bool has_prefix = length && str_starts(target, proxy->prefix) &&
                      (!target[length] || strchr("/?", target[length]));
    text_add(out, proxy->origin);
    text_add(out, has_prefix ? "" : proxy->prefix);
    text_add(out, target);
}

static void begin_inference(struct transfer *transfer, const struct proxy_endpoint *endpoint)
{
    struct proxy *proxy = transfer->proxy;
    struct proxy_request *request = transfer->request = XNEW(request);
    request->id = transfer->id = proxy->next_id++;
    observer_init(&transfer->observer, request, endpoint);
    if (proxy->options.begins)
        proxy->options.begins(proxy->options.context, request->id, request->reply.sent);
}

/* After the request is on its way: reading it takes as long as sending it. */
static void observe_inference(struct transfer *transfer, const char *path)
{
    struct proxy *proxy = transfer->proxy;
    struct proxy_request *request = transfer->request;
    size_t length;
    const char *body = http_exchange_body(transfer->exchange, &length);
    keys_label(&transfer->keys, &proxy->options, request->key, sizeof request->key);
    observe_request(request, path, body, length);
    observe_label(request->query, sizeof request->query,
                  http_exchange_header(transfer->exchange, "x-ipw-query"));
    observe_label(request->turn, sizeof request->turn,
                  http_exchange_header(transfer->exchange, "x-ipw-turn"));
    if (proxy->options.keep_content)
        text_add_bytes(&request->body, body, length);
    status_begin(proxy->status, request);
}

/* The owner must know of it while it is in flight: its share of the energy is missing from concurrent requests. */
static void begin_unknown(struct transfer *transfer)
{
    struct proxy *proxy = transfer->proxy;
    transfer->may_infer = true;
    transfer->id = proxy->next_id++;
    transfer->began = clock_now();
    proxy->options.begins(proxy->options.context, transfer->id, transfer->began);
}

static void take_connection(void *context, const char *name, const char *value)
{
    struct transfer *transfer = context;
    header_list_connection(&transfer->connection, name, value);
}

static void forward_header(void *context, const char *name, const char *value)
{
    struct transfer *transfer = context;
    if (transfer->filters_usage && str_equal_nocase(name, "Accept-Encoding"))
        return; /* the filter needs an uncompressed stream */
    if (header_is_forwarded(&transfer->proxy->options, name, value,
                            text_get(&transfer->connection)))
        header_add(&transfer->headers, name, value);
}

/* Sends the request, or as much of it as a connection accepts at once; no callback is called before this returns. */
static enum err start_call(struct transfer *transfer, struct error *why)
{
    struct proxy *proxy = transfer->proxy;
    const char *method = http_exchange_method(transfer->exchange);
    size_t length;
    const char *body = http_exchange_body(transfer->exchange, &length);
    if (proxy->options.inject_usage && transfer->request &&
        endpoint_has_usage_option(transfer->request->endpoint))
        transfer->filters_usage = usage_inject(body, length, &transfer->body);
    if (transfer->filters_usage) {
        body = text_get(&transfer->body);
        length = transfer->body.length;
    }
    bool has_body = length || str_equal(method, "POST") || str_equal(method, "PUT") ||
                    str_equal(method, "PATCH");
    build_url(proxy, http_exchange_target(transfer->exchange), &transfer->url);
    http_exchange_headers(transfer->exchange, take_connection, transfer);
    http_exchange_headers(transfer->exchange, forward_header, transfer);
    header_add_ours(&transfer->headers, &proxy->options, &transfer->keys);
    const struct relay_request request = {
        .method = method,
        .url = text_get(&transfer->url),
        .headers = &transfer->headers,
        .body = has_body ? body : NULL,
        .body_length = length,
        .connect_limit = CONNECT_LIMIT,
        .is_local = url_is_local(&proxy->upstream),
        .head = on_headers,
        .take = on_data,
        .done = on_done,
        .context = transfer,
    };
    return http_relay_start(proxy->relay, &request, &transfer->call, why);
}

static struct transfer *new_transfer(struct proxy *proxy, struct http_exchange *exchange)
{
    struct transfer *transfer = XNEW(transfer);
    transfer->proxy = proxy;
    transfer->exchange = exchange;
    transfer->next = proxy->transfers;
    if (transfer->next)
        transfer->next->previous = transfer;
    proxy->transfers = transfer;
    atomic_fetch_add(&proxy->forwarded, 1);
    atomic_fetch_add(&proxy->in_flight, 1);
    http_exchange_set_data(exchange, transfer);
    return transfer;
}

static void check_header(void *context, const char *name, const char *value)
{
    bool *is_valid = context;
    *is_valid = *is_valid && header_is_name(name) && header_is_value(value);
}

/* Clients share connections to the upstream server: a request that it might parse as two (request smuggling) must not
 * be forwarded. */
static bool refuse_malformed(struct http_exchange *exchange, bool is_path)
{
    bool is_valid = header_is_name(http_exchange_method(exchange));
    http_exchange_headers(exchange, check_header, &is_valid);
    if (is_valid && is_path)
        return false;
    http_exchange_add_header(exchange, "Connection", "close");
    reply_error(exchange, 400, "invalid_request_error",
                is_path ? "malformed header" : "invalid path");
    return true;
}

/* Pages of other sites, which would use our API key, and clients without the token. */
static bool refuse_foreign(struct proxy *proxy, struct http_exchange *exchange,
                           const struct client_keys *keys)
{
    struct error why = {0};
    const char *message;
    if (http_access_check_site(proxy->access, exchange, &why)) {
        reply_error(exchange, 403, "permission_error", why.text);
        return true;
    }
    enum http_admission admission =
        http_access_admit_token(proxy->access, exchange, keys_hash(keys),
                                keys_are_authorized(keys, proxy->options.access.token));
    if (admission == HTTP_ADMITTED)
        return false;
    int status = http_access_refuse(exchange, admission, &message);
    reply_error(exchange, status, status == 429 ? "rate_limit_error" : "authentication_error",
                status == 429 ? message
                              : "missing or invalid proxy token: send it as x-ipw-token, or as "
                                "the API key");
    return true;
}

static void on_request(void *context, struct http_exchange *exchange)
{
    struct proxy *proxy = context;
    const char *target = http_exchange_target(exchange);
    char path[512];
    size_t end = strcspn(target, "?");
    bool fits = end < sizeof path;
    str_copy(path, fits ? end + 1 : sizeof path, target);
    if (refuse_malformed(exchange, fits && header_is_target(target)))
        return;
    struct client_keys keys = {0};
    http_exchange_headers(exchange, keys_take, &keys);
    if (refuse_foreign(proxy, exchange, &keys))
        return;
    if (str_starts(path, "/ipw/")) {
        serve_status(proxy, exchange, path);
        return;
    }
    if (strcmp(http_exchange_method(exchange), "TRACE") ==
        0) { /* TRACE would echo the upstream key */
        reply_error(exchange, 405, "invalid_request_error", "TRACE is not allowed");
        return;
    }
    if (atomic_load(&proxy->refuse)) {
        reply_error(exchange, 503, "unavailable", "ipw proxy is shutting down");
        return;
    }
    struct transfer *transfer = new_transfer(proxy, exchange);
    transfer->keys = keys;
    size_t length;
    const char *body = http_exchange_body(exchange, &length);
    const struct proxy_endpoint *endpoint =
        observe_endpoint(http_exchange_method(exchange), path, body, length);
    if (endpoint)
        begin_inference(transfer, endpoint);
    else if (proxy->options.unknown_ended &&
             !observe_is_other(http_exchange_method(exchange), path, &proxy->options))
        begin_unknown(transfer);
    else
        status_count_other(proxy->status);
    struct error why = {0};
    enum err err = start_call(transfer, &why);
    if (endpoint)
        observe_inference(transfer, path);
    if (err)
        on_done(transfer, err, why.text);
}

static void on_drained(void *context, struct http_exchange *exchange)
{
    struct transfer *transfer = http_exchange_data(exchange);
    (void)context;
    if (!transfer || !transfer->is_paused || !transfer->call)
        return;
    transfer->is_paused = false;
    relay_call_resume(transfer->call);
}

static void on_ended(void *context, struct http_exchange *exchange, bool complete)
{
    struct proxy *proxy = context;
    struct transfer *transfer = http_exchange_data(exchange);
    (void)complete;
    if (!transfer)
        return;
    if (transfer->call)
        relay_call_cancel(transfer->call);
    end_unknown(transfer, false);
    if (transfer->request) {
        /* Clients close their connection at "[DONE]", before the end of the body. */
        bool is_complete =
            observer_is_complete(&transfer->observer) && !http_exchange_unsent(transfer->exchange);
        bool is_stopped = atomic_load(&proxy->stop); /* we disconnect, not the client */
        transfer->request->canceled = !is_complete && !is_stopped;
        observer_end(&transfer->observer, is_complete ? ERR_OK : ERR_INTERRUPTED,
                     is_stopped ? "ipw proxy was stopped" : "the client disconnected");
        pass_to_owner(transfer);
    }
    if (transfer->next)
        transfer->next->previous = transfer->previous;
    if (transfer->previous)
        transfer->previous->next = transfer->next;
    else
        proxy->transfers = transfer->next;
    text_release(&transfer->url);
    text_release(&transfer->headers);
    text_release(&transfer->body);
    text_release(&transfer->connection);
    release_held(transfer);
    text_release(&transfer->filter.held);
    free(transfer);
    atomic_fetch_sub(&proxy->in_flight, 1);
}

/* ---- energy ---- */

void proxy_count_unrecorded(struct proxy *proxy)
{
    atomic_fetch_add(&proxy->unrecorded, 1);
}

uint64_t proxy_forwarded(const struct proxy *proxy, unsigned *in_flight)
{
    *in_flight = atomic_load(&proxy->in_flight);
    return atomic_load(&proxy->forwarded);
}

void proxy_settle(struct proxy *proxy, uint64_t id, const struct energy *energy, bool again)
{
    pthread_mutex_lock(&proxy->lock);
    *XADD(proxy->settled, proxy->settled_count, proxy->settled_capacity) =
        (struct settled){id, *energy, again};
    bool is_first = proxy->settled_count == 1;
    pthread_mutex_unlock(&proxy->lock);
    /* Wakes the loop only for held responses; a request for the metrics wakes it anyway. */
    if (is_first && proxy->options.energy_header)
        event_loop_wake(proxy->loop);
}

static void take_settled(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    struct settled *items = proxy->settled;
    size_t count = proxy->settled_count;
    proxy->settled = NULL;
    proxy->settled_count = proxy->settled_capacity = 0;
    pthread_mutex_unlock(&proxy->lock);
    for (size_t i = 0; i < count; i++) {
        status_settle(proxy->status, items[i].id, &items[i].energy, items[i].again);
        for (struct transfer *p = proxy->options.energy_header ? proxy->transfers : NULL; p;
             p = p->next)
            if (p->id == items[i].id && p->energy_deadline)
                send_held(p, &items[i].energy);
    }
    free(items);
}

/* Sends held responses whose deadline has passed: their energy is shared with requests still in flight. */
static nanos release_overdue(struct proxy *proxy)
{
    nanos now = clock_now(), next = INT64_MAX;
    for (struct transfer *p = proxy->options.energy_header ? proxy->transfers : NULL; p;
         p = p->next) {
        if (p->energy_deadline && p->energy_deadline <= now)
            send_held(p, NULL);
        else if (p->energy_deadline && p->energy_deadline < next)
            next = p->energy_deadline;
    }
    return next;
}

/* ---- the thread ---- */

static void *proxy_main(void *argument)
{
    struct proxy *proxy = argument;
    thread_name("ipw-proxy", -1);
    thread_set_responsive();
    while (!atomic_load(&proxy->stop)) {
        if (atomic_load(&proxy->refuse))
            http_server_refuse(proxy->server);
        take_settled(proxy);
        nanos late = release_overdue(proxy);
        http_relay_process(proxy->relay);
        http_server_process(proxy->server);
        nanos relay = http_relay_due(proxy->relay), server = http_server_due(proxy->server);
        nanos until = relay < server ? relay : server;
        event_loop_run_once(proxy->loop, late < until ? late : until);
    }
    return NULL;
}

static enum err read_upstream(struct proxy *proxy, struct error *why)
{
    const char *given = proxy->options.upstream;
    enum err err = url_read(given, &proxy->upstream, why);
    if (err)
        return err;
    const char *path = strchr(strstr(given, "://") + 3, '/');
    size_t length = path ? strcspn(path, "?#") : 0;
    while (length && path[length - 1] == '/')
        length--;
    size_t before = path ? (size_t)(path - given) : strcspn(given, "?#");
    if (!chars_format(proxy->origin, "%.*s", (int)before, given) ||
        !chars_format(proxy->prefix, "%.*s", (int)length, path ? path : ""))
        return err_set(why, ERR_USAGE, "the URL of the upstream server is too long");
    return ERR_OK;
}

static void release(struct proxy *proxy)
{
    http_server_close(proxy->server);
    http_access_free(proxy->access);
    http_relay_free(proxy->relay);
    event_loop_free(proxy->loop);
    status_free(proxy->status);
    free(proxy->settled);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

/* All that may be wrong with the options, apart from the address to listen on. */
static enum err open_upstream(struct proxy *proxy, struct error *why)
{
    const struct http_access_options *options = &proxy->options.access;
    enum err err = http_access_check(options->address, options->token, false,
                                     "set a token (IPW_PROXY_TOKEN)", why);
    if (!err)
        err = read_upstream(proxy, why);
    if (!err && http_access_reaches(options->address, options->port, &proxy->upstream))
        err =
            err_set(why, ERR_USAGE,
                    "the upstream server %s is this proxy itself, which would listen on %.80s port "
                    "%u: use another port for the proxy, or the URL of the server",
                    proxy->upstream.server, options->address, options->port);
    if (!err)
        err = event_loop_new(&proxy->loop, why);
    if (!err)
        err = http_relay_new(proxy->loop, &proxy->relay, why);
    return err;
}

static enum err open_server(struct proxy *proxy, struct error *why)
{
    const struct proxy_options *options = &proxy->options;
    const struct http_server_options server = {
        .address = options->access.address,
        .port = options->access.port,
        .body_max = options->body_max ? options->body_max : BODY_MAX,
        .connections_max = CONNECTIONS_MAX,
        .request_limit = options->request_limit ? options->request_limit : REQUEST_LIMIT,
        .idle_limit = IDLE_LIMIT,
        .write_limit = WRITE_LIMIT,
        .request = on_request,
        .drained = on_drained,
        .ended = on_ended,
        .context = proxy,
    };
    proxy->status = status_new();
    proxy->access = http_access_new(&options->access);
    return http_server_open(proxy->loop, &server, &proxy->server, why);
}

static struct proxy *new_proxy(const struct proxy_options *options)
{
    struct proxy *proxy = XNEW(proxy);
    proxy->options = *options;
    if (!options->access.address)
        proxy->options.access.address = "127.0.0.1";
    proxy->next_id = options->first_id;
    pthread_mutex_init(&proxy->lock, NULL);
    return proxy;
}

enum err proxy_start(const struct proxy_options *options, struct proxy **out, struct error *why)
{
    struct proxy *proxy = *out = new_proxy(options);
    proc_raise_file_limit(4 * CONNECTIONS_MAX); /* each stream uses two sockets */
    enum err err = open_upstream(proxy, why);
    if (!err)
        err = open_server(proxy, why);
    if (!err)
        err = err_explain(why, thread_start(&proxy->thread, proxy_main, proxy));
    if (err) {
        release(proxy);
        *out = NULL;
    }
    return err;
}

enum err proxy_check(const struct proxy_options *options, char *shown, size_t size,
                     struct error *why)
{
    struct proxy *trial = new_proxy(options);
    enum err err = open_upstream(trial, why);
    if (!err)
        err = listener_check(trial->options.access.address, options->access.port, why);
    if (!err)
        str_copy(shown, size, trial->upstream.shown);
    release(trial);
    return err;
}

unsigned proxy_port(const struct proxy *proxy)
{
    return http_server_port(proxy->server);
}

bool proxy_drain(struct proxy *proxy, nanos timeout)
{
    nanos until = clock_now() + timeout;
    if (!atomic_exchange(&proxy->refuse, true))
        event_loop_wake(proxy->loop);
    while (atomic_load(&proxy->in_flight) && clock_now() < until)
        thread_sleep(5 * NS_PER_MS);
    return atomic_load(&proxy->in_flight) == 0;
}

void proxy_stop(struct proxy *proxy)
{
    atomic_store(&proxy->stop, true);
    event_loop_wake(proxy->loop);
    pthread_join(proxy->thread, NULL);
    release(proxy); /* stopping the server ends every exchange and its request */
}
