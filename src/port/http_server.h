/* An HTTP/1.1 server on an event loop; with TLS, by OpenSSL.
 *
 * A request is passed to the handler when its body is complete; the response is sent at once or incrementally.  An
 * exchange ends when the client disconnects, whatever was still to be sent.  Everything runs in the loop's thread,
 * which repeats event_loop_run_once(loop, http_server_due(server)) and http_server_process(server).
 * http_server_close frees what http_server_open allocates; an exchange belongs to the server until `ended` has
 * returned. */
#ifndef IPW_PORT_HTTP_SERVER_H
#define IPW_PORT_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct event_loop;
struct http_exchange;
struct http_server;

struct http_server_options {
    const char *address;            /* numeric or a name: "127.0.0.1", "::1" */
    unsigned port;                  /* 0: any free port */
    const char *tls_cert, *tls_key; /* PEM, both or neither; NULL: plain HTTP */
    size_t body_max;                /* bytes of a request's body; more is answered with 413 */
    /* When there are as many, a new connection replaces the oldest one that has nothing to answer: first of clients
     * that sent nothing, then with unfinished requests, last those of trusted clients. */
    unsigned connections_max;
    /* 0: the default. */
    size_t
        bodies_max; /* bytes of all bodies held; more is answered with 503; 8 times body_max, at least 1 MiB */
    nanos request_limit; /* for headers to arrive, and for a pause in a body of 16 KiB/s; 10 s */
    nanos body_limit;    /* for a body to arrive; 300 s, at least request_limit */
    nanos idle_limit;    /* of a connection without a request; 120 s */
    nanos write_limit;   /* how long a client may accept no data; 30 s */
    void (*request)(void *context, struct http_exchange *exchange);
    /* All output was sent; may be NULL. */
    void (*drained)(void *context, struct http_exchange *exchange);
    /* Called for every request that was passed to the handler; complete: the client received all of it.  May be
     * NULL. */
    void (*ended)(void *context, struct http_exchange *exchange, bool complete);
    void *context;
};

/* Request line and headers longer than 16 KiB are answered with 431. */
enum err http_server_open(struct event_loop *loop, const struct http_server_options *options,
                          struct http_server **out, struct error *why) MUST_USE;
void http_server_close(struct http_server *server);
unsigned http_server_port(const struct http_server *server);

/* Processes ready connections; and the time of the next call if nothing becomes ready before. */
void http_server_process(struct http_server *server);
nanos http_server_due(const struct http_server *server);

/* Stops accepting connections; open ones continue.  The port is free afterwards. */
void http_server_refuse(struct http_server *server);

/* ---- an exchange ---- */

const char *http_exchange_method(const struct http_exchange *exchange);
const char *http_exchange_target(const struct http_exchange *exchange); /* "/v1/models?x=%20" */
/* NULL if absent; valid until the exchange ends, as are the other results. */
const char *http_exchange_header(struct http_exchange *exchange, const char *name);
void http_exchange_headers(struct http_exchange *exchange,
                           void (*take)(void *context, const char *name, const char *value),
                           void *context);
/* The address of the client, without its port; "" where it is not known. */
enum { HTTP_PEER_MAX = 64 };
void http_exchange_peer(const struct http_exchange *exchange, char to[HTTP_PEER_MAX]);
const char *http_exchange_body(const struct http_exchange *exchange, size_t *length);

/* Data of the caller. */
void http_exchange_set_data(struct http_exchange *exchange, void *data);
void *http_exchange_data(const struct http_exchange *exchange);

/* A response: headers, begin, any number of sends, end.  length is that of the body, or HTTP_LENGTH_UNKNOWN; the
 * bytes sent must add up to it.  send copies; they leave with the next turn of the loop, or at once, as far as the client
 * accepts them, with push, for a handler that has other work to do before.  With `whole` false the connection is closed early, so that the
 * client detects an incomplete response.  After http_exchange_end only `ended` may use the exchange. */
#define HTTP_LENGTH_UNKNOWN UINT64_MAX
void http_exchange_add_header(struct http_exchange *exchange, const char *name, const char *value);
void http_exchange_begin(struct http_exchange *exchange, int status, uint64_t length);
void http_exchange_send(struct http_exchange *exchange, const char *bytes, size_t length);
void http_exchange_push(struct http_exchange *exchange);
void http_exchange_end(struct http_exchange *exchange, bool whole);
size_t http_exchange_unsent(const struct http_exchange *exchange);

/* Sends a complete response. */
void http_exchange_reply(struct http_exchange *exchange, int status, const char *content_type,
                         const char *body, size_t length);

/* Marks the client's connection as one with an admitted request: it is among the last ones to be replaced. */
void http_exchange_trust(struct http_exchange *exchange);
bool http_exchange_is_trusted(const struct http_exchange *exchange);

/* ---- access: http_access.c ---- */

/* Access control: which addresses may be listened on without a token, and of each request its Host, Origin and token.
 * The rules are the same for every server. */

/* ERR_USAGE for a token that is too short, for an address that is not one of this machine and, unless is_open, for
 * one that can be reached from other machines without a token; `advice` is part of that message. */
enum err http_access_check(const char *address, const char *token, bool is_open, const char *advice,
                           struct error *why) MUST_USE;

/* Whether a connection to that URL reaches a listener on an address and port, after name resolution. */
struct url;
bool http_access_reaches(const char *address, unsigned port, const struct url *url);

/* Where one server listens, and its rules; borrows the strings. */
struct http_access_options {
    const char *address; /* that it listens on */
    unsigned port;       /* 0: any free port */
    const char *token;   /* NULL: none is required, on loopback addresses only */
    const char *const
        *allowed; /* values of --allow-host: names in Host, or origins "scheme://..." */
    size_t allowed_count;
    bool is_tls;
};
struct http_access;
struct http_access *http_access_new(const struct http_access_options *options);
void http_access_free(struct http_access *access);

/* Of a Host header: ERR_DENIED, with one line to send with status 403, unless it names this server: the address that it
 * listens on, a loopback name or address, or one that is allowed, with any port.  With DNS rebinding a page of a foreign
 * site sends that site's name: a server that listens on all addresses therefore accepts every numeric one. */
enum err http_access_check_host(const struct http_access *access, const char *host,
                                struct error *why) MUST_USE;
/* Of an Origin header, in the same way: absent (NULL), the same as the Host header (without TLS also with https, for a
 * TLS proxy in front), or allowed. */
enum err http_access_check_origin(const struct http_access *access, const char *origin,
                                  const char *host, struct error *why) MUST_USE;
/* Both, of a request; one of HTTP/1.0 without a Host header is not from a browser. */
enum err http_access_check_site(const struct http_access *access, struct http_exchange *exchange,
                                struct error *why) MUST_USE;

enum http_admission {
    HTTP_ADMITTED, /* right token, or none is required */
    HTTP_REFUSED,  /* 401: no token, or a wrong one */
    HTTP_LIMITED,  /* 429: too many wrong tokens from this address */
};
/* Different wrong tokens from an address in a minute; its requests with a token are then HTTP_LIMITED for the rest of
 * it, with the right token too, so that a guess is not confirmed: only trusted connections remain so.  The same wrong
 * token does not limit others. */
enum { HTTP_WRONG_TOKENS = 10 };
/* Accepts Authorization: Bearer TOKEN and x-ipw-token.  The connection of an admitted request is trusted. */
enum http_admission http_access_admit(struct http_access *access, struct http_exchange *exchange);
/* The same for a token that the caller has checked.  `given` is a hash of it (http_access_token); 0: none was given. */
enum http_admission http_access_admit_token(struct http_access *access,
                                            struct http_exchange *exchange, uint64_t given,
                                            bool is_right);
uint64_t http_access_token(const char *given); /* 0 for NULL */
/* The same for a client with this address. */
enum http_admission http_access_judge(struct http_access *access, const char *peer, bool is_trusted,
                                      uint64_t given, bool is_right, nanos now);
/* Adds the headers of the response to a request that was not admitted; its status and message. */
int http_access_refuse(struct http_exchange *exchange, enum http_admission admission,
                       const char **message);

#endif
