/* libmicrohttpd with epoll and without its own threads: its epoll descriptor is watched by the loop.
 *
 * A connection whose response is not ready is suspended, and resumed for every part of it.  libmicrohttpd does not
 * poll a suspended connection: a watch of our own on its socket detects that the client disconnected.  Its timeout
 * is an inactivity timeout, which a client that sends a byte now and then never reaches: deadlines for complete
 * requests are our own too.  So is the listener: libmicrohttpd's own stops after a shortage of descriptors until it is
 * run again, and refuses new clients while others fill it up.  A new client instead replaces the oldest connection that
 * has nothing to answer, those of clients that are not known first. */
#define _GNU_SOURCE
#include "port/http_server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <microhttpd.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/dl.h"
#include "port/event_loop.h"

enum {
    HEADER_MAX = 16 * 1024,     /* bytes of request line and headers */
    BLOCK = 4096,               /* bytes that libmicrohttpd requests at once */
    SLOWEST_UPLOAD = 16 * 1024, /* bytes/s */
    ACCEPT_MAX = 64,            /* connections accepted at once */
    EVICT_MAX = 16,             /* silent connections closed at once */
    BODIES = 8,                 /* bodies of the largest size that are held at once ... */
    BODIES_MIN = 1 << 20,       /* ... and at least these bytes */
    DISCARD_MAX = 4, /* bodies that are too large are read up to this multiple of the limit */
    KEEPALIVE_S = 30,
    KEEPALIVE_PROBES = 3,
    KEEPALIVE_EVERY_S = 10,
};
#define SWEEP_PERIOD  (250 * NS_PER_MS)
#define REQUEST_LIMIT (10 * NS_PER_S)
#define IDLE_LIMIT    (120 * NS_PER_S)
#define WRITE_LIMIT   (30 * NS_PER_S)
#define BODY_LIMIT    (300 * NS_PER_S)

/* ---- the library ---- */

#define MHD_FUNCTIONS(F)                                                                           \
    F(start_daemon, MHD_start_daemon)                                                              \
    F(stop_daemon, MHD_stop_daemon)                                                                \
    F(add_connection, MHD_add_connection)                                                          \
    F(get_version, MHD_get_version)                                                                \
    F(get_daemon_info, MHD_get_daemon_info)                                                        \
    F(run, MHD_run)                                                                                \
    F(get_timeout, MHD_get_timeout)                                                                \
    F(get_connection_info, MHD_get_connection_info)                                                \
    F(suspend_connection, MHD_suspend_connection)                                                  \
    F(resume_connection, MHD_resume_connection)                                                    \
    F(lookup, MHD_lookup_connection_value)                                                         \
    F(get_values, MHD_get_connection_values)                                                       \
    F(create_response, MHD_create_response_from_callback)                                          \
    F(response_of_buffer, MHD_create_response_from_buffer)                                         \
    F(add_header, MHD_add_response_header)                                                         \
    F(queue_response, MHD_queue_response)                                                          \
    F(destroy_response, MHD_destroy_response)                                                      \
    F(has_feature, MHD_is_feature_supported)

static struct {
#define MEMBER(name, function) __typeof__(function) *name;
    MHD_FUNCTIONS(MEMBER)
#undef MEMBER
} mhd;

enum err http_server_available(struct error *why)
{
    static const char *const NAMES[] = {"libmicrohttpd.so.12", NULL};
    static const struct dl_symbol SYMBOLS[] = {
#define SYMBOL(name, function) {#function, &mhd.name, true},
        MHD_FUNCTIONS(SYMBOL)
#undef SYMBOL
    };
    static struct dl_library library = {
        .names = NAMES,
        .symbols = SYMBOLS,
        .count = sizeof SYMBOLS / sizeof *SYMBOLS,
        .absent = "libmicrohttpd is not installed: apt install libmicrohttpd12",
        .lock = PTHREAD_MUTEX_INITIALIZER};
    return dl_library_open(&library, why);
}

/* ---- state ---- */

struct connection {
    struct http_server *server;
    struct event_watch socket;
    struct http_exchange *exchange;
    bool gone;      /* the client has disconnected */
    bool is_idle;   /* nothing was received since the last response */
    bool has_more;  /* data was received after the start of the request */
    bool is_known;  /* a request of it was admitted: http_exchange_trust */
    bool is_closed; /* by us; libmicrohttpd is about to see it */
    nanos deadline; /* for the next complete request; 0: none, a request is being answered */
    struct connection *next, *previous;
};

struct http_server {
    struct http_server_options options;
    struct event_loop *loop;
    struct MHD_Daemon *daemon;
    struct event_watch watch; /* of the daemon's epoll descriptor */
    struct listener listener;
    bool is_ready;                           /* the daemon has something to do */
    bool is_lenient;                         /* the library accepts malformed heads */
    nanos next_sweep;                        /* when deadlines are checked next */
    struct connection *connections, *oldest; /* newest first, and the last of them */
    unsigned count, closed;                  /* connections; those of them that are closed */
    size_t buffered;                         /* bytes of all bodies */
};

enum answer_state { ANSWER_NONE, ANSWER_BEGUN, ANSWER_WHOLE, ANSWER_CUT };

struct http_exchange {
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *connection;
    char *target, *method;
    struct text body;
    size_t received;     /* bytes of the body, including discarded ones */
    nanos body_deadline; /* for the complete body, however fast it is sent */
    void *data;
    struct text headers; /* of the response, "Name\0value\0"... */
    struct text out;     /* not sent yet, from `sent` on */
    size_t sent;
    int status;
    uint64_t length; /* of the answer's body, as begun */
    enum answer_state answer;
    bool is_dispatched, is_suspended, is_queued;
    bool is_shed; /* its body was discarded: the bodies of all requests together are too large */
};

static void wake_connection(struct http_exchange *exchange)
{
    if (!exchange->is_suspended)
        return;
    exchange->is_suspended = false;
    mhd.resume_connection(exchange->mhd);
    exchange->server->is_ready = true;
}

static void sleep_connection(struct http_exchange *exchange)
{
    exchange->is_suspended = true;
    mhd.suspend_connection(exchange->mhd);
}

/* ---- connections ---- */

/* The first byte of a request arrived: start its deadline. */
static void expect_request(struct connection *connection)
{
    connection->is_idle = false;
    connection->deadline = clock_now() + connection->server->options.request_limit;
}

static void on_socket(void *context, unsigned events)
{
    struct connection *connection = context;
    if (connection->is_idle)
        expect_request(connection);
    connection->has_more = connection->has_more || connection->exchange;
    if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
        return;
    connection->gone = true;
    event_loop_unwatch(connection->server->loop, &connection->socket);
    if (connection->exchange && connection->exchange->is_dispatched)
        wake_connection(connection->exchange);
}

/* Keep-alive probes detect within a minute that a peer vanished, even while nothing is sent. */
static void tune_socket(int fd, nanos write_limit)
{
    const int on = 1, idle = KEEPALIVE_S, every = KEEPALIVE_EVERY_S, probes = KEEPALIVE_PROBES;
    const unsigned timeout_ms = (unsigned)(write_limit / NS_PER_MS);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void open_connection(struct http_server *server, struct MHD_Connection *mhd_connection,
                            void **slot)
{
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(mhd_connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *connection = info ? calloc(1, sizeof *connection) : NULL;
    *slot = connection;
    if (!connection)
        return; /* its requests are rejected */
    tune_socket(info->connect_fd, server->options.write_limit);
    connection->server = server;
    connection->deadline = clock_now() + server->options.request_limit;
    connection->socket =
        (struct event_watch){.fd = info->connect_fd, .ready = on_socket, .context = connection};
    (void)!event_loop_watch(server->loop, &connection->socket, EPOLLIN | EPOLLRDHUP | EPOLLET);
    connection->next = server->connections;
    if (connection->next)
        connection->next->previous = connection;
    else
        server->oldest = connection;
    server->connections = connection;
    server->count++;
}

static void close_connection(struct http_server *server, void **slot)
{
    struct connection *connection = *slot;
    if (!connection)
        return;
    *slot = NULL;
    event_loop_unwatch(server->loop, &connection->socket);
    server->count--;
    server->closed -= connection->is_closed;
    if (connection->next)
        connection->next->previous = connection->previous;
    else
        server->oldest = connection->previous;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    free(connection);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        open_connection(context, connection, slot);
    else
        close_connection(context, slot);
}

/* libmicrohttpd sees the end of the connection when it runs next. */
static void shut(struct connection *connection)
{
    shutdown(connection->socket.fd, SHUT_RDWR);
    connection->deadline = 0;
    connection->server->closed += !connection->is_closed;
    connection->is_closed = true;
    connection->server->is_ready = true;
}

/* Which connections a new one replaces, the first ones first. */
enum rank { RANK_SILENT, RANK_UNFINISHED, RANK_IDLE, RANK_KEPT };

static enum rank rank_of(const struct connection *connection)
{
    if (!connection->deadline || connection->is_closed) /* a request is being answered */
        return RANK_KEPT;
    if (connection->is_known)
        return connection->exchange ? RANK_KEPT : RANK_IDLE;
    return connection->exchange ? RANK_UNFINISHED : RANK_SILENT;
}

/* Closes the oldest connection of the first rank that there is; several if they are silent, so that a flood of those
 * costs few searches.  False: every connection is in use. */
static bool make_room(struct http_server *server)
{
    unsigned wanted = 1 + server->options.connections_max / 8;
    for (enum rank rank = RANK_SILENT; rank < RANK_KEPT; rank++) {
        unsigned count = 0, max = rank > RANK_SILENT ? 1 : wanted < EVICT_MAX ? wanted : EVICT_MAX;
        for (struct connection *c = server->oldest; c && count < max; c = c->previous)
            if (rank_of(c) == rank) {
                shut(c);
                count++;
            }
        if (count)
            return true;
    }
    return false;
}

static void accept_connections(struct http_server *server, nanos now)
{
    struct sockaddr_storage peer;
    socklen_t size;
    for (unsigned i = 0; i < ACCEPT_MAX; i++) {
        if (server->count - server->closed >= server->options.connections_max &&
            !make_room(server)) {
            listener_pause(&server->listener, now);
            return;
        }
        int fd = listener_accept(&server->listener, now, &peer, &size);
        if (fd < 0) {
            if (listener_due(&server->listener) < INT64_MAX) /* no descriptor is free */
                make_room(server);
            return;
        }
        if (listener_is_scarce(fd))
            make_room(server);
        (void)mhd.add_connection(server->daemon, fd, (struct sockaddr *)&peer, size);
        server->is_ready = true;
    }
}

/* Closes connections with incomplete requests past their deadline, and idle ones. */
static void sweep(struct http_server *server, nanos now)
{
    server->next_sweep = now + SWEEP_PERIOD;
    server->is_ready = true; /* libmicrohttpd's own timeouts */
    for (struct connection *c = server->connections; c; c = c->next)
        if (c->deadline && c->deadline < now)
            shut(c);
}

/* ---- requests ---- */

/* The target as the client sent it: libmicrohttpd passes it decoded.  The return value becomes the context of the
 * request. */
static void *on_target(void *context, const char *target, struct MHD_Connection *mhd_connection)
{
    struct http_server *server = context;
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(mhd_connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange || !info || !info->socket_context || !(exchange->target = strdup(target))) {
        free(exchange);
        return NULL;
    }
    exchange->server = server;
    exchange->mhd = mhd_connection;
    exchange->connection = info->socket_context;
    exchange->connection->exchange = exchange;
    if (exchange->connection
            ->is_idle) /* its bytes arrived together with those of the last request */
        expect_request(exchange->connection);
    return exchange;
}

static ssize_t on_read(void *context, uint64_t at, char *to, size_t max);

/* A complete response is sent together with its head; the exchange keeps its bytes. */
static struct MHD_Response *make_response(struct http_exchange *exchange)
{
    size_t length = exchange->out.length - exchange->sent;
    if (exchange->answer == ANSWER_WHOLE && exchange->length == length && length)
        return mhd.response_of_buffer(length, exchange->out.bytes + exchange->sent,
                                      MHD_RESPMEM_PERSISTENT);
    return mhd.create_response(exchange->length == HTTP_LENGTH_UNKNOWN ? MHD_SIZE_UNKNOWN
                                                                       : exchange->length,
                               BLOCK, on_read, exchange, NULL);
}

static enum MHD_Result queue_answer(struct http_exchange *exchange)
{
    const char *at = exchange->headers.bytes, *end = at + exchange->headers.length;
    struct MHD_Response *response = make_response(exchange);
    if (!response)
        return MHD_NO;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        /* libmicrohttpd rejects an empty value; white space around a value is not part of it. */
        (void)mhd.add_header(response, at, *value ? value : " ");
        at = value + strlen(value) + 1;
    }
    exchange->is_queued = true;
    enum MHD_Result queued =
        mhd.queue_response(exchange->mhd, (unsigned)exchange->status, response);
    mhd.destroy_response(response);
    return queued;
}

/* What the head of a request says, and whether its strings are all of it. */
struct head {
    unsigned lengths, codings, hosts; /* headers of that name */
    bool is_chunked, has_gap;
    const char *end; /* of the last string, where its line ends */
};

static enum MHD_Result take_header(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct head *head = context;
    (void)kind;
    /* A line ends with LF or CRLF. */
    head->has_gap |= name <= head->end || name > head->end + 2 || !*name;
    head->end = value ? value + strlen(value) : name + strlen(name);
    head->lengths += str_equal_nocase(name, "Content-Length");
    head->hosts += str_equal_nocase(name, "Host");
    if (!str_equal_nocase(name, "Transfer-Encoding"))
        return MHD_YES;
    head->codings++;
    head->is_chunked = value && str_equal_nocase(value, "chunked");
    return MHD_YES;
}

/* libmicrohttpd before 1.0 truncates a string at a NUL, ends the head at a header without a name, and joins lines of
 * a header wrongly.  Its strings are those of the received bytes, in place: what they leave out shows. */
static bool is_malformed(const struct http_exchange *exchange, const char *method, const char *url,
                         const char *version, struct head *head)
{
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(exchange->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t size = info ? info->header_size : 0;
    head->end = version + strlen(version);
    mhd.get_values(exchange->mhd, MHD_HEADER_KIND, take_header, head);
    /* Its strings could be copies in a version that we do not know. */
    bool is_in_place = method < url && url < version && version < method + HEADER_MAX + BLOCK;
    if (!exchange->server->is_lenient || !is_in_place)
        return false;
    bool is_line =
        url == method + strlen(method) + 1 && version == url + strlen(exchange->target) + 1;
    /* Some versions report no size. */
    bool is_end = !size || size > HEADER_MAX + BLOCK ||
                  (method + size >= head->end + 2 && method + size <= head->end + 4);
    return head->has_gap || !is_line || !is_end;
}

/* A head that others may understand differently, or a body whose length is ambiguous or invalid (RFC 9112, 6), is
 * rejected without reading on. */
static bool refuse_head(struct http_exchange *exchange, const char *method, const char *url,
                        const char *version)
{
    struct head head = {0};
    int status = 400;
    const char *why = NULL;
    char body[160];
    if (is_malformed(exchange, method, url, version, &head))
        why = "malformed header";
    else if (head.hosts > 1)
        why = "the Host header is given more than once";
    else if (head.lengths + head.codings > 1)
        why = "the length of the body is given more than once";
    else if (head.codings && !head.is_chunked && (status = 501))
        why = "the only supported transfer coding is chunked";
    if (!why)
        return false;
    str_format(body, sizeof body,
               "{\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\"}}", why);
    http_exchange_add_header(exchange, "Connection", "close");
    http_exchange_reply(exchange, status, "application/json", body, strlen(body));
    return true;
}

/* The request is complete. */
static void dispatch(struct http_exchange *exchange)
{
    static const char TOO_LARGE[] = "{\"error\":{\"message\":\"the request body is too "
                                    "large\",\"type\":\"invalid_request_error\"}}";
    static const char SHED[] = "{\"error\":{\"message\":\"too many large requests at once: try "
                               "again later\",\"type\":\"unavailable\"}}";
    exchange->connection->deadline = 0;
    if (exchange->received > exchange->server->options.body_max) {
        http_exchange_reply(exchange, 413, "application/json", TOO_LARGE, strlen(TOO_LARGE));
        return;
    }
    if (exchange->is_shed) {
        http_exchange_add_header(exchange, "Retry-After", "1");
        http_exchange_reply(exchange, 503, "application/json", SHED, strlen(SHED));
        return;
    }
    exchange->is_dispatched = true;
    exchange->server->options.request(exchange->server->options.context, exchange);
}

static void discard_body(struct http_exchange *exchange)
{
    exchange->server->buffered -= exchange->body.length;
    text_release(&exchange->body);
}

/* What is received extends the deadline, but only the client that continues to send has more than the limit for one
 * pause. */
static void extend_deadline(struct http_exchange *exchange, size_t size)
{
    nanos *deadline = &exchange->connection->deadline;
    nanos pause = clock_now() + exchange->server->options.request_limit;
    *deadline += (nanos)size * NS_PER_S / SLOWEST_UPLOAD;
    *deadline = *deadline < pause ? *deadline : pause;
    *deadline = *deadline < exchange->body_deadline ? *deadline : exchange->body_deadline;
}

static enum MHD_Result take_body(struct http_exchange *exchange, const char *bytes, size_t *size)
{
    struct http_server *server = exchange->server;
    const struct http_server_options *options = &server->options;
    exchange->received += *size;
    extend_deadline(exchange, *size);
    exchange->is_shed |= server->buffered + *size > options->bodies_max;
    if (exchange->is_shed || exchange->received > options->body_max) {
        discard_body(exchange);
    } else {
        size_t before = exchange->body.length;
        text_add_bytes(&exchange->body, bytes, *size);
        server->buffered += exchange->body.length - before;
    }
    *size = 0;
    return exchange->body.failed || exchange->received / DISCARD_MAX > options->body_max ? MHD_NO
                                                                                         : MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd_connection,
                                  const char *url, const char *method, const char *version,
                                  const char *bytes, size_t *size, void **slot)
{
    struct http_exchange *exchange = *slot;
    (void)context, (void)mhd_connection;
    if (!exchange)
        return MHD_NO;
    if (exchange->is_queued)
        return MHD_YES;
    if (exchange->is_dispatched && exchange->connection->gone)
        return MHD_NO;
    if (exchange->answer != ANSWER_NONE)
        return queue_answer(exchange);
    if (!exchange->method) { /* the headers are complete */
        const struct http_server_options *options = &exchange->server->options;
        exchange->method = strdup(method);
        exchange->connection->deadline = clock_now() + options->request_limit;
        exchange->body_deadline = clock_now() + options->body_limit;
        if (exchange->method && refuse_head(exchange, method, url, version))
            return queue_answer(exchange);
        return exchange->method ? MHD_YES : MHD_NO;
    }
    if (*size)
        return take_body(exchange, bytes, size);
    if (!exchange->is_dispatched)
        dispatch(exchange);
    if (exchange->answer != ANSWER_NONE)
        return queue_answer(exchange);
    sleep_connection(exchange);
    return MHD_YES;
}

static void release(struct http_exchange *exchange)
{
    struct connection *connection = exchange->connection;
    int waiting;
    connection->exchange = NULL;
    connection->is_idle = true;
    connection->deadline = clock_now() + exchange->server->options.idle_limit;
    /* The next request began before this one was answered: its first byte was reported then, and is not reported
     * again.  Or what was reported was the end of this request. */
    if (connection->has_more && ioctl(connection->socket.fd, FIONREAD, &waiting) == 0 &&
        waiting > 0)
        expect_request(connection);
    connection->has_more = false;
    discard_body(exchange);
    text_release(&exchange->headers);
    text_release(&exchange->out);
    free(exchange->target);
    free(exchange->method);
    free(exchange);
}

static void on_completed(void *context, struct MHD_Connection *mhd_connection, void **slot,
                         enum MHD_RequestTerminationCode how)
{
    struct http_server *server = context;
    struct http_exchange *exchange = *slot;
    (void)mhd_connection;
    *slot = NULL;
    if (!exchange)
        return;
    if (exchange->is_dispatched && server->options.ended)
        server->options.ended(server->options.context, exchange,
                              how == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    release(exchange);
}

/* ---- responses ---- */

static ssize_t on_read(void *context, uint64_t at, char *to, size_t max)
{
    struct http_exchange *exchange = context;
    size_t left = exchange->out.length - exchange->sent;
    (void)at;
    if (exchange->connection->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (left) {
        size_t length = left < max ? left : max;
        memcpy(to, exchange->out.bytes + exchange->sent, length);
        exchange->sent += length;
        if (length == left) {
            text_clear(&exchange->out);
            exchange->sent = 0;
            if (exchange->answer == ANSWER_BEGUN && exchange->is_dispatched &&
                exchange->server->options.drained)
                exchange->server->options.drained(exchange->server->options.context, exchange);
        }
        return (ssize_t)length;
    }
    if (exchange->answer == ANSWER_WHOLE)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (exchange->answer == ANSWER_CUT)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    sleep_connection(exchange);
    return 0;
}

const char *http_exchange_method(const struct http_exchange *exchange)
{
    return exchange->method;
}

const char *http_exchange_target(const struct http_exchange *exchange)
{
    return exchange->target;
}

const char *http_exchange_header(struct http_exchange *exchange, const char *name)
{
    return mhd.lookup(exchange->mhd, MHD_HEADER_KIND, name);
}

struct header_visitor {
    void (*take)(void *context, const char *name, const char *value);
    void *context;
};

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    const struct header_visitor *visitor = context;
    (void)kind;
    visitor->take(visitor->context, name, value ? value : "");
    return MHD_YES;
}

void http_exchange_headers(struct http_exchange *exchange,
                           void (*take)(void *context, const char *name, const char *value),
                           void *context)
{
    struct header_visitor visitor = {take, context};
    mhd.get_values(exchange->mhd, MHD_HEADER_KIND, on_header, &visitor);
}

void http_exchange_peer(const struct http_exchange *exchange, char to[HTTP_PEER_MAX])
{
    const union MHD_ConnectionInfo *info =
        mhd.get_connection_info(exchange->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    socklen_t size = address && address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                               : sizeof(struct sockaddr_in);
    to[0] = '\0';
    if (address && getnameinfo(address, size, to, HTTP_PEER_MAX, NULL, 0, NI_NUMERICHOST))
        to[0] = '\0';
}

void http_exchange_trust(struct http_exchange *exchange)
{
    exchange->connection->is_known = true;
}

bool http_exchange_is_trusted(const struct http_exchange *exchange)
{
    return exchange->connection->is_known;
}

const char *http_exchange_body(const struct http_exchange *exchange, size_t *length)
{
    *length = exchange->body.length;
    return text_get(&exchange->body);
}

void http_exchange_set_data(struct http_exchange *exchange, void *data)
{
    exchange->data = data;
}

void *http_exchange_data(const struct http_exchange *exchange)
{
    return exchange->data;
}

void http_exchange_add_header(struct http_exchange *exchange, const char *name, const char *value)
{
    text_add_bytes(&exchange->headers, name, strlen(name) + 1);
    text_add_bytes(&exchange->headers, value, strlen(value) + 1);
}

void http_exchange_begin(struct http_exchange *exchange, int status, uint64_t length)
{
    exchange->status = status;
    exchange->length = length;
    exchange->answer = ANSWER_BEGUN;
    wake_connection(exchange);
}

void http_exchange_send(struct http_exchange *exchange, const char *bytes, size_t length)
{
    if (exchange->sent > exchange->out.length / 2) { /* moves unsent bytes to the front */
        memmove(exchange->out.bytes, exchange->out.bytes + exchange->sent,
                exchange->out.length - exchange->sent);
        exchange->out.length -= exchange->sent;
        exchange->sent = 0;
    }
    text_add_bytes(&exchange->out, bytes, length);
    if (exchange->out.failed)
        exchange->connection->gone = true;
    wake_connection(exchange);
}

void http_exchange_end(struct http_exchange *exchange, bool whole)
{
    if (!whole && exchange->answer == ANSWER_NONE)
        exchange->connection->gone = true; /* no response was started */
    exchange->answer = whole ? ANSWER_WHOLE : ANSWER_CUT;
    wake_connection(exchange);
}

size_t http_exchange_unsent(const struct http_exchange *exchange)
{
    return exchange->out.length - exchange->sent;
}

void http_exchange_reply(struct http_exchange *exchange, int status, const char *content_type,
                         const char *body, size_t length)
{
    http_exchange_add_header(exchange, "Content-Type", content_type);
    http_exchange_begin(exchange, status, length);
    if (length)
        http_exchange_send(exchange, body, length);
    http_exchange_end(exchange, true);
}

/* ---- the server ---- */

static void on_daemon(void *context, unsigned events)
{
    struct http_server *server = context;
    (void)events;
    server->is_ready = true;
}

static enum err start_daemon(struct http_server *server, struct error *why)
{
    const struct http_server_options *options = &server->options;
    /* Its memory per connection holds the headers and one read. */
    size_t memory = HEADER_MAX + BLOCK;
    bool is_tls = options->tls_cert;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)options->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)options->tls_key},
        {MHD_OPTION_END, 0, NULL},
    };
    if (is_tls && mhd.has_feature(MHD_FEATURE_TLS) != MHD_YES)
        return err_set(why, ERR_UNSUPPORTED, "this libmicrohttpd was built without TLS");
    server->daemon = mhd.start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
            MHD_USE_SUPPRESS_DATE_NO_CLOCK | (is_tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_request, server, MHD_OPTION_CONNECTION_LIMIT,
        options->connections_max + 2 * ACCEPT_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(options->write_limit / NS_PER_S),
        MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_ARRAY, is_tls ? tls : tls + 2, MHD_OPTION_END);
    if (!server->daemon)
        return err_set(why, is_tls ? ERR_USAGE : ERR_UNSUPPORTED,
                       is_tls ? "the TLS certificate and key are not a matching pair in PEM format"
                              : "libmicrohttpd cannot start (epoll)");
    const union MHD_DaemonInfo *info =
        mhd.get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->watch =
        (struct event_watch){.fd = info->listen_fd, .ready = on_daemon, .context = server};
    return err_explain(why, event_loop_watch(server->loop, &server->watch, EPOLLIN));
}

enum err http_server_open(struct event_loop *loop, const struct http_server_options *options,
                          struct http_server **out, struct error *why)
{
    *out = NULL;
    enum err err = http_server_available(why);
    struct http_server *server = err ? NULL : calloc(1, sizeof *server);
    if (!server)
        return err ? err : err_no_memory(why);
    server->options = *options;
    if (!options->request_limit)
        server->options.request_limit = REQUEST_LIMIT;
    if (!options->idle_limit)
        server->options.idle_limit = IDLE_LIMIT;
    if (!options->write_limit)
        server->options.write_limit = WRITE_LIMIT;
    if (!options->body_limit)
        server->options.body_limit =
            BODY_LIMIT > options->request_limit ? BODY_LIMIT : options->request_limit;
    if (!options->bodies_max)
        server->options.bodies_max =
            options->body_max > BODIES_MIN / BODIES ? BODIES * options->body_max : BODIES_MIN;
    server->loop = loop;
    server->is_lenient = str_starts(mhd.get_version(), "0.");
    err = listener_open(&server->listener, loop, options->address, options->port, why);
    if (!err)
        err = start_daemon(server, why);
    if (err)
        http_server_close(server);
    else
        *out = server;
    return err;
}

void http_server_close(struct http_server *server)
{
    if (!server)
        return;
    if (server->daemon) {
        for (struct connection *c = server->connections; c; c = c->next) {
            c->gone = true; /* libmicrohttpd cannot stop with suspended connections */
            if (c->exchange)
                wake_connection(c->exchange);
        }
        mhd.run(server->daemon);
        event_loop_unwatch(server->loop, &server->watch);
        mhd.stop_daemon(server->daemon);
    }
    listener_close(&server->listener);
    free(server);
}

unsigned http_server_port(const struct http_server *server)
{
    return server->listener.port;
}

void http_server_process(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    nanos now = clock_now();
    if (server->connections && now >= server->next_sweep)
        sweep(server, now);
    if (listener_due(&server->listener) <= now)
        accept_connections(server, now);
    if (!server->is_ready)
        return;
    server->is_ready = false;
    mhd.run(server->daemon);
    if (mhd.get_timeout(server->daemon, &wait_ms) == MHD_YES && wait_ms == 0)
        server->is_ready = true;
}

nanos http_server_due(const struct http_server *server)
{
    if (server->is_ready)
        return 0;
    nanos accept = listener_due(&server->listener);
    return server->connections && server->next_sweep < accept ? server->next_sweep : accept;
}

void http_server_refuse(struct http_server *server)
{
    listener_close(&server->listener);
}
