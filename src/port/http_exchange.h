/* The parts of port/http_server.h: the head of a request, TLS, and a connection with the exchange that it carries.
 * Private to port/.  A release or free function frees what the one for parsing or new allocates. */
#ifndef IPW_PORT_HTTP_EXCHANGE_H
#define IPW_PORT_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/text.h"
#include "port/event_loop.h"
#include "port/http_plain.h"
#include "port/http_server.h"

/* ---- the head of an HTTP/1.1 request to us: request_head.c ---- */

enum { HTTP_HEAD_MAX = 16 * 1024 }; /* bytes of request line and headers */

/* Starts zeroed. */
struct request_head {
    char *head; /* the bytes that the strings below are parts of */
    const char *method, *target;
    const char *headers, *headers_end; /* "Name\0value\0"... */
    bool is_http_1_0;
    bool keeps;            /* the connection stays open after the response */
    bool expects_continue; /* the client waits for "100 Continue" before it sends the body */
    bool is_chunked;
    uint64_t length; /* of the body, unless it is chunked */
};

/* The length of the head at the start of these bytes, including its empty line; 0 while it is incomplete.  The first
 * `searched` bytes have been searched before. */
size_t request_head_find_end(const char *bytes, size_t length, size_t searched);

/* Parses a complete head.  0, or the status of the response that refuses it, and why.  What others may understand
 * differently (RFC 9112, 3 to 6) is refused, not repaired: the connection must be closed after that response. */
int request_head_parse(struct request_head *request, const char *head, size_t length,
                       const char **why);
void request_head_release(struct request_head *request);

/* The value of the first header of that name; NULL if there is none. */
const char *request_head_get(const struct request_head *request, const char *name);

/* ---- TLS of our listener, by OpenSSL, which is opened when it is first needed: tls.c ---- */

struct tls_server;
struct tls_session;

/* cert, with its chain, and key: PEM.  ERR_UNSUPPORTED: OpenSSL is not installed; ERR_USAGE: not a matching pair. */
enum err tls_server_new(const char *cert, const char *key, struct tls_server **out,
                        struct error *why) MUST_USE;
void tls_server_free(struct tls_server *server);

/* Of a connected, nonblocking socket, which it does not close; NULL: out of memory. */
struct tls_session *tls_session_new(struct tls_server *server, int fd);
void tls_session_free(struct tls_session *session);

/* As recv and send: -1 with EAGAIN until the socket is ready, for reading or for writing. */
ssize_t tls_read(struct tls_session *session, char *to, size_t size);
ssize_t tls_write(struct tls_session *session, const char *bytes, size_t length);
/* Tells the client that nothing else follows. */
void tls_finish(struct tls_session *session);

/* ---- connections and exchanges: http_server.c, http_exchange.c ---- */

enum answer_state {
    ANSWER_NONE,
    ANSWER_BEGUN,
    ANSWER_WHOLE, /* all of it was given by the handler */
    ANSWER_CUT,   /* the connection is to be closed early */
};

struct http_exchange {
    struct connection *connection;
    struct request_head request;
    struct plain_response framing; /* of the request's body: its part and what is left */
    struct text body;
    size_t received;     /* bytes of the body, including discarded ones */
    nanos body_deadline; /* for the complete body, however fast it is sent */
    void *data;
    struct text headers; /* of the response, as lines */
    struct text out;     /* not sent yet, from `sent` on */
    size_t sent;
    uint64_t left; /* bytes of the response's body that were not given yet; HTTP_LENGTH_UNKNOWN */
    enum answer_state answer;
    bool has_body, is_chunked; /* the response */
    bool
        head_waits; /* for one turn of the loop, for the first bytes of the body: one segment, not two */
    bool closes; /* the connection, after the response */
    bool is_dispatched;
    bool is_shed; /* its body was discarded: the bodies of all requests together are too large */
};

enum connection_state {
    CONNECTION_READING,   /* a request, or waiting for one */
    CONNECTION_ANSWERING, /* nothing is read until the response is sent */
    CONNECTION_LINGERING, /* the last response is sent; what arrives is discarded until the client has read it */
};

struct connection {
    struct http_server *server;
    struct event_watch socket;
    struct tls_session *tls; /* NULL: none */
    struct sockaddr_storage peer;
    enum connection_state state;
    struct text
        in; /* received and not processed yet: part of a head, a line, or pipelined requests */
    size_t searched;  /* bytes of `in` without the end of a head */
    bool has_head;    /* of the request that is being read */
    bool is_readable; /* bytes may be waiting in the socket */
    bool is_eof;      /* the client sends nothing else */
    bool is_idle;     /* nothing was received since the last response */
    bool is_known;    /* a request of it was admitted: http_exchange_trust */
    bool is_ready;    /* in the list of those with something to send or to read */
    nanos deadline;   /* for the next complete request; 0: none, a request is being answered */
    nanos stalled;    /* since when the client accepts no data; 0: it does */
    struct http_exchange exchange;
    struct connection *next, *previous, *next_ready;
};

/* Those with something to do, in this order. */
struct ready_list {
    struct connection *first, **last;
};

struct http_server {
    struct http_server_options options;
    struct event_loop *loop;
    struct tls_server *tls;
    struct listener listener;
    nanos next_sweep;                        /* when deadlines are checked next */
    struct connection *connections, *oldest; /* newest first, and the last of them */
    struct ready_list ready;
    unsigned count;  /* connections */
    size_t buffered; /* bytes of all bodies */
    char buffer[64 * 1024 + 1];
};

/* Has the server send what is waiting, and read on, when it processes connections next. */
void connection_set_ready(struct connection *connection);

#endif
