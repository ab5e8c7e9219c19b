/* Connections on the loop: each is registered once, edge-triggered, for its lifetime, and remembers whether bytes may
 * be waiting, so that a short request costs one recv and one send.  A connection reads one request, passes it to the
 * handler, and reads nothing else until the response is sent; pipelined requests wait in its buffer.
 *
 * Handlers queue output (http_exchange.c): it is sent in http_server_process and in the callbacks of the loop, or by
 * http_exchange_push.  Connections are never closed while a handler runs.
 *
 * Deadlines are those of complete requests, which a client that sends a byte now and then reaches too.  A new client
 * replaces the oldest connection that has nothing to answer, those of clients that are not known first. */
#define _GNU_SOURCE
#include "port/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/xalloc.h"
#include "port/http_exchange.h"

enum {
    READ = sizeof(((struct http_server *)0)->buffer) - 1,
    READS = 4,                  /* per event: other connections wait too */
    KEPT = 4096,                /* bytes of a buffer that are kept for the next request */
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
#define LINGER_LIMIT  (2 * NS_PER_S)

/* ---- bytes ---- */

/* As recv. */
static ssize_t receive_some(struct connection *connection)
{
    char *to = connection->server->buffer;
    ssize_t got;
    do
        got = connection->tls ? tls_read(connection->tls, to, READ)
                              : recv(connection->socket.fd, to, READ, 0);
    while (got < 0 && errno == EINTR);
    /* Less than was asked for: what arrives later is reported.  TLS returns a record at a time. */
    if (got < 0 ? errno == EAGAIN : got < READ && !connection->tls && !connection->is_eof)
        connection->is_readable = false;
    to[got > 0 ? got : 0] = '\0';
    return got;
}

/* As send. */
static ssize_t send_some(const struct connection *connection, const char *bytes, size_t length)
{
    ssize_t sent;
    do
        sent = connection->tls ? tls_write(connection->tls, bytes, length)
                               : send(connection->socket.fd, bytes, length, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
}

/* ---- the end of exchanges and connections ---- */

static void discard_body(struct http_exchange *exchange)
{
    exchange->connection->server->buffered -= exchange->body.length;
    text_release(&exchange->body);
}

static void recycle(struct text *text)
{
    if (text->capacity > KEPT)
        text_release(text);
    else
        text_clear(text);
}

/* complete: the client received all of the response. */
static void end_exchange(struct connection *connection, bool complete)
{
    struct http_exchange *exchange = &connection->exchange;
    const struct http_server_options *options = &connection->server->options;
    if (exchange->is_dispatched && options->ended)
        options->ended(options->context, exchange, complete);
    discard_body(exchange);
    request_head_release(&exchange->request);
    recycle(&exchange->headers);
    recycle(&exchange->out);
    *exchange = (struct http_exchange){
        .connection = connection, .headers = exchange->headers, .out = exchange->out};
    connection->has_head = false;
    connection->searched = 0;
}

static void remove_ready(struct ready_list *ready, struct connection *connection)
{
    struct connection **at = &ready->first;
    while (*at != connection)
        at = &(*at)->next_ready;
    *at = connection->next_ready;
    if (!*at)
        ready->last = at;
    connection->is_ready = false;
}

static void close_connection(struct connection *connection)
{
    struct http_server *server = connection->server;
    end_exchange(connection, false);
    if (connection->is_ready)
        remove_ready(&server->ready, connection);
    event_loop_unwatch(server->loop, &connection->socket);
    tls_session_free(connection->tls);
    close(connection->socket.fd);
    server->count--;
    if (connection->next)
        connection->next->previous = connection->previous;
    else
        server->oldest = connection->previous;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    text_release(&connection->exchange.headers);
    text_release(&connection->exchange.out);
    text_release(&connection->in);
    free(connection);
}

/* ---- requests ---- */

/* The first byte of a request arrived: start its deadline. */
static void expect_request(struct connection *connection)
{
    connection->is_idle = false;
    connection->deadline = clock_now() + connection->server->options.request_limit;
}

/* Responds to a request that is not passed to the handler, and closes the connection: where the next one begins is not
 * known. */
static void refuse(struct connection *connection, int status, const char *why)
{
    char body[160];
    chars_format(body, "{\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\"}}", why);
    connection->exchange.closes = true;
    connection->state = CONNECTION_ANSWERING;
    connection->deadline = 0;
    discard_body(&connection->exchange);
    http_exchange_reply(&connection->exchange, status, "application/json", body, strlen(body));
}

/* The request is complete. */
static void dispatch(struct connection *connection)
{
    static const char TOO_LARGE[] = "{\"error\":{\"message\":\"the request body is too "
                                    "large\",\"type\":\"invalid_request_error\"}}";
    static const char SHED[] = "{\"error\":{\"message\":\"too many large requests at once: try "
                               "again later\",\"type\":\"unavailable\"}}";
    struct http_exchange *exchange = &connection->exchange;
    const struct http_server_options *options = &connection->server->options;
    connection->state = CONNECTION_ANSWERING;
    connection->deadline = 0;
    if (exchange->received > options->body_max) {
        http_exchange_reply(exchange, 413, "application/json", TOO_LARGE, strlen(TOO_LARGE));
    } else if (exchange->is_shed) {
        http_exchange_add_header(exchange, "Retry-After", "1");
        http_exchange_reply(exchange, 503, "application/json", SHED, strlen(SHED));
    } else {
        exchange->is_dispatched = true;
        options->request(options->context, exchange);
    }
}

/* has_more: bytes after the head have arrived. */
static void begin_body(struct connection *connection, bool has_more)
{
    struct http_exchange *exchange = &connection->exchange;
    const struct request_head *request = &exchange->request;
    const struct http_server_options *options = &connection->server->options;
    nanos now = clock_now();
    connection->has_head = true;
    connection->deadline = now + options->request_limit;
    exchange->body_deadline = now + options->body_limit;
    exchange->framing.part = request->is_chunked ? PLAIN_CHUNK_SIZE : PLAIN_LENGTH;
    exchange->framing.left = request->length;
    if (plain_response_is_complete(&exchange->framing)) {
        dispatch(connection);
    } else if (request->length / DISCARD_MAX > options->body_max) {
        refuse(connection, 413, "the request body is too large");
    } else if (request->expects_continue && !request->is_http_1_0 && !has_more) {
        text_add(&exchange->out, "HTTP/1.1 100 Continue\r\n\r\n");
        connection_set_ready(connection);
    }
}

/* This and take_body: how many of the bytes were taken; 0: more are needed, or the request was refused. */
static size_t take_head(struct connection *connection, const char *bytes, size_t length)
{
    const char *why;
    if (*bytes == '\r' || *bytes == '\n')
        return 1; /* some clients send an empty line after a body */
    size_t end = request_head_find_end(bytes, length, connection->searched);
    if ((end ? end : length) > HTTP_HEAD_MAX) {
        refuse(connection, 431, "the request line and headers are longer than 16 KiB");
        return 0;
    }
    connection->searched = end ? 0 : length;
    if (!end)
        return 0;
    int status = request_head_parse(&connection->exchange.request, bytes, end, &why);
    if (status) {
        refuse(connection, status, why);
        return 0;
    }
    begin_body(connection, end < length);
    return end;
}

/* What is received extends the deadline, but only the client that continues to send has more than the limit for one
 * pause. */
static void extend_deadline(struct connection *connection, size_t size)
{
    nanos *deadline = &connection->deadline, last = connection->exchange.body_deadline;
    nanos pause = clock_now() + connection->server->options.request_limit;
    *deadline += (nanos)size * NS_PER_S / SLOWEST_UPLOAD;
    *deadline = *deadline < pause ? *deadline : pause;
    *deadline = *deadline < last ? *deadline : last;
}

static void store_body(struct connection *connection, const char *bytes, size_t length)
{
    struct http_server *server = connection->server;
    struct http_exchange *exchange = &connection->exchange;
    exchange->received += length;
    extend_deadline(connection, length);
    exchange->is_shed |= server->buffered + length > server->options.bodies_max;
    if (exchange->is_shed || exchange->received > server->options.body_max) {
        discard_body(exchange);
        return;
    }
    size_t before = exchange->body.length;
    text_add_bytes(&exchange->body, bytes, length);
    server->buffered += exchange->body.length - before;
}

static size_t take_body(struct connection *connection, const char *bytes, size_t length)
{
    struct http_exchange *exchange = &connection->exchange;
    size_t taken = plain_response_body(&exchange->framing, length);
    if (taken) {
        store_body(connection, bytes, taken);
        plain_response_take(&exchange->framing, taken);
    } else {
        ssize_t parsed = plain_response_parse(&exchange->framing, bytes, length);
        if (parsed < 0)
            refuse(connection, 400, "malformed chunk");
        if (parsed <= 0)
            return 0;
        taken = (size_t)parsed;
    }
    if (exchange->received / DISCARD_MAX > connection->server->options.body_max)
        refuse(connection, 413, "the request body is too large");
    else if (plain_response_is_complete(&exchange->framing))
        dispatch(connection);
    return taken;
}

/* How many of the bytes were taken, up to the end of a request. */
static size_t take_input(struct connection *connection, const char *bytes, size_t length)
{
    size_t used = 0;
    while (used < length && connection->state == CONNECTION_READING) {
        size_t taken =
            (connection->has_head ? take_body : take_head)(connection, bytes + used, length - used);
        if (!taken)
            break;
        used += taken;
    }
    return used;
}

/* Processes what was received before. */
static void take_buffered(struct connection *connection)
{
    struct text *in = &connection->in;
    text_drop(in, take_input(connection, in->bytes, in->length));
    if (!in->length)
        recycle(in);
}

/* ---- reading ---- */

/* The client has disconnected before it could be sent the whole response. */
static bool is_abandoned(const struct connection *connection)
{
    return connection->is_eof && connection->state == CONNECTION_ANSWERING &&
           connection->exchange.answer != ANSWER_WHOLE;
}

/* Each returns false once the connection is closed. */

static bool receive(struct connection *connection)
{
    struct text *in = &connection->in;
    const char *buffer = connection->server->buffer;
    for (int i = 0; i < READS && connection->is_readable && connection->state == CONNECTION_READING;
         i++) {
        ssize_t got = receive_some(connection);
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0) {
            close_connection(connection);
            return false;
        }
        if (connection->is_idle)
            expect_request(connection);
        if (in->length) {
            text_add_bytes(in, buffer, (size_t)got);
            take_buffered(connection);
        } else {
            size_t used = take_input(connection, buffer, (size_t)got);
            if (used < (size_t)got)
                text_add_bytes(in, buffer + used, (size_t)got - used);
        }
    }
    if (is_abandoned(connection)) {
        close_connection(connection);
        return false;
    }
    if (connection->is_readable && connection->state == CONNECTION_READING)
        connection_set_ready(connection);
    return true;
}

static bool discard(struct connection *connection)
{
    for (int i = 0; i < READS && connection->is_readable; i++) {
        ssize_t got = receive_some(connection);
        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            close_connection(connection);
            return false;
        }
    }
    if (connection->is_readable)
        connection_set_ready(connection);
    return true;
}

/* Closing a socket with unread data resets the connection, and the client may lose the response: its side is closed
 * first, or the time is up. */
static bool linger(struct connection *connection)
{
    if (connection->tls)
        tls_finish(connection->tls);
    shutdown(connection->socket.fd, SHUT_WR);
    connection->state = CONNECTION_LINGERING;
    connection->deadline = clock_now() + LINGER_LIMIT;
    text_release(&connection->in);
    return discard(connection);
}

/* ---- writing ---- */

static bool end_response(struct connection *connection)
{
    bool closes = connection->exchange.closes;
    end_exchange(connection, true);
    if (closes)
        return linger(connection);
    connection->state = CONNECTION_READING;
    connection->is_idle = true;
    connection->deadline = clock_now() + connection->server->options.idle_limit;
    if (connection->in.length) {
        expect_request(connection);
        take_buffered(connection);
    }
    return true;
}

/* All output was sent. */
static bool on_sent(struct connection *connection)
{
    struct http_exchange *exchange = &connection->exchange;
    const struct http_server_options *options = &connection->server->options;
    bool was_waiting = exchange->sent;
    text_clear(&exchange->out);
    exchange->sent = 0;
    if (exchange->answer == ANSWER_WHOLE)
        return end_response(connection);
    if (exchange->answer == ANSWER_CUT) {
        close_connection(connection);
        return false;
    }
    if (was_waiting && exchange->answer == ANSWER_BEGUN && exchange->is_dispatched &&
        options->drained)
        options->drained(options->context, exchange);
    return true;
}

static bool flush(struct connection *connection)
{
    struct http_exchange *exchange = &connection->exchange;
    size_t unsent;
    while ((unsent = http_exchange_unsent(exchange)) > 0) {
        ssize_t sent = send_some(connection, exchange->out.bytes + exchange->sent, unsent);
        if (sent < 0 && errno == EAGAIN) {
            connection->stalled = connection->stalled ? connection->stalled : clock_now();
            return true;
        }
        if (sent <= 0) {
            close_connection(connection);
            return false;
        }
        connection->stalled = 0;
        exchange->sent += (size_t)sent;
    }
    return on_sent(connection);
}

/* The end of the response, and a failure, wait for the turn of the loop: a handler is running. */
void http_exchange_push(struct http_exchange *exchange)
{
    struct connection *connection = exchange->connection;
    size_t unsent = http_exchange_unsent(exchange);
    if (!unsent || connection->stalled)
        return;
    ssize_t sent = send_some(connection, exchange->out.bytes + exchange->sent, unsent);
    if (sent > 0)
        exchange->sent += (size_t)sent;
}

/* Sends what is waiting, then reads what is waiting. */
static void run_connection(struct connection *connection)
{
    if (!flush(connection) || !connection->is_readable)
        return;
    if (connection->state == CONNECTION_READING)
        (void)receive(connection);
    else if (connection->state == CONNECTION_LINGERING)
        (void)discard(connection);
}

static void on_socket(void *context, unsigned events)
{
    struct connection *connection = context;
    bool is_gone = events & (EPOLLHUP | EPOLLERR);
    connection->is_eof = connection->is_eof || events & (EPOLLRDHUP | EPOLLHUP);
    /* A handshake may wait for either. */
    if (events & (EPOLLIN | EPOLLRDHUP) || connection->tls)
        connection->is_readable = true;
    if (is_gone || is_abandoned(connection)) {
        close_connection(connection);
        return;
    }
    if (connection->stalled || connection->tls)
        connection_set_ready(connection);
    else if (connection->state == CONNECTION_READING)
        (void)receive(connection);
    else if (connection->state == CONNECTION_LINGERING)
        (void)discard(connection);
}

/* ---- connections ---- */

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

static void add_connection(struct http_server *server, int fd, const struct sockaddr_storage *peer)
{
    struct connection *connection = XNEW(connection);
    if (server->tls && !(connection->tls = tls_session_new(server->tls, fd))) {
        free(connection);
        close(fd);
        return;
    }
    tune_socket(fd, server->options.write_limit);
    connection->server = server;
    connection->peer = *peer;
    connection->exchange.connection = connection;
    connection->deadline = clock_now() + server->options.request_limit;
    connection->socket = (struct event_watch){.fd = fd, .ready = on_socket, .context = connection};
    connection->next = server->connections;
    if (connection->next)
        connection->next->previous = connection;
    else
        server->oldest = connection;
    server->connections = connection;
    server->count++;
    if (event_loop_watch(server->loop, &connection->socket,
                         EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET))
        close_connection(connection);
}

/* Which connections a new one replaces, the first ones first. */
enum rank { RANK_SILENT, RANK_UNFINISHED, RANK_IDLE, RANK_KEPT };

static enum rank rank_of(const struct connection *connection)
{
    bool has_request = connection->has_head || connection->in.length;
    if (connection->state == CONNECTION_ANSWERING)
        return RANK_KEPT;
    if (connection->is_known)
        return has_request ? RANK_KEPT : RANK_IDLE;
    return has_request ? RANK_UNFINISHED : RANK_SILENT;
}

/* Closes the oldest connection of the first rank that there is; several if they are silent, so that a flood of those
 * costs few searches.  False: every connection is in use. */
static bool make_room(struct http_server *server)
{
    unsigned wanted = 1 + server->options.connections_max / 8;
    for (enum rank rank = RANK_SILENT; rank < RANK_KEPT; rank++) {
        unsigned count = 0;
        unsigned max = rank > RANK_SILENT ? 1 : wanted < EVICT_MAX ? wanted : EVICT_MAX;
        for (struct connection *c = server->oldest, *newer; c && count < max; c = newer) {
            newer = c->previous;
            if (rank_of(c) == rank) {
                close_connection(c);
                count++;
            }
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
        if (server->count >= server->options.connections_max && !make_room(server)) {
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
        add_connection(server, fd, &peer);
    }
}

/* Closes connections with incomplete requests past their deadline, idle ones, and those that accept no data. */
static void sweep(struct http_server *server, nanos now)
{
    server->next_sweep = now + SWEEP_PERIOD;
    for (struct connection *c = server->connections, *next; c; c = next) {
        next = c->next;
        if ((c->deadline && c->deadline < now) ||
            (c->stalled && now - c->stalled > server->options.write_limit))
            close_connection(c);
    }
}

/* ---- the server ---- */

static void set_defaults(struct http_server_options *options)
{
    if (!options->body_limit)
        options->body_limit =
            BODY_LIMIT > options->request_limit ? BODY_LIMIT : options->request_limit;
    if (!options->request_limit)
        options->request_limit = REQUEST_LIMIT;
    if (!options->idle_limit)
        options->idle_limit = IDLE_LIMIT;
    if (!options->write_limit)
        options->write_limit = WRITE_LIMIT;
    if (!options->bodies_max)
        options->bodies_max =
            options->body_max > BODIES_MIN / BODIES ? BODIES * options->body_max : BODIES_MIN;
}

enum err http_server_open(struct event_loop *loop, const struct http_server_options *options,
                          struct http_server **out, struct error *why)
{
    *out = NULL;
    struct http_server *server = XNEW(server);
    server->options = *options;
    set_defaults(&server->options);
    server->loop = loop;
    server->ready.last = &server->ready.first;
    enum err err = listener_open(&server->listener, loop, options->address, options->port, why);
    if (!err && options->tls_cert)
        err = tls_server_new(options->tls_cert, options->tls_key, &server->tls, why);
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
    while (server->connections)
        close_connection(server->connections);
    listener_close(&server->listener);
    tls_server_free(server->tls);
    free(server);
}

unsigned http_server_port(const struct http_server *server)
{
    return server->listener.port;
}

void http_server_process(struct http_server *server)
{
    nanos now = clock_now();
    if (server->connections && now >= server->next_sweep)
        sweep(server, now);
    if (listener_due(&server->listener) <= now)
        accept_connections(server, now);
    /* Those that become ready meanwhile are next time's: a client that pipelines requests must not keep others waiting. */
    size_t count = 0;
    for (const struct connection *c = server->ready.first; c; c = c->next_ready)
        count++;
    for (struct connection *c; count && (c = server->ready.first); count--) {
        bool must_wait = c->exchange.head_waits;
        remove_ready(&server->ready, c);
        c->exchange.head_waits = false;
        if (must_wait)
            connection_set_ready(c);
        else
            run_connection(c); /* may free it */
    }
}

nanos http_server_due(const struct http_server *server)
{
    if (server->ready.first)
        return 0;
    nanos accept = listener_due(&server->listener);
    return server->connections && server->next_sweep < accept ? server->next_sweep : accept;
}

void http_server_refuse(struct http_server *server)
{
    listener_close(&server->listener);
}
