/* One thread and one event loop: the server's connections and those to the upstream server (port/http_server.h,
 * port/http_relay.h).  A passage is one request on its way: it exists as long as its exchange with the client.
 *
 *   request -> passage, upstream call -> head, pieces (passed on first, then observed) -> end -> owner, client
 *
 * A client that disconnects ends its exchange, which cancels the call.  A client that reads slowly pauses the call once
 * UNSENT_MAX bytes are waiting. */
#define _GNU_SOURCE
#include "proxy/proxy.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/grow.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/params.h"
#include "core/secret.h"
#include "port/event_loop.h"
#include "port/http_relay.h"
#include "port/http_server.h"
#include "port/proc.h"
#include "port/thread.h"
#include "port/url.h"
#include "proxy/passage.h"
#include "wire/prometheus.h"

enum {
    BODY_MAX = 64 * 1024 * 1024,
    UNSENT_MAX = 256 * 1024,
    CONNECTIONS_MAX = 16384,
    KEYS_MAX = 256, /* API keys that are kept as secrets */
    SHOWN_REQUESTS = 100,
};
#define CONNECT_LIMIT (10 * NS_PER_S)
#define REQUEST_LIMIT (30 * NS_PER_S)
#define IDLE_LIMIT    (75 * NS_PER_S)
#define WRITE_LIMIT   (60 * NS_PER_S)
#define ENERGY_LIMIT  (3 * NS_PER_S) /* that an answer waits for its energy */

struct settled {
    uint64_t id;
    struct energy energy;
};

struct proxy {
    struct proxy_options options;
    struct url upstream;
    char origin[300], prefix[256]; /* of the upstream: "http://host:port", "/v1" or "" */
    struct event_loop *loop;
    struct http_server *server;
    struct http_relay *relay;
    struct status *status;
    struct passage *passages;
    uint64_t next_id;
    uint64_t keys[KEYS_MAX]; /* hashes */
    size_t key_count;
    pthread_t thread;
    atomic_bool refuse, stop;
    atomic_uint in_flight;
    atomic_uint_fast64_t unrecorded;
    pthread_mutex_t lock; /* guards what follows */
    struct settled *settled;
    size_t settled_count, settled_capacity;
};

struct passage {
    struct proxy *proxy;
    struct http_exchange *exchange;
    struct relay_call *call;       /* NULL: over */
    struct proxy_request *request; /* NULL: no inference, or handed to the owner */
    uint64_t id;                   /* of the request */
    struct observer observer;
    const char *connection;         /* of the client's headers; NULL without */
    struct text url, headers, body; /* of the call; body: only where it was changed */
    struct usage_filter filter;
    bool filters, is_paused, has_begun;
    bool keeps; /* the answer is kept back until its energy is known */
    bool is_event_stream;
    int status;         /* of the kept answer */
    struct text kept;   /* its body */
    nanos energy_until; /* when the answer stops waiting for its energy; 0: it does not wait */
    struct passage *next, *previous;
};

/* ---- answers of the proxy's own ---- */

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

static void serve_own(struct proxy *proxy, struct http_exchange *exchange, const char *path)
{
    struct text body = {0};
    const char *method = http_exchange_method(exchange);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        reply_error(exchange, 405, "invalid_request_error", "only GET is allowed here");
    } else if (strcmp(path, "/ipw/metrics") == 0) {
        status_metrics(proxy->status, atomic_load(&proxy->unrecorded), &body);
        http_exchange_reply(exchange, 200, exposition_content_type(false), text_get(&body),
                            body.length);
    } else if (strcmp(path, "/ipw/requests") == 0) {
        status_requests(proxy->status, wanted_count(http_exchange_target(exchange)), &body);
        http_exchange_reply(exchange, 200, "application/json", text_get(&body), body.length);
    } else {
        reply_error(exchange, 404, "invalid_request_error",
                    "ipw proxy serves /ipw/metrics and /ipw/requests");
    }
    text_release(&body);
}

/* ---- who asks ---- */

/* An API key, if that header has one; NULL otherwise. */
static const char *key_in(const char *name, const char *value)
{
    if (str_equal_nocase(name, "Authorization"))
        return value && strncasecmp(value, "Bearer ", 7) == 0 ? value + 7 : NULL;
    return str_equal_nocase(name, "x-api-key") || str_equal_nocase(name, "api-key") ? value : NULL;
}

static const char *const KEY_HEADERS[] = {"Authorization", "x-api-key", "api-key"};
enum { KEY_HEADER_COUNT = sizeof KEY_HEADERS / sizeof *KEY_HEADERS };

static bool is_own_token(const struct proxy *proxy, const char *name, const char *value)
{
    return proxy->options.token && secret_matches(key_in(name, value), proxy->options.token);
}

/* The first header in which the client has a key, or another authorization, for the upstream server; NULL without. */
static const char *find_key_header(struct proxy *proxy, struct http_exchange *exchange)
{
    for (size_t i = 0; i < KEY_HEADER_COUNT; i++) {
        const char *value = http_exchange_header(exchange, KEY_HEADERS[i]);
        if (value && *value && !is_own_token(proxy, KEY_HEADERS[i], value))
            return KEY_HEADERS[i];
    }
    return NULL;
}

static bool may_ask(const struct proxy *proxy, struct http_exchange *exchange)
{
    const char *token = proxy->options.token;
    if (!token)
        return true;
    bool may = secret_matches(http_exchange_header(exchange, "x-ipw-token"), token);
    for (size_t i = 0; i < KEY_HEADER_COUNT; i++)
        may |= is_own_token(proxy, KEY_HEADERS[i], http_exchange_header(exchange, KEY_HEADERS[i]));
    return may;
}

static void hold_secret(struct proxy *proxy, const char *key, uint64_t hash)
{
    for (size_t i = 0; i < proxy->key_count; i++)
        if (proxy->keys[i] == hash)
            return;
    if (proxy->key_count == KEYS_MAX)
        return;
    proxy->keys[proxy->key_count++] = hash;
    secret_add_foreign(key);
}

/* Never the key itself: 32 bits of a hash tell keys apart, and lead back to none. */
static void label_key(struct proxy *proxy, struct http_exchange *exchange, char *to, size_t size)
{
    const char *header = find_key_header(proxy, exchange);
    const char *key = header ? key_in(header, http_exchange_header(exchange, header)) : NULL;
    if (!key || !*key)
        return;
    uint64_t hash = hash_mix(hash_string(HASH_START, key));
    char label[16];
    hold_secret(proxy, key, hash);
    str_format(label, sizeof label, "key-%08" PRIx32, (uint32_t)(hash >> 32));
    const char *name =
        proxy->options.key_names ? params_get(proxy->options.key_names, label) : NULL;
    str_copy(to, size, name ? name : label);
}

/* ---- headers ---- */

static bool is_replaced(const struct proxy *proxy, const char *name)
{
    const struct params *ours = proxy->options.upstream_headers;
    for (size_t i = 0; ours && i < ours->count; i++)
        if (str_equal_nocase(ours->items[i].key, name))
            return true;
    return false;
}

/* What the client sends goes on, but for the labels, what belongs to its connection, and the proxy's own token. */
static void take_header(void *context, const char *name, const char *value)
{
    struct passage *passage = context;
    if (header_is_hop_by_hop(name, passage->connection) || str_equal_nocase(name, "Host") ||
        str_equal_nocase(name, "Expect") || strncasecmp(name, "x-ipw-", 6) == 0)
        return;
    if (passage->filters && str_equal_nocase(name, "Accept-Encoding"))
        return; /* the stream must be read to be changed */
    if (is_own_token(passage->proxy, name, value) || is_replaced(passage->proxy, name))
        return;
    header_add(&passage->headers, name, value);
}

static void add_key(struct passage *passage)
{
    const struct proxy_options *options = &passage->proxy->options;
    const struct params *ours = options->upstream_headers;
    char line[1024];
    for (size_t i = 0; ours && i < ours->count; i++)
        header_add(&passage->headers, ours->items[i].key, ours->items[i].value);
    if (!options->upstream_key || find_key_header(passage->proxy, passage->exchange))
        return;
    if (str_format(line, sizeof line, "Bearer %s", options->upstream_key))
        header_add(&passage->headers, "Authorization", line);
}

/* ---- the way back ---- */

static void pass_to_owner(struct passage *passage)
{
    struct proxy *proxy = passage->proxy;
    struct proxy_request *request = passage->request;
    if (!request)
        return;
    request->reply.done = clock_now();
    observer_release(&passage->observer);
    passage->request = NULL;
    status_end(proxy->status, request);
    if (proxy->options.ended)
        proxy->options.ended(proxy->options.context, request);
    else
        proxy_request_free(request);
}

static void send_kept(struct passage *passage, const struct energy *energy)
{
    struct http_exchange *exchange = passage->exchange;
    bool known = energy && is_known(energy->joules);
    char figure[64];
    passage->energy_until = 0;
    if (passage->keeps) {
        if (known && str_format(figure, sizeof figure, "%.6g", energy->joules))
            http_exchange_add_header(exchange, "x-ipw-energy-joules", figure);
        http_exchange_begin(exchange, passage->status, passage->kept.length);
        http_exchange_send(exchange, text_get(&passage->kept), passage->kept.length);
        text_release(&passage->kept);
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

static void on_head(void *context, int status, const struct text *headers)
{
    struct passage *passage = context;
    const char *connection = header_find(headers, "Connection");
    const char *type = header_find(headers, "Content-Type");
    const char *given = header_find(headers, "Content-Length");
    const char *encoding = header_find(headers, "Content-Encoding");
    uint64_t length;
    if (passage->request)
        observer_begin(&passage->observer, status, encoding);
    passage->is_event_stream = is_type(type, "text/event-stream");
    for (size_t at = 0; at < headers->length; at += strlen(headers->bytes + at) + 1) {
        char *line = headers->bytes + at, *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = '\0';
        if (!header_is_hop_by_hop(line, connection))
            http_exchange_add_header(passage->exchange, line, colon + 1 + strspn(colon + 1, " \t"));
        *colon = ':';
    }
    bool tells_energy = passage->proxy->options.energy_header && passage->request;
    passage->status = status;
    passage->filters = passage->filters && passage->is_event_stream && !encoding;
    passage->keeps =
        tells_energy && !passage->is_event_stream && !is_type(type, "application/x-ndjson");
    if (passage->keeps)
        return;
    if (!given || header_find(headers, "Transfer-Encoding") || parse_u64(given, &length) ||
        passage->filters || (tells_energy && passage->is_event_stream))
        length = HTTP_LENGTH_UNKNOWN;
    passage->has_begun = true;
    http_exchange_begin(passage->exchange, status, length);
}

static bool on_take(void *context, const char *bytes, size_t length, nanos t)
{
    struct passage *passage = context;
    if (http_exchange_unsent(passage->exchange) > UNSENT_MAX) {
        passage->is_paused = true;
        return false;
    }
    if (passage->keeps) {
        text_add_bytes(&passage->kept, bytes, length);
    } else if (passage->filters) {
        struct text out = {0};
        usage_filter_feed(&passage->filter, bytes, length, &out);
        if (out.length)
            http_exchange_send(passage->exchange, text_get(&out), out.length);
        text_release(&out);
    } else {
        http_exchange_send(passage->exchange, bytes, length);
    }
    if (passage->request)
        observer_take(&passage->observer, bytes, length, t);
    return true;
}

/* No answer came: say so in the way of the protocol. */
static void reply_failure(struct passage *passage, enum err err, const char *why)
{
    char message[400];
    str_format(message, sizeof message, "ipw proxy: cannot reach %s: %s",
               passage->proxy->upstream.server, why);
    reply_error(passage->exchange, err == ERR_TIMEOUT ? 504 : 502, "upstream_error", message);
}

static void on_done(void *context, enum err err, const char *why)
{
    struct passage *passage = context;
    bool tells_energy = passage->proxy->options.energy_header && passage->request && !err;
    passage->call = NULL;
    if (passage->request) {
        observer_end(&passage->observer, err, why);
        pass_to_owner(passage);
    }
    if (passage->filters) {
        struct text out = {0};
        usage_filter_end(&passage->filter, &out);
        if (out.length)
            http_exchange_send(passage->exchange, text_get(&out), out.length);
        text_release(&out);
    }
    if (!passage->has_begun && !passage->keeps)
        reply_failure(passage, err, why);
    else if (tells_energy && (passage->keeps || passage->is_event_stream))
        passage->energy_until = clock_now() + ENERGY_LIMIT;
    else if (passage->keeps && !err)
        send_kept(passage, NULL);
    else
        http_exchange_end(passage->exchange, !err);
}

/* ---- the way there ---- */

static void build_url(struct proxy *proxy, const char *target, struct text *out)
{
    size_t length = strlen(proxy->prefix);
    bool has_prefix = length && str_starts(target, proxy->prefix) &&
                      (!target[length] || strchr("/?", target[length]));
    text_add(out, proxy->origin);
    text_add(out, has_prefix ? "" : proxy->prefix);
    text_add(out, target);
}

static void begin_inference(struct passage *passage, enum proxy_kind kind, const char *path)
{
    struct proxy *proxy = passage->proxy;
    struct proxy_request *request = passage->request = calloc(1, sizeof *request);
    size_t length;
    const char *body = http_exchange_body(passage->exchange, &length);
    if (!request)
        return;
    request->id = passage->id = proxy->next_id++;
    request->kind = kind;
    observe_request(request, path, body, length);
    observe_label(request->query, sizeof request->query,
                  http_exchange_header(passage->exchange, "x-ipw-query"));
    observe_label(request->turn, sizeof request->turn,
                  http_exchange_header(passage->exchange, "x-ipw-turn"));
    label_key(proxy, passage->exchange, request->key, sizeof request->key);
    if (proxy->options.keep_content)
        text_add_bytes(&request->body, body, length);
    observer_init(&passage->observer, request);
    status_begin(proxy->status, request);
    if (proxy->options.begins)
        proxy->options.begins(proxy->options.context, request->id, request->reply.sent);
}

static void start_call(struct passage *passage)
{
    struct proxy *proxy = passage->proxy;
    struct error why = {0};
    const char *method = http_exchange_method(passage->exchange);
    size_t length;
    const char *body = http_exchange_body(passage->exchange, &length);
    if (proxy->options.inject_usage && passage->request && passage->request->kind == PROXY_OPENAI &&
        !strstr(passage->request->path, "/responses"))
        passage->filters = usage_inject(body, length, &passage->body);
    if (passage->filters) {
        body = text_get(&passage->body);
        length = passage->body.length;
    }
    bool has_body =
        length || !strcmp(method, "POST") || !strcmp(method, "PUT") || !strcmp(method, "PATCH");
    build_url(proxy, http_exchange_target(passage->exchange), &passage->url);
    passage->connection = http_exchange_header(passage->exchange, "Connection");
    http_exchange_headers(passage->exchange, take_header, passage);
    add_key(passage);
    const struct relay_request request = {
        .method = method,
        .url = text_get(&passage->url),
        .headers = &passage->headers,
        .body = has_body ? body : NULL,
        .body_length = length,
        .connect_limit = CONNECT_LIMIT,
        .is_local = url_is_local(&proxy->upstream),
        .head = on_head,
        .take = on_take,
        .done = on_done,
        .context = passage,
    };
    enum err err = http_relay_start(proxy->relay, &request, &passage->call, &why);
    if (err)
        on_done(passage, err, why.text);
}

static struct passage *new_passage(struct proxy *proxy, struct http_exchange *exchange)
{
    struct passage *passage = calloc(1, sizeof *passage);
    if (!passage)
        return NULL;
    passage->proxy = proxy;
    passage->exchange = exchange;
    passage->next = proxy->passages;
    if (passage->next)
        passage->next->previous = passage;
    proxy->passages = passage;
    atomic_fetch_add(&proxy->in_flight, 1);
    http_exchange_set_data(exchange, passage);
    return passage;
}

static void check_header(void *context, const char *name, const char *value)
{
    bool *is_valid = context;
    *is_valid = *is_valid && header_is_name(name) && header_is_value(value);
}

/* Connections to the upstream server are shared by all clients: what it might read as two requests must not pass. */
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

static void on_request(void *context, struct http_exchange *exchange)
{
    struct proxy *proxy = context;
    const char *target = http_exchange_target(exchange);
    char path[512];
    bool fits = str_format(path, sizeof path, "%.*s", (int)strcspn(target, "?"), target);
    if (refuse_malformed(exchange, fits && header_is_target(target)))
        return;
    if (!may_ask(proxy, exchange)) {
        reply_error(exchange, 401, "authentication_error",
                    "ipw proxy needs its token: as x-ipw-token, or as the API key");
        return;
    }
    if (str_starts(path, "/ipw/")) {
        serve_own(proxy, exchange, path);
        return;
    }
    if (strcmp(http_exchange_method(exchange), "TRACE") == 0) { /* would show the upstream's key */
        reply_error(exchange, 405, "invalid_request_error", "TRACE is not allowed");
        return;
    }
    if (atomic_load(&proxy->refuse)) {
        reply_error(exchange, 503, "unavailable", "ipw proxy is shutting down");
        return;
    }
    struct passage *passage = new_passage(proxy, exchange);
    if (!passage) {
        reply_error(exchange, 500, "server_error", "out of memory");
        return;
    }
    enum proxy_kind kind = observe_kind(http_exchange_method(exchange), path);
    if (kind == PROXY_OTHER)
        status_count_other(proxy->status);
    else
        begin_inference(passage, kind, path);
    start_call(passage);
}

static void on_drained(void *context, struct http_exchange *exchange)
{
    struct passage *passage = http_exchange_data(exchange);
    (void)context;
    if (!passage || !passage->is_paused || !passage->call)
        return;
    passage->is_paused = false;
    relay_call_resume(passage->call);
}

static void on_ended(void *context, struct http_exchange *exchange, bool complete)
{
    struct proxy *proxy = context;
    struct passage *passage = http_exchange_data(exchange);
    (void)complete;
    if (!passage)
        return;
    if (passage->call)
        relay_call_cancel(passage->call);
    if (passage->request) {
        /* Clients close their connection at "[DONE]", before the end of the body has come. */
        bool is_whole =
            observer_is_whole(&passage->observer) && !http_exchange_unsent(passage->exchange);
        passage->request->canceled = !is_whole;
        observer_end(&passage->observer, is_whole ? ERR_OK : ERR_INTERRUPTED,
                     "the client disconnected");
        pass_to_owner(passage);
    }
    if (passage->next)
        passage->next->previous = passage->previous;
    if (passage->previous)
        passage->previous->next = passage->next;
    else
        proxy->passages = passage->next;
    text_release(&passage->url);
    text_release(&passage->headers);
    text_release(&passage->body);
    text_release(&passage->kept);
    text_release(&passage->filter.held);
    free(passage);
    atomic_fetch_sub(&proxy->in_flight, 1);
}

/* ---- energies ---- */

void proxy_count_unrecorded(struct proxy *proxy)
{
    atomic_fetch_add(&proxy->unrecorded, 1);
}

void proxy_settle(struct proxy *proxy, uint64_t id, const struct energy *energy)
{
    pthread_mutex_lock(&proxy->lock);
    struct settled *items =
        grow(proxy->settled, &proxy->settled_capacity, proxy->settled_count, sizeof *items);
    if (items) {
        proxy->settled = items;
        items[proxy->settled_count++] = (struct settled){id, *energy};
    }
    bool is_first = proxy->settled_count == 1;
    pthread_mutex_unlock(&proxy->lock);
    /* Only an answer waits for it; whoever asks for the figures finds them, because that ends the loop's wait too. */
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
        status_settle(proxy->status, items[i].id, &items[i].energy);
        for (struct passage *p = proxy->options.energy_header ? proxy->passages : NULL; p;
             p = p->next)
            if (p->id == items[i].id && p->energy_until)
                send_kept(p, &items[i].energy);
    }
    free(items);
}

/* Answers whose energy does not come: other requests are still in flight, with which it is shared. */
static nanos release_late(struct proxy *proxy)
{
    nanos now = clock_now(), next = INT64_MAX;
    for (struct passage *p = proxy->options.energy_header ? proxy->passages : NULL; p;
         p = p->next) {
        if (p->energy_until && p->energy_until <= now)
            send_kept(p, NULL);
        else if (p->energy_until && p->energy_until < next)
            next = p->energy_until;
    }
    return next;
}

/* ---- the thread ---- */

static void *proxy_main(void *argument)
{
    struct proxy *proxy = argument;
    thread_name("ipw-proxy", -1);
    while (!atomic_load(&proxy->stop)) {
        if (atomic_load(&proxy->refuse))
            http_server_refuse(proxy->server);
        take_settled(proxy);
        nanos late = release_late(proxy);
        http_relay_turn(proxy->relay);
        http_server_turn(proxy->server);
        nanos relay = http_relay_due(proxy->relay), server = http_server_due(proxy->server);
        nanos until = relay < server ? relay : server;
        event_loop_turn(proxy->loop, late < until ? late : until);
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
    if (!str_format(proxy->origin, sizeof proxy->origin, "%.*s", (int)before, given) ||
        !str_format(proxy->prefix, sizeof proxy->prefix, "%.*s", (int)length, path ? path : ""))
        return err_set(why, ERR_USAGE, "the URL of the upstream server is too long");
    return ERR_OK;
}

static void release(struct proxy *proxy)
{
    http_server_close(proxy->server);
    http_relay_free(proxy->relay);
    event_loop_free(proxy->loop);
    status_free(proxy->status);
    free(proxy->settled);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

static enum err open_parts(struct proxy *proxy, struct error *why)
{
    const struct proxy_options *options = &proxy->options;
    const struct http_server_options server = {
        .address = options->address,
        .port = options->port,
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
    if (!err)
        err = http_server_open(proxy->loop, &server, &proxy->server, why);
    proxy->status = status_new();
    return err || proxy->status ? err : err_no_memory(why);
}

enum err proxy_start(const struct proxy_options *options, struct proxy **out, struct error *why)
{
    struct proxy *proxy = *out = calloc(1, sizeof *proxy);
    if (!proxy)
        return err_no_memory(why);
    proxy->options = *options;
    if (!proxy->options.address)
        proxy->options.address = "127.0.0.1";
    proxy->next_id = options->first_id;
    pthread_mutex_init(&proxy->lock, NULL);
    proc_raise_file_limit(4 * CONNECTIONS_MAX); /* each stream has two sockets */
    enum err err = open_parts(proxy, why);
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
    struct proxy *trial;
    enum err err = proxy_start(options, &trial, why);
    if (err)
        return err;
    str_copy(shown, size, trial->upstream.shown);
    proxy_stop(trial);
    return ERR_OK;
}

unsigned proxy_port(const struct proxy *proxy)
{
    return http_server_port(proxy->server);
}

bool proxy_drain(struct proxy *proxy, nanos patience)
{
    nanos until = clock_now() + patience;
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
    release(proxy); /* the server ends every exchange, and that its request */
}
